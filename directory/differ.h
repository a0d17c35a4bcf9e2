// SPDX-License-Identifier: Apache-2.0
// From what a server has to what it should have, by the fewest writes: docs/protocol/16-directory.md,
// "Differences".  Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "glue/change.h"
#include "glue/entry.h"

namespace sekisho::directory {

// What the server has, by canonical name.
struct Known {
  glue::Entry entry;
  int64_t renewed_s = 0;   // when we last said that it is true; 0: not yet
  bool is_wanted = false;  // else it is left to age
};
using Published = std::map<std::string, Known>;

struct DiffRules {
  int64_t now_s = 0;
  int validity_s = 0;
  int renew_after_s = 0;
  bool has_expiry = false;  // the server lets entries expire by itself
  bool removes = true;      // what is not wanted goes; else it is left to age, and forgotten with its validity
};

// What to write, in this order; `published` is as after it.
std::vector<glue::Change> Diff(Published& published, const std::vector<glue::Entry>& wanted,
                               const DiffRules& rules);

// When Diff has something to renew although nothing changed; INT64_MAX: never.
int64_t NextRenewal(const Published& published, const DiffRules& rules);

}  // namespace sekisho::directory
