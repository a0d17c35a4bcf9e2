// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_plan.h"

#include <fmt/format.h>

#include "common/refusal.h"
#include "rsl/printer.h"

namespace sekisho::client {

absl::StatusOr<std::string> PartRsl(const JobOptions& job, const RankRange& part) {
  JobOptions own = job;
  own.count = part.count;
  if (!part.program.empty() && !own.command.empty()) {
    own.command.front() = part.program;
  }
  own.job_type = "multiple";  // each rank is a task: agents start them, no launcher of the site
  return ToRsl(own);
}

absl::StatusOr<std::string> MultiRequestRsl(const JobOptions& job,
                                            const std::vector<RankRange>& parts) {
  std::string text = "+\n";
  for (size_t i = 0; i < parts.size(); ++i) {
    JobOptions own = job;
    own.environment.push_back(fmt::format("GLOBUS_DUROC_SUBJOB_INDEX={}", i));
    ASSIGN_OR_RETURN(std::string rsl, PartRsl(own, parts[i]));
    const std::string& start = parts[i].start_type;
    text +=
        fmt::format("(&(resourceManagerContact={})(label=\"subjob {}\"){}{})\n",
                    rsl::PrintLiteral(ContactOfMachine(parts[i].contact)), i,
                    start.empty() ? "" : fmt::format("(subjobStartType={})", start), rsl.substr(1));
  }
  return text;
}

}  // namespace sekisho::client
