// SPDX-License-Identifier: Apache-2.0
// Patterns out of OTF2 traces, as Score-P writes them, where the library was there to build with.
// docs/protocol/8-rankmap-files.md, "OTF2".
#pragma once

#include <string>

#include "common/status.h"
#include "rankmap/pattern.h"

namespace sekisho::client {

// `path` is the anchor file, traces.otf2.
absl::StatusOr<rankmap::Pattern> ReadOtf2(const std::string& path);

}  // namespace sekisho::client
