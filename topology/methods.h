// SPDX-License-Identifier: Apache-2.0
// Methods by name.
#pragma once

#include <memory>
#include <string_view>

#include "common/status.h"
#include "topology/method.h"

namespace sekisho::topology {

struct MethodOptions {
  uint64_t seed = 1;
  std::vector<int> site_hints;  // of each host, or empty
  int most_at_once = 0;         // measurements of all hosts together; 0: no limit
};

absl::StatusOr<std::unique_ptr<Method>> MakeMethod(std::string_view name, int hosts,
                                                   const MethodOptions& options);

}  // namespace sekisho::topology
