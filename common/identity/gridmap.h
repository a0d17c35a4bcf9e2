// SPDX-License-Identifier: Apache-2.0
// The grid-mapfile: which subject may use which local accounts: docs/protocol/2-identity.md.  Pure,
// but for Load.
//
//   "/C=JP/O=Grid/CN=Taro" taro,guest     # the first account is the default
//
// A subject in quotes knows \", \\ and \xHH; one without ends at a blank.  `#` begins a comment, on
// a line of its own or behind the accounts.  Where a subject stands on several lines the first
// counts, as in Globus.  A line that cannot be read makes the whole file an error: a mapping is
// never guessed.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::identity {

class Gridmap {
 public:
  static constexpr size_t kBytesMax = 16 * 1024 * 1024;
  static constexpr size_t kLineBytesMax = 64 * 1024;
  static constexpr size_t kAccountsMax = 256;

  // InvalidArgument "NAME:LINE: what was expected, what was seen".
  static absl::StatusOr<Gridmap> Parse(std::string_view text, const std::string& name);

  // NotFound or PermissionDenied if the file cannot be read, InvalidArgument as Parse.
  static absl::StatusOr<Gridmap> Load(const std::string& path);

  // The subject's default account.  PermissionDenied if it is not mapped, or to a pool.
  absl::StatusOr<std::string> Lookup(std::string_view subject) const;

  // `wanted` if the subject may use it; empty means the default.
  absl::StatusOr<std::string> Lookup(std::string_view subject, std::string_view wanted) const;

  // All that the line lists, the default first; empty if the subject is not mapped.
  std::vector<std::string> Accounts(std::string_view subject) const;

  size_t size() const { return lines_.size(); }

 private:
  struct Line {
    int number = 0;
    std::vector<std::string> accounts;
  };
  explicit Gridmap(std::string name) : name_(std::move(name)) {}
  absl::Status ParseLine(std::string_view line, int number);

  std::string name_;
  std::map<std::string, Line, std::less<>> lines_;  // by normalized subject
};

// $GRIDMAP; else /etc/grid-security/grid-mapfile for root, ~/.gridmap for others.
std::string DefaultGridmapPath();

}  // namespace sekisho::identity
