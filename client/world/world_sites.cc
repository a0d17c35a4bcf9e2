// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_sites.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/refusal.h"

namespace sekisho::client {

absl::StatusOr<WorldSites> OpenSites(Loop& loop, const std::vector<RankRange>& parts) {
  ASSIGN_OR_RETURN(const Sites sites, Sites::Load());
  WorldSites opened;
  for (const RankRange& part : parts) {
    if (opened.count(part.contact) > 0) {
      continue;
    }
    auto target = sites.Resolve(part.contact);
    if (!target.ok() || target->site.empty()) {
      target = sites.Resolve(ContactOfMachine(part.contact));
    }
    RETURN_IF_ERROR(target.status());
    ASSIGN_OR_RETURN(auto session, Session::Open(loop, *target));
    opened[part.contact].session = session.release();
  }
  return opened;
}

awaitable<absl::Status> AskSites(WorldSites& sites, std::string& unreached) {
  for (auto& [contact, site] : sites) {
    unreached = contact;
    CO_ASSIGN_OR_RETURN(site.info,
                        (co_await site.session->Call<proto::SiteRequest, proto::SiteInfo>(
                            &Session::Async::Site, proto::SiteRequest())));
  }
  co_return absl::OkStatus();
}

std::string DifferentVersions(const WorldSites& sites) {
  std::set<std::string> versions;
  std::set<std::string> names;
  for (const auto& [contact, site] : sites) {
    versions.insert(site.info.version());
    names.insert(site.info.site() + " " + site.info.version());
  }
  return versions.size() > 1 ? fmt::format("{}", fmt::join(names, ", ")) : "";
}

absl::StatusOr<SiteRelay> MeetingPlace(const WorldSites& sites, const std::vector<RankRange>& parts,
                                       bool also_for_one) {
  std::vector<SiteRelay> relays;
  std::string only;
  bool are_several = false;
  for (const RankRange& part : parts) {
    const proto::SiteInfo& info = sites.at(part.contact).info;
    are_several = are_several || (!only.empty() && only != info.site());
    only = info.site();
    relays.push_back({info.site(), info.relay()});
  }
  if (are_several) {
    return ChooseRelay(relays);
  }
  return also_for_one && !relays.front().relay.address().empty() ? relays.front() : SiteRelay();
}

absl::StatusOr<std::map<std::string, std::string>> SpeakersOf(const WorldSites& sites) {
  ASSIGN_OR_RETURN(const Sites known, Sites::Load());
  for (const auto& [contact, site] : sites) {
    const std::string& name = site.info.site();
    if (known.speakers().count(name) == 0) {
      return Refuse(absl::StatusCode::kFailedPrecondition, 0,
                    fmt::format("--encrypt: who speaks for {}'s tasks is not known", name),
                    fmt::format(R"(ask its administrator for the queue server's subject, and say "queue_server": "/O=.../CN=HOST" )"
                                "of {} in sites.json",
                                name));
    }
  }
  return known.speakers();
}

absl::StatusOr<std::vector<RankRange>> FreeParts(const WorldSites& sites,
                                                 const std::vector<RankRange>& most) {
  std::vector<Machine> machines;
  std::map<std::string, std::string> site_of;
  std::map<std::string, int> free;
  for (const RankRange& part : most) {
    const proto::SiteInfo& info = sites.at(part.contact).info;
    machines.push_back({part.contact, part.count});
    site_of[part.contact] = info.site();
    free[info.site()] = 0;
    for (const proto::NodeInfo& node : info.node()) {
      free[info.site()] += node.is_up() ? std::max(node.processors() - node.busy(), 0) : 0;
    }
  }
  return TakeFree(machines, site_of, std::move(free));
}

proto::Charter::StartType StartTypeOf(const std::string& name) {
  return name == "loose-barrier" ? proto::Charter::LOOSE_BARRIER
         : name == "no-barrier"  ? proto::Charter::NO_BARRIER
                                 : proto::Charter::STRICT_BARRIER;
}

}  // namespace sekisho::client
