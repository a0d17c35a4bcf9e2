// SPDX-License-Identifier: Apache-2.0
#include "common/event_store.h"

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <SQLiteCpp/SQLiteCpp.h>
#include <fmt/format.h>

#include "common/away.h"
#include "common/refusal.h"

namespace sekisho {
namespace {

constexpr int kSchemaVersion = 1;

// What nobody waits for is written with what comes within this time.
constexpr std::chrono::milliseconds kGroupTime{20};

struct Change {
  enum Kind { kAppend, kPut, kForget } kind;
  std::string key;
  std::string value;
  uint64_t sequence = 0;
};

// SQLiteCpp throws; this file is its fence.
template <typename Function>
absl::Status Fenced(const std::string& path, Function function) {
  try {
    return function();
  } catch (const SQLite::Exception& error) {
    return absl::UnavailableError(fmt::format("{}: {}", path, error.what()));
  }
}

class SqliteEventStore final : public EventStore {
 public:
  SqliteEventStore(Loop& loop, std::string path)
      : loop_(loop), path_(std::move(path)), committed_(loop), group_timer_(loop), writer_(1),
        database_(path_, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, 5000) {}

  ~SqliteEventStore() override { writer_.join(); }

  absl::Status Prepare() {
    return Fenced(path_, [this]() -> absl::Status {
      const int version = database_.execAndGet("PRAGMA user_version").getInt();
      if (version > kSchemaVersion) {
        return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                      fmt::format("{}: written by a newer version (schema {}, this one knows {})", path_, version,
                                  kSchemaVersion),
                      "start the newer version again, or put back the copy that was made before it ran: "
                      "docs/operations/backup.md");
      }
      database_.exec("PRAGMA journal_mode=WAL");
      database_.exec("PRAGMA synchronous=FULL");
      database_.exec("PRAGMA cache_size=-512");  // KiB: it writes, and reads again what the system's cache still has
      database_.exec(
          "CREATE TABLE IF NOT EXISTS events (sequence INTEGER PRIMARY KEY, key TEXT NOT NULL,"
          " event BLOB NOT NULL);"
          "CREATE INDEX IF NOT EXISTS events_by_key ON events (key);"
          "CREATE TABLE IF NOT EXISTS vals (name TEXT PRIMARY KEY, value BLOB NOT NULL);"
          "INSERT OR IGNORE INTO vals VALUES ('last_sequence', '0')");
      database_.exec(fmt::format("PRAGMA user_version={}", kSchemaVersion));
      // A number is never given twice, also after the newest events were forgotten.
      SQLite::Statement last(database_,
                             "SELECT max(coalesce((SELECT max(sequence) FROM events), 0), coalesce("
                             "(SELECT CAST(value AS INTEGER) FROM vals WHERE name='last_sequence'), 0))");
      last.executeStep();
      last_ = static_cast<uint64_t>(last.getColumn(0).getInt64());
      next_ = last_ + 1;
      return absl::OkStatus();
    });
  }

  absl::Status Replay(const std::function<absl::Status(uint64_t, const std::string&,
                                                       const std::string&)>& visit) override {
    return Fenced(path_, [&]() -> absl::Status {
      SQLite::Statement rows(database_, "SELECT sequence, key, event FROM events ORDER BY sequence");
      while (rows.executeStep()) {
        RETURN_IF_ERROR(visit(static_cast<uint64_t>(rows.getColumn(0).getInt64()),
                              rows.getColumn(1).getString(), rows.getColumn(2).getString()));
      }
      return absl::OkStatus();
    });
  }

  absl::StatusOr<std::string> Value(const std::string& name) override {
    std::string value;
    RETURN_IF_ERROR(Fenced(path_, [&]() -> absl::Status {
      SQLite::Statement row(database_, "SELECT value FROM vals WHERE name=?");
      row.bind(1, name);
      if (row.executeStep()) {
        value = row.getColumn(0).getString();
      }
      return absl::OkStatus();
    }));
    return value;
  }

  uint64_t next_sequence() const override { return next_; }
  void SkipTo(uint64_t sequence) override { next_ = std::max(next_, sequence); }

  uint64_t Append(std::string key, std::string event) override {
    const uint64_t sequence = next_++;
    Queue({Change::kAppend, std::move(key), std::move(event), sequence});
    return sequence;
  }
  void Put(std::string name, std::string value) override {
    Queue({Change::kPut, std::move(name), std::move(value)});
  }
  void Forget(std::string key) override { Queue({Change::kForget, std::move(key), ""}); }

  awaitable<absl::StatusOr<std::vector<Row>>> Read(std::vector<uint64_t> sequences) override {
    auto read = [this, sequences = std::move(sequences)] { return ReadOnWriter(sequences); };
    co_return co_await Away(loop_, writer_, std::move(read));
  }
  awaitable<absl::StatusOr<std::vector<Row>>> ReadFirst(std::string key) override {
    auto read = [this, key = std::move(key)] { return ReadOnWriter(key, 1); };
    co_return co_await Away(loop_, writer_, std::move(read));
  }
  awaitable<absl::StatusOr<std::vector<Row>>> Read(std::string key) override {
    auto read = [this, key = std::move(key)] { return ReadOnWriter(key, -1); };
    co_return co_await Away(loop_, writer_, std::move(read));
  }

  awaitable<absl::Status> Flush() override {
    const uint64_t wanted = queued_;
    wanted_ = wanted;
    if (done_ < wanted && !is_writing_) {
      is_writing_ = true;
      // After this turn of the loop: what else is decided in it joins the group.
      asio::post(loop_, [this] { WriteGroup(); });
    }
    while (done_ < wanted) {
      co_await committed_.Wait();
    }
    co_return wanted >= failed_from_ ? failure_ : absl::OkStatus();
  }

  awaitable<absl::Status> Failed() override {
    while (failure_.ok()) {
      co_await committed_.Wait();
    }
    co_return failure_;
  }

 private:
  // On the writer's thread, which alone uses the database after the start.
  absl::StatusOr<std::vector<Row>> ReadOnWriter(const std::vector<uint64_t>& sequences) {
    std::vector<Row> found;
    RETURN_IF_ERROR(Fenced(path_, [&]() -> absl::Status {
      SQLite::Statement row(database_, "SELECT sequence, event FROM events WHERE sequence=?");
      for (const uint64_t sequence : sequences) {
        row.reset();
        Bind(row, 1, static_cast<int64_t>(sequence));
        TakeRows(row, found);
      }
      return absl::OkStatus();
    }));
    return found;
  }
  absl::StatusOr<std::vector<Row>> ReadOnWriter(const std::string& key, int most) {
    std::vector<Row> found;
    RETURN_IF_ERROR(Fenced(path_, [&]() -> absl::Status {
      SQLite::Statement rows(database_, "SELECT sequence, event FROM events WHERE key=? ORDER BY sequence LIMIT ?");
      Bind(rows, 1, key);
      rows.bind(2, most);
      TakeRows(rows, found);
      return absl::OkStatus();
    }));
    return found;
  }
  static void TakeRows(SQLite::Statement& rows, std::vector<Row>& found) {
    while (rows.executeStep()) {
      found.push_back({static_cast<uint64_t>(rows.getColumn(0).getInt64()), rows.getColumn(1).getString()});
    }
  }

  void Queue(Change change) {
    pending_.push_back(std::move(change));
    ++queued_;
    if (!is_writing_ && pending_.size() == 1) {
      WriteSoon();
    }
  }

  void WriteSoon() {
    group_timer_.expires_after(kGroupTime);
    group_timer_.async_wait([this](const std::error_code& error) {
      if (!error && !is_writing_ && !pending_.empty()) {
        is_writing_ = true;
        WriteGroup();
      }
    });
  }

  void WriteGroup() {
    group_timer_.cancel();
    auto work = asio::make_work_guard(loop_);
    asio::post(writer_, [this, work, group = std::exchange(pending_, {}), first = done_ + 1] {
      absl::Status status = has_failed_ ? absl::OkStatus() : Commit(group);
      has_failed_ = has_failed_ || !status.ok();
      asio::post(loop_, [this, status, first, size = group.size()] {
        done_ += size;
        if (!status.ok()) {
          failure_ = status;
          failed_from_ = first;
        }
        committed_.Notify();
        if (wanted_ > done_) {
          WriteGroup();
          return;
        }
        is_writing_ = false;
        if (!pending_.empty()) {
          WriteSoon();
        }
      });
    });
  }

  // On the writer's thread; the only user of the database after the start.
  absl::Status Commit(const std::vector<Change>& group) {
    return Fenced(path_, [&]() -> absl::Status {
      SQLite::Transaction transaction(database_);
      bool forgets = false;
      std::unordered_map<std::string_view, const Change*> newest;  // of each name: it alone is to stay
      for (const Change& change : group) {
        if (change.kind == Change::kPut) {
          newest[change.key] = &change;
        }
      }
      for (const Change& change : group) {
        switch (change.kind) {
          case Change::kAppend:
            Run(insert_, "INSERT INTO events VALUES (?, ?, ?)", static_cast<int64_t>(change.sequence),
                change.key, Blob{change.value});
            last_ = change.sequence;
            break;
          case Change::kPut:
            if (newest[change.key] != &change) {
              break;
            }
            Run(put_, "INSERT OR REPLACE INTO vals VALUES (?, ?)", change.key, Blob{change.value});
            break;
          case Change::kForget:
            Run(forget_, "DELETE FROM events WHERE key=?", change.key);
            forgets = true;
            break;
        }
      }
      if (forgets) {  // else the newest event itself says so, and one page less is written
        Run(put_, "INSERT OR REPLACE INTO vals VALUES (?, ?)", std::string("last_sequence"),
            std::to_string(last_));
      }
      transaction.commit();
      return absl::OkStatus();
    });
  }

  static void Bind(SQLite::Statement& statement, int index, int64_t value) {
    statement.bind(index, value);
  }
  static void Bind(SQLite::Statement& statement, int index, const std::string& value) {
    statement.bind(index, value);
  }
  struct Blob { const std::string& bytes; };
  static void Bind(SQLite::Statement& statement, int index, const Blob& blob) {
    statement.bind(index, blob.bytes.data(), static_cast<int>(blob.bytes.size()));
  }
  template <typename... Values>
  void Run(std::unique_ptr<SQLite::Statement>& statement, const char* sql, const Values&... values) {
    if (!statement) {
      statement = std::make_unique<SQLite::Statement>(database_, sql);
    }
    statement->reset();
    int index = 0;
    (Bind(*statement, ++index, values), ...);
    statement->exec();
  }

  Loop& loop_;
  const std::string path_;
  Signal committed_;
  asio::steady_timer group_timer_;
  asio::thread_pool writer_;
  SQLite::Database database_;
  std::unique_ptr<SQLite::Statement> insert_, put_, forget_;

  uint64_t last_ = 0;  // the newest sequence number on disk; the writer's
  uint64_t next_ = 1;
  std::vector<Change> pending_;
  uint64_t queued_ = 0;  // changes ever queued
  uint64_t done_ = 0;    // changes ever tried
  uint64_t wanted_ = 0;  // changes that a Flush waits for
  bool is_writing_ = false;
  bool has_failed_ = false;  // the writer's
  absl::Status failure_;
  uint64_t failed_from_ = UINT64_MAX;  // the change from which on nothing is stored
};

}  // namespace

absl::StatusOr<std::unique_ptr<EventStore>> EventStore::Open(Loop& loop, const std::string& path) {
  std::unique_ptr<SqliteEventStore> store;
  RETURN_IF_ERROR(Fenced(path, [&]() -> absl::Status {
    store = std::make_unique<SqliteEventStore>(loop, path);
    return store->Prepare();
  }));
  return std::unique_ptr<EventStore>(std::move(store));
}

}  // namespace sekisho
