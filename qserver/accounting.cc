// SPDX-License-Identifier: Apache-2.0
#include "qserver/accounting.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <set>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "common/job_state.h"
#include "common/log.h"
#include "common/refusal.h"
#include "qserver/pilot_node.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kTailBytes = 256 << 10;  // longer than any line

std::string Iso(int64_t ms) {
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::time_t(ms / 1000)), ms % 1000);
}

double Seconds(int64_t from_ms, int64_t to_ms) {
  return from_ms > 0 ? double(std::max<int64_t>(to_ms - from_ms, 0)) / 1000 : 0;
}

}  // namespace

class AccountingFile::Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  const int fd_;
};

std::string AccountingLine(const proto::JobStatus& job, const proto::JobEvent& ended) {
  const auto& end = ended.ended();
  const bool has_program = end.exit().code() != 0 || end.exit().signal() != 0 || end.state() == proto::DONE;
  std::set<std::string> nodes;
  int processors = 0;
  for (const proto::Placement& place : job.placement()) {
    nodes.insert(HostOf(place.node(), job.job_id()));
    processors += std::max(place.processes(), 1);
  }
  const double wall_s = Seconds(job.started_ms(), ended.time_ms());
  nlohmann::ordered_json line = {
      {"version", 1},
      {"sequence", ended.sequence()},
      {"job", job.site() + "/" + job.job_id()},
      {"site", job.site()},
      {"subject", job.subject()},
      {"account", job.account()},
      {"project", job.project()},
      {"service", job.service()},
      {"queue", job.queue()},
      {"resource", job.resource()},
      {"engine_job", job.engine_job()},
      {"executable", job.executable()},
      {"nodes", nodes},
      {"processors", processors},
      {"submitted", Iso(job.submitted_ms())},
      {"started", nullptr},
      {"ended", Iso(ended.time_ms())},
      {"wait_s", Seconds(job.submitted_ms(), job.started_ms() > 0 ? job.started_ms() : ended.time_ms())},
      {"wall_s", wall_s},
      {"processor_s", wall_s * processors},
      {"cpu_s", double(end.cpu_ms()) / 1000},
      {"max_rss_mb", double(end.max_rss_kb()) / 1024},
      {"state", StateName(end.state())},
      {"exit_code", nullptr},
      {"signal", nullptr},
      {"gram_code", end.gram_code()},
      {"reason", end.reason()},
  };
  if (job.started_ms() > 0) {
    line["started"] = Iso(job.started_ms());
  }
  if (has_program && end.exit().signal() != 0) {
    line["signal"] = end.exit().signal();
  } else if (has_program) {
    line["exit_code"] = end.exit().code();
  }
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::Status AccountingFile::Prepare() {
  const auto failed = [&](const char* what) {
    return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                  fmt::format("{}: cannot {} it: {}", path_, what, std::strerror(errno)),
                  "\"accounting\" in the queue server's configuration names the file, or is \"none\"");
  };
  const Descriptor file(open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  struct stat facts {};
  if (file.get() < 0 || fstat(file.get(), &facts) != 0) {
    return failed("open");
  }
  const size_t size = size_t(facts.st_size);
  std::string tail(std::min(size, kTailBytes), '\0');
  if (pread(file.get(), tail.data(), tail.size(), off_t(size - tail.size())) != ssize_t(tail.size())) {
    return failed("read");
  }
  const size_t whole = tail.rfind('\n') + 1;  // 0 if there is none
  if (whole < tail.size() && ftruncate(file.get(), off_t(size - tail.size() + whole)) != 0) {
    return failed("mend");
  }
  if (fdatasync(file.get()) != 0) {  // what an earlier life has written is taken for written
    return failed("sync");
  }
  if (whole > 1) {
    const size_t begin = tail.rfind('\n', whole - 2) + 1;
    const auto line = nlohmann::json::parse(tail.substr(begin, whole - begin), nullptr, false);
    if (line.is_object() && line.contains("sequence") && line["sequence"].is_number_unsigned()) {
      SkipTo(line["sequence"].get<uint64_t>());
    }
  }
  return absl::OkStatus();
}

bool AccountingFile::Write(uint64_t sequence, const std::string& line) {
  if (!Wants(sequence)) {
    return true;
  }
  last_ = sequence;
  waiting_.push_back(line);
  while (!waiting_.empty() && WriteOut(waiting_.front())) {
    waiting_.pop_front();
  }
  if (!waiting_.empty()) {
    return false;
  }
  written_ = last_;
  return true;
}

AccountingFile::Unsynced AccountingFile::TakeUnsynced() {
  taken_ = written_;
  return {taken_, [files = std::exchange(unsynced_, {}), sync = sync_, path = path_]() -> absl::Status {
            for (const auto& file : files) {
              if (sync(file->get()) != 0) {
                return absl::UnavailableError(fmt::format("{}: {}", path, std::strerror(errno)));
              }
            }
            return absl::OkStatus();
          }};
}

bool AccountingFile::WriteOut(const std::string& line) {
  const auto file = std::make_shared<const Descriptor>(open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
  struct stat facts {};
  const bool is_open = file->get() >= 0 && fstat(file->get(), &facts) == 0;
  const ssize_t written = is_open ? write(file->get(), line.data(), line.size()) : -1;
  if (written == ssize_t(line.size())) {
    has_complained_ = false;
    const std::pair<dev_t, ino_t> which(facts.st_dev, facts.st_ino);
    if (unsynced_.empty() || which != newest_) {
      newest_ = which;
      unsynced_.push_back(file);
    }
    return true;
  }
  const int error = errno;
  if (written > 0 && ftruncate(file->get(), facts.st_size) != 0) {
    spdlog::error("{}: half a line stays in it", path_);
  }
  if (!has_complained_) {
    has_complained_ = true;
    spdlog::error("{}: cannot be written, its lines wait: {}", path_,
                  written >= 0 ? "no room" : std::strerror(error));
  }
  return false;
}

}  // namespace sekisho::qserver
