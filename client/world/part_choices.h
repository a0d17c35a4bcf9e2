// SPDX-License-Identifier: Apache-2.0
// What `sekisho mpirun` is told of the parts at one site: --per-site-exe, --start-type.  Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/world/machine_file.h"
#include "common/status.h"

namespace sekisho::client {

// By contact; "" stands for all that are not named.
struct PartChoices {
  std::map<std::string, std::string> program;
  std::map<std::string, std::string> start_type;
};

// `programs`: CONTACT=PATH.  `start_types`: TYPE or CONTACT=TYPE, DUROC's three.  InvalidArgument
// if one is neither.
absl::StatusOr<PartChoices> ParsePartChoices(const std::vector<std::string>& programs,
                                             const std::vector<std::string>& start_types);

// InvalidArgument if a choice names a site that no part is at.
absl::Status ApplyChoices(const PartChoices& choices, std::vector<RankRange>& parts);

}  // namespace sekisho::client
