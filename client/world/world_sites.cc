// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_sites.h"

#include <algorithm>
#include <future>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/refusal.h"

namespace sekisho::client {

absl::StatusOr<WorldSites> OpenSites(Loop& loop, const std::vector<RankRange>& parts) {
  ASSIGN_OR_RETURN(const Sites sites, Sites::Load());
  WorldSites opened;
  // All at once: each takes two round trips.
  std::vector<std::pair<std::string, std::future<absl::StatusOr<std::unique_ptr<Session>>>>> opening;
  for (const RankRange& part : parts) {
    if (opened.count(part.contact) > 0) {
      continue;
    }
    auto target = sites.Resolve(part.contact);
    if (!target.ok() || target->site.empty()) {
      target = sites.Resolve(ContactOfMachine(part.contact));
    }
    RETURN_IF_ERROR(target.status());
    opened[part.contact];
    opening.emplace_back(part.contact, std::async(std::launch::async, [&loop, target = *std::move(target)] {
                           return Session::Open(loop, target);
                         }));
  }
  for (auto& [contact, session] : opening) {
    ASSIGN_OR_RETURN(auto there, session.get());
    opened[contact].session = there.release();
  }
  return opened;
}

namespace {

awaitable<void> AskSite(WorldSite& site, absl::Status& status, size_t& left, Signal& answered) {
  auto info = co_await site.session->Call<proto::SiteRequest, proto::SiteInfo>(&Session::Async::Site,
                                                                              proto::SiteRequest());
  status = info.status();
  if (info.ok()) {
    site.info = *std::move(info);
  }
  --left;
  answered.Notify();
}

}  // namespace

awaitable<absl::Status> AskSites(WorldSites& sites, std::string& unreached) {
  Loop& loop = sites.begin()->second.session->loop();
  Signal answered(loop);
  std::map<std::string, absl::Status> statuses;
  size_t left = sites.size();
  for (auto& [contact, site] : sites) {
    co_spawn(loop, AskSite(site, statuses[contact], left, answered), Vital("a site's answer"));
  }
  while (left > 0) {
    co_await answered.Wait();
  }
  for (const auto& [contact, status] : statuses) {
    unreached = contact;
    CO_RETURN_IF_ERROR(status);
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
    if (part.is_independent) {
      continue;
    }
    const proto::SiteInfo& info = sites.at(part.contact).info;
    are_several = are_several || (!only.empty() && only != info.site());
    only = info.site();
    relays.push_back({info.site(), info.relay()});
  }
  if (are_several) {
    return ChooseRelay(relays);
  }
  return also_for_one && !relays.empty() && !relays.front().relay.address().empty() ? relays.front() : SiteRelay();
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
