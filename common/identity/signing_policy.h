// SPDX-License-Identifier: Apache-2.0
// A signing policy, <hash>.signing_policy: which names an authority may certify (Globus EACL).
// Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::identity {

class SigningPolicy {
 public:
  // InvalidArgument "LINE: what was expected, what was seen".
  static absl::StatusOr<SigningPolicy> Parse(std::string_view text);

  // May `authority` certify `subject` (both as DnText)?  `*` in a pattern is any run of characters,
  // `?` any one; letters match without regard to case, as Globus does it.
  bool Allows(std::string_view authority, std::string_view subject) const;

  bool Names(std::string_view authority) const;

 private:
  struct Entry {
    std::string authority;              // normalized DN; "*" is any
    bool may_sign = false;              // pos_rights globus CA:sign
    std::vector<std::string> subjects;  // normalized patterns
  };
  std::vector<Entry> entries_;
};

// Pattern with `*` and `?` against all of `text`, without regard to case.
bool MatchesPattern(std::string_view pattern, std::string_view text);

}  // namespace sekisho::identity
