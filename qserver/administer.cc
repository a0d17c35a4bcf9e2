// SPDX-License-Identifier: Apache-2.0
#include "qserver/administer.h"

#include <algorithm>
#include <cerrno>
#include <cstring>

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <sys/stat.h>
#include <unistd.h>

#include "common/identity/dn.h"
#include "common/log.h"
#include "qserver/administer_errors.h"
#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

using Administer = proto::RequestBody::Administer;

constexpr size_t kReasonMost = 1024;
constexpr size_t kSubjectMost = 4096;

const std::string& ReasonOf(const Administer& word) {
  static const std::string none;
  return word.has_ban() ? word.ban().reason() : word.has_drain() ? word.drain().reason()
                                          : word.has_kill()      ? word.kill().reason()
                                                                 : none;
}

const char* NameOf(const Administer& word) {
  switch (word.what_case()) {
    case Administer::kLost:
      return "lost";
    case Administer::kBan:
      return word.ban().lift() ? "unban" : "ban";
    case Administer::kDrain:
      return word.drain().lift() ? "resume" : "drain";
    case Administer::kKill:
      return "kill";
    default:
      return "show";
  }
}

// Where the last whole line ends; -1: errno.
off_t EndOfLines(int fd, off_t size) {
  constexpr off_t kPiece = 4096;
  std::string piece;
  for (off_t end = size; end > 0;) {
    const off_t begin = std::max<off_t>(end - kPiece, 0);
    piece.resize(size_t(end - begin));
    const ssize_t got = pread(fd, piece.data(), piece.size(), begin);
    if (got != ssize_t(piece.size())) {
      errno = got < 0 ? errno : EIO;
      return -1;
    }
    if (const size_t at = piece.rfind('\n'); at != std::string::npos) {
      return begin + off_t(at) + 1;
    }
    end = begin;
  }
  return 0;
}

// Takes away what a crash has left of a line; how long the file is then.  -1: errno.
off_t Mend(int fd, const std::string& path) {
  struct stat facts {};
  if (fstat(fd, &facts) != 0) {
    return -1;
  }
  const off_t end = EndOfLines(fd, facts.st_size);
  if (end >= 0 && end < facts.st_size) {
    if (ftruncate(fd, end) != 0) {
      return -1;
    }
    spdlog::warn("{}: half a line at its end was removed", path);
  }
  return end;
}

}  // namespace

absl::Status CheckWord(const Administer& word, const AdmissionRules& rules,
                       const std::function<bool(const std::string& node)>& is_node) {
  if (const std::string& reason = ReasonOf(word); reason.size() > kReasonMost) {
    return errors::ReasonTooLong(reason.size(), kReasonMost);
  }
  switch (word.what_case()) {
    case Administer::kBan: {
      const std::string& subject = word.ban().subject();
      if (!subject.starts_with("/") || subject.size() > kSubjectMost || subject.find('=') == std::string::npos) {
        return errors::NotASubject(subject.substr(0, 80));
      }
      const bool is_one = rules.administrators.count(identity::NormalizeDn(subject)) > 0;
      return is_one && !word.ban().lift() ? errors::IsAdministrator(subject) : absl::OkStatus();
    }
    case Administer::kDrain: {
      const std::string& node = word.drain().node();
      const bool is_there = node.empty() || word.drain().lift() || is_node(node);
      return is_there ? absl::OkStatus() : errors::NoSuchNode(node.substr(0, 80));
    }
    case Administer::kLost:
    case Administer::kKill:
    case Administer::kShow:
      return absl::OkStatus();
    default:
      return errors::BadRequest("expected what an administrator may ask");
  }
}

std::string ObjectOf(const Administer& word) {
  switch (word.what_case()) {
    case Administer::kLost:
      return "node " + word.lost().node();
    case Administer::kBan:
      return "subject " + identity::NormalizeDn(word.ban().subject());
    case Administer::kDrain:
      return "drain " + word.drain().node();
    default:
      return "kill " + word.kill().job_id();
  }
}

std::string AuditLine(const Administer& word, const std::string& by, const std::string& request_id,
                      const std::vector<std::string>& jobs, int64_t now_ms) {
  nlohmann::ordered_json line = {
      {"time", fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::time_t(now_ms / 1000)), now_ms % 1000)},
      {"by", by},
      {"what", NameOf(word)},
      {"request", request_id},
  };
  if (word.has_ban()) {
    line["subject"] = word.ban().subject();
    line["keep_jobs"] = word.ban().keep_jobs();
  } else if (word.has_drain() || word.has_lost()) {
    line["node"] = word.has_drain() ? word.drain().node() : word.lost().node();
  }
  line["reason"] = ReasonOf(word);
  line["jobs"] = jobs;
  return line.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
}

absl::Status AuditFile::Write(const std::string& line) {
  if (!line.empty()) {
    waiting_.push_back(line);
  }
  while (!waiting_.empty()) {
    RETURN_IF_ERROR(Append(waiting_.front()));
    waiting_.pop_front();
  }
  return absl::OkStatus();
}

// All of it or, as far as the file can be cut again, nothing: it is to be written once.
absl::Status AuditFile::Append(const std::string& line) {
  const int fd = open(path_.c_str(), O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  const off_t end = fd >= 0 ? Mend(fd, path_) : -1;
  const ssize_t written = end >= 0 ? write(fd, line.data(), line.size()) : -1;
  const bool is_whole = written == ssize_t(line.size());
  const bool is_on_disk = is_whole && fdatasync(fd) == 0;
  const int error = written >= 0 && !is_whole ? ENOSPC : errno;
  if (!is_on_disk && written > 0 && ftruncate(fd, end) != 0) {
    spdlog::error("{}: a line that is written again stays in it", path_);
  }
  if (fd >= 0) {
    close(fd);
  }
  return is_on_disk ? absl::OkStatus() : absl::UnavailableError(fmt::format("{}: {}", path_, std::strerror(error)));
}

}  // namespace sekisho::qserver
