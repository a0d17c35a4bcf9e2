// SPDX-License-Identifier: Apache-2.0
// From what `sekisho mpirun` is asked to the parts that sites are: docs/protocol/15-mpirun.md.
// Pure.
#pragma once

#include <string>
#include <vector>

#include "client/job/request.h"
#include "client/world/machine_file.h"
#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho::client {

// A part's RSL, as it is sent to its site.
absl::StatusOr<std::string> PartRsl(const JobOptions& job, const RankRange& part);

// All parts as one multi-request, as DUROC has it.
absl::StatusOr<std::string> MultiRequestRsl(const JobOptions& job,
                                            const std::vector<RankRange>& parts);

}  // namespace sekisho::client
