// SPDX-License-Identifier: Apache-2.0
// The sites of a world's parts: a session with each, what each says of itself, where ranks meet.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "client/site/session.h"
#include "client/world/machine_file.h"
#include "client/world/relay_choice.h"
#include "client/world/world_plan.h"

namespace sekisho::client {

struct WorldSite {
  Session* session = nullptr;  // lives as long as the process, as all sessions
  proto::SiteInfo info;
};
using WorldSites = std::map<std::string, WorldSite>;  // by contact, as the parts name it

absl::StatusOr<WorldSites> OpenSites(Loop& loop, const std::vector<RankRange>& parts);

// Fills in what each says.  `unreached`: the contact of the one that did not answer.
awaitable<absl::Status> AskSites(WorldSites& sites, std::string& unreached);

// "siteA 0.1, siteB 0.2"; "" if all run the same version of Sekisho.
std::string DifferentVersions(const WorldSites& sites);

// Empty if all parts are at one site; with `also_for_one` only if that has no relay.
absl::StatusOr<SiteRelay> MeetingPlace(const WorldSites& sites, const std::vector<RankRange>& parts,
                                       bool also_for_one);

// Whose word on the keys of a world that encrypts its parts are to take: all that sites.json names.  FailedPrecondition if
// one of `sites` is not among them.
absl::StatusOr<std::map<std::string, std::string>> SpeakersOf(const WorldSites& sites);

// Of each part what is free at its site now.
absl::StatusOr<std::vector<RankRange>> FreeParts(const WorldSites& sites,
                                                 const std::vector<RankRange>& most);

// "loose-barrier", "no-barrier"; all others are strict-barrier.
proto::Charter::StartType StartTypeOf(const std::string& name);

}  // namespace sekisho::client
