// SPDX-License-Identifier: Apache-2.0
// What `sekisho mpirun` is told of the parts at one site: --per-site-exe.  Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/machine_file.h"
#include "common/status.h"

namespace sekisho::client {

// By contact.
struct PartChoices {
  std::map<std::string, std::string> program;
};

// `programs`: CONTACT=PATH.  InvalidArgument if one is not.
absl::StatusOr<PartChoices> ParsePartChoices(const std::vector<std::string>& programs);

// InvalidArgument if a choice names a site that no part is at.
absl::Status ApplyChoices(const PartChoices& choices, std::vector<RankRange>& parts);

}  // namespace sekisho::client
