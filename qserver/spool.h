// SPDX-License-Identifier: Apache-2.0
// The output of tasks on disk: DIRECTORY/JOB/TASK.out and TASK.err, and of ranks what is known of their
// connections, TASK.links.  A file's length is what has come.
#pragma once

#include <array>
#include <list>
#include <map>
#include <string>
#include <tuple>

#include "common/status.h"

namespace sekisho::qserver {

class Spool {
 public:
  static constexpr int kLinks = 2;  // a stream besides the two of OutputChunk
  static constexpr uint64_t kLinksMost = 256 * 1024;

  // Nothing is added while the file system has less than `reserve` bytes free: the queue's own database may
  // be on it.
  explicit Spool(std::string directory, uint64_t reserve = 0);
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  absl::Status Prepare();  // makes the directory

  // Adds the bytes of `data`, which begins at `offset`, that are not there yet; returns the new
  // size. What would leave a gap is not taken.  Returned bytes survive a crash of this daemon.
  // ResourceExhausted: no room.
  absl::StatusOr<uint64_t> Append(const std::string& job_id, int task, int stream, uint64_t offset,
                                  const std::string& data);

  uint64_t Size(const std::string& job_id, int task, int stream);
  // At most `limit` bytes from `offset`; empty at the end.
  absl::StatusOr<std::string> Read(const std::string& job_id, int task, int stream, uint64_t offset,
                                   size_t limit);

  void Close(const std::string& job_id);   // no more is expected
  void Remove(const std::string& job_id);  // with all that is in it

 private:
  using Key = std::tuple<std::string, int, int>;
  struct File {
    int fd = -1;
    uint64_t size = 0;
    std::list<Key>::iterator place;
  };
  std::string Path(const Key& key) const;
  absl::StatusOr<File*> Open(const Key& key, bool create);

  const std::string directory_;
  const uint64_t reserve_;
  std::map<Key, File> open_;  // few: the least recently used is closed
  std::list<Key> recent_;
};

}  // namespace sekisho::qserver
