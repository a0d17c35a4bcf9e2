// SPDX-License-Identifier: Apache-2.0
#include "common/identity/gridmap.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include <fmt/format.h>
#include <unistd.h>

#include "common/identity/credential.h"
#include "common/identity/dn.h"
#include "common/identity/files.h"

namespace sekisho::identity {
namespace {

bool IsBlank(char c) { return c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v'; }

void SkipBlanks(std::string_view& line) {
  while (!line.empty() && IsBlank(line.front())) {
    line.remove_prefix(1);
  }
}

absl::Status Expected(const std::string& expected, const std::string& seen) {
  return absl::InvalidArgumentError(fmt::format("expected {}, saw {}", expected, seen));
}

// The subject at the start of `line`, which moves behind it.  \xHH stays as it is for NormalizeDn.
absl::StatusOr<std::string> TakeSubject(std::string_view& line) {
  std::string subject;
  if (line.front() != '"') {
    while (!line.empty() && !IsBlank(line.front())) {
      subject += line.front();
      line.remove_prefix(1);
    }
    return subject;
  }
  line.remove_prefix(1);
  while (!line.empty() && line.front() != '"') {
    if (line.front() != '\\') {
      subject += line.front();
      line.remove_prefix(1);
      continue;
    }
    const char escaped = line.size() > 1 ? line[1] : '\0';
    if (escaped == '"') {
      subject += '"';
      line.remove_prefix(2);
    } else if (escaped == '\\') {
      subject += "\\x5C";
      line.remove_prefix(2);
    } else if (escaped == 'x' && line.size() > 3 &&
               std::isxdigit(static_cast<unsigned char>(line[2])) != 0 &&
               std::isxdigit(static_cast<unsigned char>(line[3])) != 0) {
      subject += line.substr(0, 4);
      line.remove_prefix(4);
    } else {
      return Expected("\\\", \\\\ or \\xHH after the backslash",
                      escaped == '\0' ? "the end of the line" : fmt::format("\\{}", escaped));
    }
  }
  if (line.empty()) {
    return Expected("a closing \" after the subject", "the end of the line");
  }
  line.remove_prefix(1);
  if (!line.empty() && !IsBlank(line.front())) {
    return Expected("a blank after the quoted subject", fmt::format("{}", line.front()));
  }
  return subject;
}

bool IsAccountName(std::string_view account) {
  const auto is_ok = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-' || c == '.' ||
           c == '@' || c == '$';
  };
  constexpr size_t kAccountBytesMax = 256;
  return !account.empty() && account.front() != '-' && account.size() <= kAccountBytesMax &&
         std::all_of(account.begin(), account.end(), is_ok);
}

absl::StatusOr<std::vector<std::string>> TakeAccounts(std::string_view line) {
  std::vector<std::string> accounts;
  while (true) {
    SkipBlanks(line);
    size_t end = 0;
    while (end < line.size() && !IsBlank(line[end]) && line[end] != ',') {
      ++end;
    }
    const std::string_view account = line.substr(0, end);
    if (!IsAccountName(account)) {
      return Expected("an account name",
                      account.empty() ? "nothing" : fmt::format("\"{}\"", account));
    }
    if (accounts.size() == Gridmap::kAccountsMax) {
      return Expected(fmt::format("at most {} accounts", Gridmap::kAccountsMax), "more");
    }
    accounts.emplace_back(account);
    line.remove_prefix(end);
    SkipBlanks(line);
    if (line.empty() || line.front() == '#') {
      return accounts;
    }
    if (line.front() != ',') {
      return Expected("a comma or the end of the line after the account",
                      fmt::format("\"{}\"", line.substr(0, 32)));
    }
    line.remove_prefix(1);
  }
}

bool IsPool(std::string_view account) { return account.starts_with('.'); }

}  // namespace

absl::Status Gridmap::ParseLine(std::string_view line, int number) {
  SkipBlanks(line);
  if (line.empty() || line.front() == '#') {
    return absl::OkStatus();
  }
  if (line.size() > kLineBytesMax) {
    return Expected(fmt::format("a line of at most {} bytes", kLineBytesMax),
                    fmt::format("{} bytes", line.size()));
  }
  if (line.find('\0') != std::string_view::npos) {
    return Expected("text", "a NUL byte");
  }
  ASSIGN_OR_RETURN(const std::string subject, TakeSubject(line));
  if (!subject.starts_with('/')) {
    return Expected("a subject like /C=JP/O=Grid/CN=Taro", fmt::format("\"{}\"", subject));
  }
  ASSIGN_OR_RETURN(std::vector<std::string> accounts, TakeAccounts(line));
  lines_.emplace(NormalizeDn(subject), Line{number, std::move(accounts)});
  return absl::OkStatus();
}

absl::StatusOr<Gridmap> Gridmap::Parse(std::string_view text, const std::string& name) {
  if (text.size() > kBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("{}: {} bytes, more than the {} allowed", name, text.size(), kBytesMax));
  }
  Gridmap map(name);
  for (int number = 1; !text.empty(); ++number) {
    const size_t end = std::min(text.find('\n'), text.size());
    const absl::Status status = map.ParseLine(text.substr(0, end), number);
    if (!status.ok()) {
      const std::string message(status.message().data(), status.message().size());
      return absl::InvalidArgumentError(fmt::format("{}:{}: {}", name, number, message));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return map;
}

absl::StatusOr<Gridmap> Gridmap::Load(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadIdentityFile(path, Secrecy::kPublic));
  return Parse(text, path);
}

absl::StatusOr<std::string> Gridmap::Lookup(std::string_view subject) const {
  return Lookup(subject, "");
}

absl::StatusOr<std::string> Gridmap::Lookup(std::string_view subject,
                                            std::string_view wanted) const {
  const auto found = lines_.find(NormalizeDn(subject));
  if (found == lines_.end()) {
    return absl::PermissionDeniedError(
        fmt::format("{} is not mapped to an account (a line in {} is missing)", subject, name_));
  }
  const Line& line = found->second;
  const bool any = wanted.empty();
  const auto account =
      any ? line.accounts.begin() : std::find(line.accounts.begin(), line.accounts.end(), wanted);
  if (account == line.accounts.end()) {
    return absl::PermissionDeniedError(
        fmt::format("{} may not use the account {} ({}:{} does not list it)", subject, wanted,
                    name_, line.number));
  }
  if (IsPool(*account)) {
    return absl::PermissionDeniedError(
        fmt::format("{}:{} maps {} to the account pool {}: pools are not supported, list accounts",
                    name_, line.number, subject, *account));
  }
  return *account;
}

std::vector<std::string> Gridmap::Accounts(std::string_view subject) const {
  const auto found = lines_.find(NormalizeDn(subject));
  return found == lines_.end() ? std::vector<std::string>() : found->second.accounts;
}

std::string DefaultGridmapPath() {
  if (const char* set = std::getenv("GRIDMAP"); set != nullptr && *set != '\0') {
    return set;
  }
  return geteuid() == 0 ? "/etc/grid-security/grid-mapfile" : HomeDirectory() + "/.gridmap";
}

}  // namespace sekisho::identity
