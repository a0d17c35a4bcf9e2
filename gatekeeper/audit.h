// SPDX-License-Identifier: Apache-2.0
// The audit log: one line a call, docs/operations/gatekeeper.md, "Audit log".
#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "common/status.h"

namespace sekisho::gatekeeper {

struct AuditRecord {
  std::chrono::system_clock::time_point time;  // when the call began
  std::string peer;
  std::string subject;
  std::string account;
  std::string service;
  std::string method;
  std::string status;  // gRPC's code by name
  std::string reason;  // of a refusal
  uint64_t bytes_in = 0;
  uint64_t bytes_out = 0;
  std::chrono::milliseconds took{0};
};

// One line, without its end.  Whatever the record holds, the line has no line break, no control
// character and no unbalanced quote: values are quoted, other bytes are \xHH.
std::string AuditLine(const AuditRecord& record);

class AuditLog {
 public:
  // "-" is stderr.
  explicit AuditLog(std::string path) : path_(std::move(path)) {}
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Also again, after the file was rotated away.
  absl::Status Open();
  absl::Status Write(const AuditRecord& record);

 private:
  const std::string path_;
  int fd_ = -1;
};

}  // namespace sekisho::gatekeeper
