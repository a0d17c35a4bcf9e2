// SPDX-License-Identifier: Apache-2.0
// The audit log: one line a call, docs/operations/gatekeeper.md, "Audit log".
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

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

// The line that stands for `count` refused calls of `address` that have none of their own.
AuditRecord LeftOut(const std::string& address, uint64_t count);

// Callers who are not authenticated may not fill the disk: some lines an address and window, and then how
// many more there were.  Pure.
class StrangerLines {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds kWindow{10};
  static constexpr int kLines = 10;
  static constexpr size_t kAddresses = 1024;  // beyond, they share one entry

  // Whether a refused call of `address` gets a line.
  bool Admit(const std::string& address, Time now);
  // What was left out in windows that are over.
  std::vector<std::pair<std::string, uint64_t>> Due(Time now);

 private:
  struct Window {
    Time begun;
    int lines = 0;
    uint64_t left_out = 0;
  };
  std::map<std::string, Window> windows_;
};

class AuditLog {
 public:
  // "-" is stderr.
  explicit AuditLog(std::string path) : path_(std::move(path)) {}
  ~AuditLog();
  AuditLog(const AuditLog&) = delete;
  AuditLog& operator=(const AuditLog&) = delete;

  // Also again, after the file was rotated away.
  absl::Status Open();

  // A line that cannot be written (a full disk) is kept, and goes before the next.
  absl::Status Write(const AuditRecord& record);

  // An error: lines are waiting that cannot be written.
  absl::Status Flush();

  // How many; they end with this process.
  uint64_t waiting() const;

 private:
  // Of calls that were in progress, or refused, while nothing could be written.
  static constexpr size_t kKeptBytesMost = 8 << 20;

  const std::string path_;
  int fd_ = -1;
  std::string kept_;  // whole lines but perhaps the first, whose beginning is in the file
  uint64_t lost_ = 0;
};

}  // namespace sekisho::gatekeeper
