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

absl::StatusOr<SiteRelay> ChooseRelay(const std::vector<SiteRelay>& sites) {
  const SiteRelay* chosen = nullptr;
  for (const SiteRelay& site : sites) {
    if (!site.relay.is_only_way()) {
      continue;
    }
    if (chosen != nullptr && chosen->relay.address() != site.relay.address()) {
      return Refuse(
          absl::StatusCode::kFailedPrecondition, 3,
          fmt::format("the nodes of {} and of {} reach no common relay", chosen->site, site.site),
          "run the program at sites of which one at most is so closed");
    }
    chosen = &site;
  }
  for (auto site = sites.begin(); chosen == nullptr && site != sites.end(); ++site) {
    chosen = site->relay.address().empty() ? nullptr : &*site;
  }
  if (chosen == nullptr) {
    return Refuse(absl::StatusCode::kFailedPrecondition, 3,
                  "none of the sites has a relay for MPI ranks",
                  "ask an administrator to set \"relay\" in the queue server's configuration");
  }
  return *chosen;
}

}  // namespace sekisho::client
