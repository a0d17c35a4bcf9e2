// SPDX-License-Identifier: Apache-2.0
// The site's accounting: a line of JSON for each job that has ended.  docs/operations/accounting.md.
#pragma once

#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho::qserver {

// Pure.  `ended`: the job's last event, which `job` has folded in.
std::string AccountingLine(const proto::JobStatus& job, const proto::JobEvent& ended);

// The file, which may be moved away at any time: a new one is made.  Lines that cannot be written (a full disk)
// wait, in their order.  What is written outlives this process; what is synced, a power cut too.
class AccountingFile {
 public:
  using Sync = std::function<int(int fd)>;  // as fdatasync
  explicit AccountingFile(std::string path, Sync sync = fdatasync) : path_(std::move(path)), sync_(std::move(sync)) {}

  // Reads how far it is; takes away what a crash has left of a line.
  absl::Status Prepare();
  // Ends up to this number are in a file, perhaps an older one.
  void SkipTo(uint64_t sequence) { last_ = std::max(last_, sequence); }
  bool Wants(uint64_t sequence) const { return sequence > last_; }
  // False: it waits for room.
  bool Write(uint64_t sequence, const std::string& line);

  // Ends up to this number are written, and on disk once `sync` has said OK.  It blocks, and may run on any thread,
  // also when the file is gone.
  struct Unsynced {
    uint64_t sequence = 0;
    std::function<absl::Status()> sync;
  };
  bool has_unsynced() const { return written_ > taken_; }
  Unsynced TakeUnsynced();  // since the last time

 private:
  class Descriptor;
  bool WriteOut(const std::string& line);

  const std::string path_;
  const Sync sync_;
  uint64_t last_ = 0;
  uint64_t written_ = 0;  // with all before it
  uint64_t taken_ = 0;    // by TakeUnsynced
  std::vector<std::shared_ptr<const Descriptor>> unsynced_;  // more than one, if it was moved away meanwhile
  std::pair<dev_t, ino_t> newest_;                           // of these
  std::deque<std::string> waiting_;
  bool has_complained_ = false;
};

}  // namespace sekisho::qserver
