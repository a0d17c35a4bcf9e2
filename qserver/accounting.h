// SPDX-License-Identifier: Apache-2.0
// The site's accounting: a line of JSON for each job that has ended.  docs/operations/accounting.md.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho::qserver {

// Pure.  `ended`: the job's last event, which `job` has folded in.
std::string AccountingLine(const proto::JobStatus& job, const proto::JobEvent& ended);

// The file, which may be moved away at any time: a new one is made.  Lines that cannot be written (a full disk)
// wait, in their order.
class AccountingFile {
 public:
  explicit AccountingFile(std::string path) : path_(std::move(path)) {}

  // Reads how far it is; takes away what a crash has left of a line.
  absl::Status Prepare();
  // Ends up to this number are in a file, perhaps an older one.
  void SkipTo(uint64_t sequence) { last_ = std::max(last_, sequence); }
  bool Wants(uint64_t sequence) const { return sequence > last_; }
  // False: it waits for room.
  bool Write(uint64_t sequence, const std::string& line);

 private:
  bool WriteOut(const std::string& line);

  const std::string path_;
  uint64_t last_ = 0;
  std::deque<std::string> waiting_;
  bool has_complained_ = false;
};

}  // namespace sekisho::qserver
