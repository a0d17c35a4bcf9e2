// SPDX-License-Identifier: Apache-2.0
#include "common/event_store.h"

#include <filesystem>
#include <optional>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>
#include <asio/bind_cancellation_slot.hpp>
#include <asio/cancellation_signal.hpp>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "common/refusal.h"
#include "tests/support/commits.h"

namespace sekisho {
namespace {

using ::testing::ElementsAre;

class EventStoreTest : public ::testing::Test {
 protected:
  EventStoreTest() {
    std::string pattern = std::filesystem::temp_directory_path() / "sekisho-store-XXXXXX";
    directory_ = mkdtemp(pattern.data());
  }
  ~EventStoreTest() override { std::filesystem::remove_all(directory_); }

  std::unique_ptr<EventStore> OpenStore() {
    auto store = EventStore::Open(loop_, directory_ + "/events.db");
    EXPECT_TRUE(store.ok()) << store.status();
    return std::move(*store);
  }
  absl::Status Flush(EventStore& store) {
    absl::Status result = absl::UnknownError("not finished");
    co_spawn(loop_, [&]() -> awaitable<void> { result = co_await store.Flush(); }, Vital("the test"));
    loop_.restart();
    loop_.run();
    return result;
  }
  static std::vector<std::string> Events(EventStore& store) {
    std::vector<std::string> events;
    EXPECT_TRUE(store.Replay([&](uint64_t sequence, const std::string& key, const std::string& event) {
                       events.push_back(std::to_string(sequence) + key + event);
                       return absl::OkStatus();
                     }).ok());
    return events;
  }

  Loop loop_;
  std::string directory_;
};

TEST_F(EventStoreTest, WhatWasFlushedIsThereAfterReopening) {
  {
    auto store = OpenStore();
    store->Append("a", std::string("x\0y", 3));
    store->Append("b", "2");
    store->Put("position", "17");
    ASSERT_TRUE(Flush(*store).ok());
  }

  auto store = OpenStore();

  EXPECT_THAT(Events(*store), ElementsAre("1a" + std::string("x\0y", 3), "2b2"));
  EXPECT_EQ(*store->Value("position"), "17");
}

TEST_F(EventStoreTest, ANumberIsNeverGivenTwice) {
  {
    auto store = OpenStore();
    store->Append("a", "1");
    store->Append("b", "2");
    store->Forget("b");
    ASSERT_TRUE(Flush(*store).ok());
  }

  auto store = OpenStore();

  EXPECT_THAT(Events(*store), ElementsAre("1a1"));
  EXPECT_EQ(store->Append("c", "3"), 3u);
  ASSERT_TRUE(Flush(*store).ok());
}

TEST_F(EventStoreTest, ANumberIsNotGivenTwiceAlsoIfItWasForgottenLater) {
  {
    auto store = OpenStore();
    store->Append("a", "1");
    store->Append("b", "2");
    ASSERT_TRUE(Flush(*store).ok());
    store->Forget("b");
    ASSERT_TRUE(Flush(*store).ok());
  }

  EXPECT_EQ(OpenStore()->next_sequence(), 3u);
}

TEST_F(EventStoreTest, WhatNobodyWaitsForIsWrittenSoon) {
  {
    auto store = OpenStore();
    store->Append("a", "1");
    store->Append("a", "2");
    loop_.run();
  }

  EXPECT_THAT(Events(*OpenStore()), ElementsAre("1a1", "2a2"));
}

TEST_F(EventStoreTest, OfManyValuesOfOneNameTheLastStays) {
  {
    auto store = OpenStore();
    store->Put("position", "1");
    store->Put("other", "a");
    store->Put("position", "2");
    ASSERT_TRUE(Flush(*store).ok());
  }

  auto store = OpenStore();

  EXPECT_EQ(*store->Value("position"), "2");
  EXPECT_EQ(*store->Value("other"), "a");
}

TEST_F(EventStoreTest, ManyAppendsOfOneTurnAreOneFlush) {
  auto store = OpenStore();
  for (int i = 0; i < 1000; ++i) {
    store->Append("k", std::to_string(i));
  }

  ASSERT_TRUE(Flush(*store).ok());

  EXPECT_EQ(Events(*store).size(), 1000u);
}

TEST_F(EventStoreTest, ReadsEventsByNumberAndByKey) {
  auto store = OpenStore();
  store->Append("a", "1");
  store->Append("b", "2");
  store->Append("a", std::string("3\0", 2));
  ASSERT_TRUE(Flush(*store).ok());

  const std::vector<uint64_t> wanted = {3, 7, 1};  // there is no 7
  std::vector<EventStore::Row> rows, first, of_key;
  const auto read = [&]() -> awaitable<void> {
    first = *co_await store->ReadFirst("a");
    of_key = *co_await store->Read("a");
    rows = *co_await store->Read(wanted);
  };
  co_spawn(loop_, read, Vital("the test"));
  loop_.restart();
  auto work = asio::make_work_guard(loop_);
  while (rows.empty()) {
    loop_.run_one();
  }

  ASSERT_EQ(first.size(), 1u);
  EXPECT_EQ(first[0].event, "1");
  ASSERT_EQ(of_key.size(), 2u);
  EXPECT_EQ(of_key[0].sequence, 1u);
  EXPECT_EQ(of_key[1].sequence, 3u);
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[0].sequence, 3u);
  EXPECT_EQ(rows[0].event, std::string("3\0", 2));
  EXPECT_EQ(rows[1].sequence, 1u);
  EXPECT_EQ(rows[1].event, "1");
}

TEST_F(EventStoreTest, StoresNothingMoreOnceSomethingWasLost) {
  auto store = OpenStore();
  auto other = OpenStore();  // takes the number that the first would give
  other->Append("x", "1");
  ASSERT_TRUE(Flush(*other).ok());
  store->Append("a", "lost");
  ASSERT_FALSE(Flush(*store).ok());

  store->Append("a", "counts on it");

  EXPECT_FALSE(Flush(*store).ok());
  EXPECT_THAT(Events(*other), ElementsAre("1x1"));
}

TEST_F(EventStoreTest, WhatComesWhileTheDiskIsBusyIsOneCommit) {
  auto store = OpenStore();
  const std::string path = directory_ + "/events.db";
  const size_t before = test::CommitsIn(path);
  int done = 0;
  const auto append = [&]() -> awaitable<void> {
    store->Append("k", "event");
    EXPECT_TRUE((co_await store->Flush()).ok());
    ++done;
  };

  SQLite::Database other(path, SQLite::OPEN_READWRITE);
  auto busy = std::make_optional<SQLite::Transaction>(other, SQLite::TransactionBehavior::IMMEDIATE);
  for (int i = 0; i < 100; ++i) {
    co_spawn(loop_, append, Vital("the test"));
    loop_.restart();
    loop_.poll();  // the first is being written from now on, and waits for the disk
  }
  EXPECT_EQ(done, 0);
  busy.reset();
  loop_.restart();
  const auto work = asio::make_work_guard(loop_);
  while (done < 100) {
    loop_.run_one();
  }

  EXPECT_EQ(test::CommitsIn(path) - before, 2u);
}

TEST_F(EventStoreTest, AReadMayBeGivenUpAtAnyTime) {
  auto store = OpenStore();
  store->Append("a", "1");
  ASSERT_TRUE(Flush(*store).ok());
  const auto read = [&](asio::cancellation_slot slot) {
    auto rows = std::make_shared<std::optional<absl::StatusOr<std::vector<EventStore::Row>>>>();
    co_spawn(loop_, store->Read("a"),
             asio::bind_cancellation_slot(slot, [rows](std::exception_ptr thrown, auto found) {
               *rows = thrown ? absl::CancelledError() : std::move(found);
             }));
    loop_.restart();
    return rows;
  };
  for (int turns = 0; turns < 100; ++turns) {
    asio::cancellation_signal leave;
    const auto rows = read(leave.slot());
    for (int turn = 0; turn < turns % 4; ++turn) {
      loop_.poll_one();
    }
    leave.emit(asio::cancellation_type::terminal);
    loop_.run();
    ASSERT_TRUE(*rows);
  }

  const auto rows = read({});
  loop_.run();

  ASSERT_TRUE((*rows)->ok());
  EXPECT_EQ((**rows)->size(), 1u);
}

TEST_F(EventStoreTest, ADatabaseOfANewerVersionIsRefusedAndNotTouched) {
  const std::string path = directory_ + "/events.db";
  {
    auto store = OpenStore();
    store->Append("a", "1");
    ASSERT_TRUE(Flush(*store).ok());
  }
  SQLite::Database(path, SQLite::OPEN_READWRITE).exec("PRAGMA user_version=2; CREATE TABLE things_to_come (what)");

  const auto refused = EventStore::Open(loop_, path);

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(Message(refused.status()), path + ": written by a newer version (schema 2, this one knows 1)");
  EXPECT_THAT(Remedy(refused.status()), ::testing::HasSubstr("docs/operations/backup.md"));
  SQLite::Database after(path);
  EXPECT_EQ(after.execAndGet("PRAGMA user_version").getInt(), 2);
  EXPECT_TRUE(after.tableExists("things_to_come"));
}

// What an older version than schema 1 would have left: no number, and less in it.  There was none yet, and no migration is
// needed: what is missing is made, what is there stays.
TEST_F(EventStoreTest, ADatabaseWithoutAVersionIsTakenUpAndIsOfThisVersionThen) {
  const std::string path = directory_ + "/events.db";
  SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE)
      .exec("CREATE TABLE events (sequence INTEGER PRIMARY KEY, key TEXT NOT NULL, event BLOB NOT NULL);"
            "INSERT INTO events VALUES (7, 'a', 'old')");

  {
    const auto store = OpenStore();
    EXPECT_THAT(Events(*store), ElementsAre("7aold"));
    EXPECT_EQ(store->Append("a", "new"), 8u);
    ASSERT_TRUE(Flush(*store).ok());
  }

  EXPECT_THAT(Events(*OpenStore()), ElementsAre("7aold", "8anew"));
  EXPECT_EQ(SQLite::Database(path).execAndGet("PRAGMA user_version").getInt(), 1);
}

TEST_F(EventStoreTest, ADatabaseOfSomethingElseIsRefusedByItsPath) {
  const std::string path = directory_ + "/events.db";
  SQLite::Database(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE).exec("CREATE TABLE events (of_what TEXT)");

  const auto refused = EventStore::Open(loop_, path);

  EXPECT_THAT(refused.status().ToString(), ::testing::HasSubstr(path + ": "));
  EXPECT_FALSE(SQLite::Database(path).tableExists("vals"));
}

TEST_F(EventStoreTest, AnUnusablePathIsAnErrorThatNamesIt) {
  const auto store = EventStore::Open(loop_, directory_ + "/none/events.db");

  EXPECT_THAT(store.status().ToString(), ::testing::HasSubstr("/none/events.db"));
}

// A database that was lost, or put back from a copy, must give no number that somebody has seen.
TEST_F(EventStoreTest, SkipsNumbersAheadAndNeverBack) {
  {
    const auto store = OpenStore();
    store->SkipTo(1000);
    EXPECT_EQ(store->Append("a", "1"), 1000u);
    ASSERT_TRUE(Flush(*store).ok());
  }
  const auto store = OpenStore();
  store->SkipTo(500);
  EXPECT_EQ(store->Append("a", "2"), 1001u);
  EXPECT_TRUE(Flush(*store).ok());
}

}  // namespace
}  // namespace sekisho
