// SPDX-License-Identifier: Apache-2.0
// One write to an LDAP server.
#pragma once

#include <string>

#include "glue/entry.h"

namespace sekisho::glue {

struct Change {
  enum class Kind {
    kDelete,
    kAdd,     // with all attributes
    kModify,  // each attribute gets these values; none: it goes
    kRefresh  // RFC 2589: the entry lives `ttl_s` from now
  };
  Kind kind = Kind::kModify;
  std::string dn;
  Attributes attributes;
  int ttl_s = 0;

  bool operator==(const Change&) const = default;
};

}  // namespace sekisho::glue
