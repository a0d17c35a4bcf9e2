// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/reservations.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/log.h"
#include "common/refusal.h"
#include "common/write_all.h"

namespace sekisho::nxproxy {
namespace {

constexpr size_t kFields = 13;

// No tab and no line break.
std::string Escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '\t' || c == '\n' || c == '\\') {
      out += fmt::format("\\{:02x}", static_cast<unsigned char>(c));
    } else {
      out += c;
    }
  }
  return out;
}

std::string Unescape(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '\\' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ec == std::errc()) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

template <typename Number>
bool Read(std::string_view text, Number& out) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), out);
  return error == std::errc() && end == text.data() + text.size();
}

// False: errno says why.
bool ReadAll(int fd, std::string& text) {
  char buffer[64 * 1024];
  ssize_t n = 0;
  while ((n = read(fd, buffer, sizeof buffer)) > 0 || (n < 0 && errno == EINTR)) {
    text.append(buffer, static_cast<size_t>(n > 0 ? n : 0));
  }
  return n == 0;
}

}  // namespace

std::string ToLine(const Reservation& r) {
  return fmt::format("+\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}", r.id,
                     static_cast<int>(r.scope), r.port, r.backlog, r.is_encrypted ? 1 : 0,
                     Escape(r.ip), r.secret_hash, Escape(r.caller.owner), Escape(r.caller.job),
                     Escape(r.caller.site), Escape(r.inside), Escape(r.label), Escape(r.allow));
}

std::optional<Reservation> ParseReservation(std::string_view line) {
  std::vector<std::string_view> fields;
  while (true) {
    const size_t tab = line.find('\t');
    fields.push_back(line.substr(0, tab));
    if (tab == std::string_view::npos) {
      break;
    }
    line.remove_prefix(tab + 1);
  }
  Reservation out;
  int scope = 0;
  int encrypted = 0;
  if (fields.size() != kFields + 1 || fields[0] != "+" || !Read(fields[1], out.id) ||
      !Read(fields[2], scope) || scope < 1 || scope > 2 || !Read(fields[3], out.port) ||
      out.port == 0 || !Read(fields[4], out.backlog) || !Read(fields[5], encrypted) ||
      fields[7].size() != 64) {
    return std::nullopt;
  }
  out.scope = static_cast<wire::Scope>(scope);
  out.is_encrypted = encrypted != 0;
  out.ip = Unescape(fields[6]);
  out.secret_hash = fields[7];
  out.caller.owner = Unescape(fields[8]);
  out.caller.job = Unescape(fields[9]);
  out.caller.site = Unescape(fields[10]);
  out.inside = Unescape(fields[11]);
  out.label = Unescape(fields[12]);
  out.allow = Unescape(fields[13]);
  return out;
}

std::map<uint64_t, Reservation> Replay(std::string_view journal) {
  std::map<uint64_t, Reservation> out;
  while (!journal.empty()) {
    const size_t end = journal.find('\n');
    if (end == std::string_view::npos) {
      break;  // cut short
    }
    const std::string_view line = journal.substr(0, end);
    journal.remove_prefix(end + 1);
    uint64_t id = 0;
    if (line.starts_with("-\t") && Read(line.substr(2), id)) {
      out.erase(id);
    } else if (const auto reservation = ParseReservation(line)) {
      out[reservation->id] = *reservation;
    }
  }
  return out;
}

absl::StatusOr<std::map<uint64_t, Reservation>> Journal::Open(const std::string& directory) {
  directory_ = directory;
  path_ = directory + "/reservations";
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(fmt::format("{}: {}", directory, std::strerror(errno)));
  }

  // Taken for empty, what cannot be read would be overwritten, and its ports given to others.
  std::string text;
  const Descriptor old(open(path_.c_str(), O_RDONLY | O_CLOEXEC));
  const bool is_there = old.is_open() || errno != ENOENT;
  if (is_there && (!old.is_open() || !ReadAll(old.get(), text))) {
    return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                  fmt::format("{}: cannot read it: {}", path_, std::strerror(errno)),
                  "mend its rights or its disk, or move it away, and its endpoints are lost");
  }
  std::map<uint64_t, Reservation> standing = Replay(text);
  for (const auto& [id, reservation] : standing) {
    Keep(id, ToLine(reservation) + "\n");
  }

  if (const absl::Status rewritten = Rewrite(); !rewritten.ok()) {
    if (!is_there) {
      return rewritten;
    }
    file_ = Descriptor(open(path_.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
    if (!file_.is_open()) {
      return absl::FailedPreconditionError(fmt::format("{}: {}", path_, std::strerror(errno)));
    }
    bytes_ = text.rfind('\n') + 1;  // 0 if there is none
    is_torn_ = bytes_ < text.size();
    spdlog::warn("{}; the old one stays in use", sekisho::Message(rewritten));
  }
  return standing;
}

absl::Status Journal::Add(const Reservation& reservation) {
  std::string line = ToLine(reservation) + "\n";
  RETURN_IF_ERROR(Append(line));
  Keep(reservation.id, std::move(line));
  RewriteIfLong();
  return absl::OkStatus();
}

absl::Status Journal::Remove(uint64_t id) {
  Drop(id);  // also if that cannot be written: the next rewriting leaves it out
  RETURN_IF_ERROR(Append(fmt::format("-\t{}\n", id)));
  RewriteIfLong();
  return absl::OkStatus();
}

void Journal::Keep(uint64_t id, std::string line) {
  Drop(id);
  standing_bytes_ += line.size();
  standing_[id] = std::move(line);
}

void Journal::Drop(uint64_t id) {
  if (const auto at = standing_.find(id); at != standing_.end()) {
    standing_bytes_ -= at->second.size();
    standing_.erase(at);
  }
}

absl::Status Journal::Append(const std::string& line) {
  // Half an entry would swallow this one: it goes first, if it could not when it was written.
  const auto end = static_cast<off_t>(bytes_);
  if ((is_torn_ && ftruncate(file_.get(), end) != 0) || !WriteAll(file_.get(), line)) {
    const int error = errno;
    is_torn_ = ftruncate(file_.get(), end) != 0;
    return absl::InternalError(fmt::format("{}: {}", path_, std::strerror(error)));
  }
  is_torn_ = false;
  bytes_ += line.size();
  return absl::OkStatus();
}

absl::Status Journal::Rewrite() {
  std::string text;
  for (const auto& [id, line] : standing_) {
    text += line;
  }
  const std::string fresh = path_ + ".new";
  Descriptor file(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file.is_open() || !WriteAll(file.get(), text) || fsync(file.get()) != 0 ||
      rename(fresh.c_str(), path_.c_str()) != 0) {
    const absl::Status failed = absl::FailedPreconditionError(
        fmt::format("{}: cannot rewrite it: {}", path_, std::strerror(errno)));
    unlink(fresh.c_str());
    return failed;
  }

  // From here on the old file has no name: the new one is in use, whatever the folder says.
  file_ = std::move(file);
  bytes_ = text.size();
  is_torn_ = false;
  due_bytes_ = 0;
  const Descriptor folder(open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.is_open() || fsync(folder.get()) != 0) {
    spdlog::warn("{}: cannot be synced, an old file may be back after a crash of the machine: {}",
                 directory_, std::strerror(errno));
  }
  return absl::OkStatus();
}

// That at least halves the file: all rewritings together write no more than the entries did.
void Journal::RewriteIfLong() {
  if (bytes_ <= std::max({kRewriteAboveBytes, 2 * standing_bytes_, due_bytes_})) {
    return;
  }
  if (const absl::Status rewritten = Rewrite(); !rewritten.ok()) {
    due_bytes_ = bytes_ + bytes_ / 4;  // not with each entry
    spdlog::warn("{}; the old one stays in use", sekisho::Message(rewritten));
  }
}

}  // namespace sekisho::nxproxy
