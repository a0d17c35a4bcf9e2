// SPDX-License-Identifier: Apache-2.0
#include "client/world/relay_choice.h"

#include <fmt/format.h>

#include "common/refusal.h"

namespace sekisho::client {

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
    return Refuse(absl::StatusCode::kFailedPrecondition, 3, "none of the sites has a relay",
                  "ask an administrator to set \"relay\" in the queue server's configuration");
  }
  return *chosen;
}

}  // namespace sekisho::client
