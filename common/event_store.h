// SPDX-License-Identifier: Apache-2.0
// A daemon's durable memory: one table of events in SQLite (WAL), written in groups so that durability
// does not cost throughput, and a few named values that change in the same transaction.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/loop.h"
#include "common/status.h"

namespace sekisho {

class EventStore {
 public:
  virtual ~EventStore() = default;

  // Opens or makes the database.  FailedPrecondition if it was written by a newer version.
  static absl::StatusOr<std::unique_ptr<EventStore>> Open(Loop& loop, const std::string& path);

  // Every event in the order it was appended.  At start, before anything else.
  virtual absl::Status Replay(
      const std::function<absl::Status(uint64_t sequence, const std::string& key,
                                       const std::string& event)>& visit) = 0;
  // The value last put under `name`, or "".
  virtual absl::StatusOr<std::string> Value(const std::string& name) = 0;

  // The sequence number that the next Append will give.
  virtual uint64_t next_sequence() const = 0;
  // It is to be at least this.  Before anything is appended.
  virtual void SkipTo(uint64_t sequence) = 0;

  // Queue a change; it is durable once Flush() has returned OK, or soon: what nobody waits for shares a
  // group with what comes within some milliseconds.  Changes reach the disk in this order.
  virtual uint64_t Append(std::string key, std::string event) = 0;
  virtual void Put(std::string name, std::string value) = 0;
  virtual void Forget(std::string key) = 0;  // removes all events of this key

  // What is on disk.  Flush() before, to see all that was queued.  A read waits for the group that is being written:
  // who needs many events asks for all at once.
  struct Row {
    uint64_t sequence = 0;
    std::string event;
  };
  virtual awaitable<absl::StatusOr<std::vector<Row>>> Read(std::vector<uint64_t> sequences) = 0;  // those there are
  virtual awaitable<absl::StatusOr<std::vector<Row>>> Read(std::string key) = 0;  // of one key, oldest first
  virtual awaitable<absl::StatusOr<std::vector<Row>>> ReadFirst(std::string key) = 0;  // the oldest, if any

  // Waits until all that was queued before this call is on disk.  After an error nothing more is stored, and
  // every Flush fails: what came later may count on what was lost.
  virtual awaitable<absl::Status> Flush() = 0;
  // Returns when something could not be stored.
  virtual awaitable<absl::Status> Failed() = 0;
};

}  // namespace sekisho
