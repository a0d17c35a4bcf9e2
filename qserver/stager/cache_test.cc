// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/cache.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

namespace sekisho::qserver::stager {
namespace {

namespace fs = std::filesystem;

Content ContentOf(const std::string& text) {
  Sum sum;
  sum.Add(text);
  Content content;
  content.set_sha256(sum.Finish());
  content.set_size(text.size());
  return content;
}

std::string Text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class CacheTest : public testing::Test {
 protected:
  CacheTest() {
    std::string name = (fs::temp_directory_path() / "cache-XXXXXX").string();
    home_ = mkdtemp(name.data());
  }
  ~CacheTest() override { fs::remove_all(home_); }

  Cache Of(const std::string& job) const { return {Below{home_.string(), ".sekisho/cache"}, job}; }
  Stamp Put(const std::string& text) const {
    auto incoming = Of("job").Receive(ContentOf(text));
    EXPECT_TRUE(incoming.ok());
    EXPECT_TRUE(incoming->Add(text).ok());
    const auto seen = Of("job").Finish(*std::move(incoming));
    EXPECT_TRUE(seen.ok() && *seen);
    return **seen;
  }
  fs::path Stored(const std::string& text) const {
    return home_ / ".sekisho/cache" / Hex(ContentOf(text).sha256());
  }
  Stamp Now(const std::string& text) const {
    struct stat status {};
    EXPECT_EQ(stat(Stored(text).c_str(), &status), 0);
    Stamp stamp;
    stamp.set_inode(status.st_ino);
    stamp.set_changed_ns(status.st_ctim.tv_sec * int64_t(1'000'000'000) + status.st_ctim.tv_nsec);
    return stamp;
  }
  absl::Status Place(const std::string& text, const std::string& path, bool is_link = false,
                     const Stamp& seen = {}) const {
    return Of("job").Place(ContentOf(text), {home_.string(), path}, 0700, is_link, seen);
  }

  fs::path home_;
};

TEST_F(CacheTest, GoesOnWhereAnEarlierStagerStopped) {
  const Content content = ContentOf("hello world");
  {
    auto incoming = Of("job").Receive(content);
    ASSERT_TRUE(incoming.ok());
    EXPECT_TRUE(incoming->Add("hello ").ok());
    EXPECT_FALSE(Of("job").Finish(*std::move(incoming))->has_value());
  }
  EXPECT_EQ(Of("job").Look(content).offset(), 6u);
  EXPECT_EQ(Of("other").Look(content).offset(), 0u);

  auto again = Of("job").Receive(content);
  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->offset(), 6u);
  EXPECT_TRUE(again->Add("world").ok());
  EXPECT_TRUE(Of("job").Finish(*std::move(again))->has_value());

  EXPECT_TRUE(Of("other").Look(content).whole());
  EXPECT_EQ(Text(Stored("hello world")), "hello world");
}

TEST_F(CacheTest, ThrowsAwayWhatIsNotWhatItWasSaidToBe) {
  const Content content = ContentOf("hello world");
  auto incoming = Of("job").Receive(content);
  ASSERT_TRUE(incoming.ok());
  EXPECT_TRUE(incoming->Add("jello world").ok());

  const auto finished = Of("job").Finish(*std::move(incoming));

  EXPECT_EQ(finished.status().code(), absl::StatusCode::kDataLoss);
  EXPECT_FALSE(Of("job").Look(content).whole());
  EXPECT_EQ(Of("job").Look(content).offset(), 0u);
}

TEST_F(CacheTest, TakesNoMoreThanItWasToldOf) {
  auto incoming = Of("job").Receive(ContentOf("abc"));
  ASSERT_TRUE(incoming.ok());
  EXPECT_EQ(incoming->Add("abcd").code(), absl::StatusCode::kOutOfRange);
}

TEST_F(CacheTest, KeepsAnEmptyFile) {
  Put("");
  EXPECT_TRUE(Of("job").Look(ContentOf("")).whole());
  EXPECT_TRUE(Place("", "empty").ok());
  EXPECT_TRUE(fs::exists(home_ / "empty"));
}

TEST_F(CacheTest, MakesDirectoriesOnTheWayForTheAccountAlone) {
  Put("new");
  const mode_t before = umask(0);  // as the stager has it
  EXPECT_TRUE(Place("new", "a/b/target").ok());
  umask(before);

  struct stat status {};
  EXPECT_EQ(stat((home_ / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CacheTest, ReplacesALinkInThePlaceOfAFileAndDoesNotFollowIt) {
  Put("new");
  std::ofstream(home_ / "victim") << "old";
  fs::create_symlink("victim", home_ / "target");

  EXPECT_TRUE(Place("new", "target").ok());

  EXPECT_EQ(Text(home_ / "victim"), "old");
  EXPECT_FALSE(fs::is_symlink(home_ / "target"));
  EXPECT_EQ(Text(home_ / "target"), "new");
  struct stat status {};
  EXPECT_EQ(stat((home_ / "target").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777, 0700u);
}

TEST_F(CacheTest, TakesOverWhatAKilledStagerHasLeftBesideThePlace) {
  Put("new");
  std::ofstream(home_ / ".job.part") << "some of it, and more";

  EXPECT_TRUE(Place("new", "target").ok());

  EXPECT_EQ(Text(home_ / "target"), "new");
  EXPECT_FALSE(fs::exists(home_ / ".job.part"));
}

TEST_F(CacheTest, WritesIntoNoFileThatHasAnotherName) {
  Put("new");
  ASSERT_TRUE(Place("new", "first").ok());
  std::ofstream(home_ / "other") << "old";
  fs::create_hard_link(home_ / "other", home_ / ".job.part");

  EXPECT_TRUE(Place("new", "target").ok());

  EXPECT_EQ(Text(home_ / "other"), "old");
  EXPECT_EQ(Text(home_ / "target"), "new");
}

TEST_F(CacheTest, PlacesWhatAKilledStagerWasAboutToGiveAway) {
  Put("new");
  fs::permissions(Stored("new"), fs::perms::owner_all);  // nobody else is to get it
  fs::create_hard_link(Stored("new"), home_ / ".job.part");

  EXPECT_TRUE(Place("new", "target").ok());

  EXPECT_EQ(Text(home_ / "target"), "new");
  EXPECT_EQ(Text(Stored("new")), "new");
  EXPECT_FALSE(fs::exists(home_ / ".job.part"));
}

TEST_F(CacheTest, LinksWhatIsShared) {
  Put("shared");
  EXPECT_TRUE(Place("shared", "a/link", true).ok());
  EXPECT_EQ(fs::read_symlink(home_ / "a/link"), Stored("shared"));
}

// It would be refused if it were.
TEST_F(CacheTest, DoesNotReadAgainWhatIsStillAsItWasSeen) {
  Put("good");
  std::ofstream(Stored("good")) << "evil";
  EXPECT_TRUE(Place("good", "link", true, Now("good")).ok());
  Put("fine");
  std::ofstream(Stored("fine")) << "evil";
  EXPECT_TRUE(Place("fine", "own", false, Now("fine")).ok());
}

TEST_F(CacheTest, ReadsAgainWhatHasChangedSince) {
  for (const bool is_link : {false, true}) {
    const Stamp seen = Put("good");
    do {  // until the file system's clock has gone on
      std::ofstream(Stored("good")) << "evil";
    } while (Now("good").changed_ns() == seen.changed_ns());

    EXPECT_TRUE(absl::IsDataLoss(Place("good", "target", is_link, seen)));
  }
}

TEST_F(CacheTest, PlacesNothingThatWasSpoilt) {
  Put("good");
  std::ofstream(Stored("good")) << "evil";

  EXPECT_EQ(Place("good", "target").code(), absl::StatusCode::kDataLoss);

  EXPECT_FALSE(fs::exists(home_ / "target"));
  EXPECT_FALSE(Of("job").Look(ContentOf("good")).whole());
  EXPECT_EQ(std::distance(fs::directory_iterator(home_), {}), 1);  // nothing aside is left
}

TEST_F(CacheTest, LetsGoOfWhatWasLongestUnused) {
  long moment = 3;
  for (const char* const text : {"three!", "one...", "two..."}) {
    Put(text);
    ASSERT_TRUE(Place(text, text).ok());
    const timespec used[2] = {{1000, moment}, {1000, moment}};  // of one second
    utimensat(AT_FDCWD, Stored(text).c_str(), used, 0);
    moment = moment % 3 + 1;
  }

  Of("job").Trim(12);

  EXPECT_TRUE(Of("job").Look(ContentOf("three!")).whole());
  EXPECT_FALSE(Of("job").Look(ContentOf("one...")).whole());
  EXPECT_TRUE(Of("job").Look(ContentOf("two...")).whole());
}

TEST_F(CacheTest, KeepsForAWeekWhatAJobStillWaitsFor) {
  Put("new");
  Put("old");
  const timespec long_ago[2] = {{1000, 0}, {1000, 0}};
  utimensat(AT_FDCWD, Stored("old").c_str(), long_ago, 0);

  Of("another").Trim(0);

  EXPECT_TRUE(Of("job").Look(ContentOf("new")).whole());
  EXPECT_FALSE(Of("job").Look(ContentOf("old")).whole());
}

TEST_F(CacheTest, TakesWhatIsNotKnownBeforeAndKeepsNothingOfWhatFails) {
  const Cache cache = Of("job");
  const auto taken = cache.Take([](const Cache::Add& add) {
    const absl::Status first = add("hello ");
    return first.ok() ? add("world") : first;
  });
  ASSERT_TRUE(taken.ok());
  Sum sum;
  sum.Add("hello world");
  EXPECT_EQ(taken->content.sha256(), sum.Finish());
  EXPECT_TRUE(cache.Look(taken->content).whole());

  const auto failed = cache.Take([](const Cache::Add& add) {
    const absl::Status first = add("half");
    return first.ok() ? absl::FailedPreconditionError("the server has gone") : first;
  });
  EXPECT_EQ(failed.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(std::distance(fs::directory_iterator(home_ / ".sekisho/cache"), {}), 1);
}

TEST_F(CacheTest, TheFirstFileOfItsOwnIsTheCachesLaterOnesAreCopies) {
  Put("a");
  ASSERT_TRUE(Place("a", "first").ok());
  ASSERT_TRUE(Place("a", "second").ok());

  EXPECT_EQ(fs::hard_link_count(home_ / "first"), 2U);
  EXPECT_EQ(fs::hard_link_count(home_ / "second"), 1U);
  EXPECT_EQ(Text(home_ / "second"), "a");
  EXPECT_EQ(fs::status(home_ / "first").permissions(), fs::perms::owner_all);
}

TEST_F(CacheTest, WhatTheFirstWritesNobodyElseIsGiven) {
  Put("before");
  ASSERT_TRUE(Place("before", "first").ok());
  std::ofstream(home_ / "first") << "beyond";

  EXPECT_TRUE(absl::IsDataLoss(Place("before", "second")));
  EXPECT_FALSE(Of("job").Look(ContentOf("before")).whole());
}

TEST_F(CacheTest, WhatIsReadInTheCacheIsNoFileThatAJobMayWrite) {
  Put("a");
  ASSERT_TRUE(Place("a", "own").ok());
  ASSERT_TRUE(Place("a", "shared", true).ok());
  std::ofstream(home_ / "own") << "b";

  EXPECT_EQ(Text(home_ / "shared"), "a");
}

TEST_F(CacheTest, WhatIsSharedIsGivenToNobody) {
  Put("a");
  ASSERT_TRUE(Place("a", "shared", true).ok());
  ASSERT_TRUE(Place("a", "own").ok());

  EXPECT_EQ(fs::hard_link_count(home_ / "own"), 1U);
}

}  // namespace
}  // namespace sekisho::qserver::stager
