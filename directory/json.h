// SPDX-License-Identifier: Apache-2.0
// The entries as JSON, for readers that have no LDAP: docs/protocol/16-directory.md, "JSON".  Pure.
#pragma once

#include <vector>

#include <nlohmann/json.hpp>

#include "glue/entry.h"

namespace sekisho::directory {

// {"AdminDomain": [{"ID": ..., "Name": ...}], "ComputingShare": [...], ...}
nlohmann::ordered_json ToJson(const std::vector<glue::Entry>& entries);

}  // namespace sekisho::directory
