// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/reservations.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

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
  path_ = directory + "/reservations";
  if (mkdir(directory.c_str(), 0700) != 0 && errno != EEXIST) {
    return absl::FailedPreconditionError(fmt::format("{}: {}", directory, std::strerror(errno)));
  }
  std::ostringstream text;
  text << std::ifstream(path_).rdbuf();
  std::map<uint64_t, Reservation> standing = Replay(text.str());
  const std::string fresh = path_ + ".new";
  file_ =
      Descriptor(open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0600));
  if (!file_.is_open()) {
    return absl::FailedPreconditionError(fmt::format("{}: {}", fresh, std::strerror(errno)));
  }
  for (const auto& [id, reservation] : standing) {
    RETURN_IF_ERROR(Add(reservation));
  }
  if (fsync(file_.get()) != 0 || rename(fresh.c_str(), path_.c_str()) != 0) {
    return absl::FailedPreconditionError(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
  return standing;
}

absl::Status Journal::Append(const std::string& line) {
  const std::string whole = line + "\n";
  if (write(file_.get(), whole.data(), whole.size()) != static_cast<ssize_t>(whole.size())) {
    return absl::InternalError(fmt::format("{}: {}", path_, std::strerror(errno)));
  }
  return absl::OkStatus();
}

absl::Status Journal::Add(const Reservation& reservation) { return Append(ToLine(reservation)); }
absl::Status Journal::Remove(uint64_t id) { return Append(fmt::format("-\t{}", id)); }

}  // namespace sekisho::nxproxy
