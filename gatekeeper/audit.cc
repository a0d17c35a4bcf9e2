// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/audit.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

namespace sekisho::gatekeeper {
namespace {

constexpr size_t kValueBytesMax = 1024;

std::string Quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const unsigned char c : text.substr(0, kValueBytesMax)) {
    if (c == '"' || c == '\\') {
      quoted += '\\';
      quoted += static_cast<char>(c);
    } else if (c < 0x20 || c >= 0x7f) {
      quoted += fmt::format("\\x{:02X}", c);
    } else {
      quoted += static_cast<char>(c);
    }
  }
  return quoted + (text.size() > kValueBytesMax ? "...\"" : "\"");
}

std::string TimeText(std::chrono::system_clock::time_point time) {
  const auto ms = std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(static_cast<time_t>(ms / 1000)),
                     ms % 1000);
}

// Whether an earlier process could not write its last line to the end.
bool EndsWithin(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (fd < 0) {
    return false;
  }
  struct stat facts {};
  char last = '\n';
  const bool is_read = fstat(fd, &facts) == 0 && S_ISREG(facts.st_mode) && pread(fd, &last, 1, facts.st_size - 1) == 1;
  close(fd);
  return is_read && last != '\n';
}

}  // namespace

std::string AuditLine(const AuditRecord& record) {
  std::string line = fmt::format(
      "{} peer={} subject={} account={} service={} method={} status={} in={} out={} ms={}",
      TimeText(record.time), Quoted(record.peer), Quoted(record.subject), Quoted(record.account),
      Quoted(record.service), Quoted(record.method), record.status, record.bytes_in, record.bytes_out,
      record.took.count());
  if (!record.reason.empty()) {
    line += " reason=" + Quoted(record.reason);
  }
  return line;
}

AuditRecord LeftOut(const std::string& address, uint64_t count) {
  AuditRecord record;
  record.time = std::chrono::system_clock::now();
  record.peer = address;
  record.status = "UNAUTHENTICATED";
  record.reason = fmt::format("and {} more refused calls within {} s", count, StrangerLines::kWindow.count());
  return record;
}

bool StrangerLines::Admit(const std::string& address, Time now) {
  const bool is_known = windows_.count(address) > 0 || windows_.size() < kAddresses;
  Window& window = windows_.try_emplace(is_known ? address : "elsewhere", Window{now}).first->second;
  if (window.lines < kLines) {
    ++window.lines;
    return true;
  }
  ++window.left_out;
  return false;
}

std::vector<std::pair<std::string, uint64_t>> StrangerLines::Due(Time now) {
  std::vector<std::pair<std::string, uint64_t>> due;
  for (auto at = windows_.begin(); at != windows_.end();) {
    if (now - at->second.begun < kWindow) {
      ++at;
      continue;
    }
    if (at->second.left_out > 0) {
      due.emplace_back(at->first, at->second.left_out);
    }
    at = windows_.erase(at);
  }
  return due;
}

AuditLog::~AuditLog() {
  if (fd_ > 2) {
    close(fd_);
  }
}

absl::Status AuditLog::Open() {
  const int fd = path_ == "-" ? STDERR_FILENO
                              : open(path_.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0640);
  if (fd < 0) {
    return absl::FailedPreconditionError(
        fmt::format("audit log {}: {}", path_, std::strerror(errno)));
  }
  if (fd_ > 2) {
    close(fd_);
  }
  fd_ = fd;
  if (path_ != "-" && kept_.empty() && EndsWithin(path_)) {
    kept_ = "\n";
  }
  return absl::OkStatus();
}

absl::Status AuditLog::Write(const AuditRecord& record) {
  if (kept_.size() < kKeptBytesMost) {
    kept_ += AuditLine(record) + "\n";
  } else {
    ++lost_;
  }
  return Flush();
}

absl::Status AuditLog::Flush() {
  while (!kept_.empty()) {
    const ssize_t written = write(fd_, kept_.data(), kept_.size());
    if (written < 0 && errno == EINTR) {
      continue;
    }
    if (written <= 0) {
      return absl::UnavailableError(fmt::format("audit log {}: {}", path_, std::strerror(errno)));
    }
    kept_.erase(0, static_cast<size_t>(written));
    if (kept_.empty() && lost_ > 0) {
      AuditRecord record;
      record.time = std::chrono::system_clock::now();
      record.status = "UNKNOWN";
      record.reason = fmt::format("and {} more calls that could not be written down", std::exchange(lost_, 0));
      kept_ = AuditLine(record) + "\n";
    }
  }
  return absl::OkStatus();
}

uint64_t AuditLog::waiting() const { return uint64_t(std::count(kept_.begin(), kept_.end(), '\n')) + lost_; }

}  // namespace sekisho::gatekeeper
