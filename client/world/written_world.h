// SPDX-License-Identifier: Apache-2.0
// `sekisho mpirun -globusrsl FILE`: a program over several sites as its user wrote it down, as DUROC's
// multi-request.  docs/protocol/15-mpirun.md, "-globusrsl".  Pure.
#pragma once

#include <string>
#include <vector>

#include "client/world/machine_file.h"
#include "common/status.h"

namespace sekisho::client {

struct WrittenPart {
  RankRange ranks;
  std::string rsl;  // as its site gets it: a task for each rank
};

// InvalidArgument "SOURCE:LINE:COLUMN: ...".
absl::StatusOr<std::vector<WrittenPart>> ParseWrittenWorld(const std::string& text,
                                                           const std::string& source);

}  // namespace sekisho::client
