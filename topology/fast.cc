// SPDX-License-Identifier: Apache-2.0
#include "topology/fast.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "topology/redundancy.h"

namespace sekisho::topology {
namespace {

constexpr int kFailuresToDrop = 3;
constexpr int kWidePings = 4;
constexpr int kWideRounds = 6;
constexpr double kGatewayMargin = 9;   // squared standard deviations
constexpr double kHintShare = 0.0039;  // of the pairs between sites
constexpr double kFindShare = 0.0115;
constexpr int kLeastPairs = 10;  // of two sites, however few that share is
constexpr int kFirstPairs = 4;
constexpr int kMorePairs = 14;
constexpr double kNoWayUs = 1e18;
// With fewer measurements at once than this share of the hosts, time is their number: each host measures those near it
// and a part of a core instead of all.
constexpr int kHostsToSpare = 8;
constexpr int kThriftyCore = 32;
constexpr int kThriftyGroup = 12;

}  // namespace

FastMethod::FastMethod(int hosts, const FastOptions& options)
    : hosts_(hosts),
      options_(options),
      random_(options.seed * 53 + 29),
      ledger_(hosts),
      slots_(hosts),
      is_dropped_(hosts, false),
      is_lost_(hosts, false),
      wide_(hosts, Reach::kWide) {
  if (static_cast<int>(options_.site_hints.size()) == hosts) {
    BeginSites(options_.site_hints);
  } else {
    site_search_ = std::make_unique<SiteSearch>(hosts, options_.seed);
  }
}

void FastMethod::BeginSites(const std::vector<int>& site_of) {
  site_of_ = site_of;
  const int count = 1 + *std::max_element(site_of.begin(), site_of.end());
  std::vector<std::vector<int>> members(std::max(count, 1));
  for (int host = 0; host < hosts_; ++host) {
    if (site_of[host] >= 0) {
      members[site_of[host]].push_back(host);
    }
  }
  std::erase_if(members, [](const auto& list) { return list.empty(); });
  LanLimits limits;
  if (hosts_ > 512) {
    limits.full_hosts = 64;
  }
  if (options_.most_at_once > 0 && options_.most_at_once < hosts_ / kHostsToSpare) {
    limits.full_hosts = limits.core_hosts = kThriftyCore;
    limits.group_partners = kThriftyGroup;
  }
  for (size_t i = 0; i < members.size(); ++i) {
    for (const int host : members[i]) {
      site_of_[host] = static_cast<int>(i);
    }
    sites_.push_back(
        Site{.hosts = members[i],
             .search = std::make_unique<LanSearch>(members[i], limits, options_.seed + i),
             .queue = PairQueue(hosts_, Reach::kLocal)});
    sites_.back().spread_out = sites_.back().search->members();
  }
  double between = 0;
  for (size_t i = 0; i < members.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      between += static_cast<double>(members[i].size()) * static_cast<double>(members[j].size());
      for (const int host : members[i]) {
        for (const int partner : ledger_.Partners(host)) {
          wide_pairs_ += site_of_[partner] == static_cast<int>(j) ? 1 : 0;
        }
      }
    }
  }
  const double share = options_.site_hints.empty() ? kFindShare : kHintShare;
  const double sites = static_cast<double>(members.size());
  wide_budget_ =
      static_cast<long>(std::max(share * between, kLeastPairs * sites * (sites - 1) / 2));
  for (size_t i = 0; i < members.size(); ++i) {
    for (size_t j = 0; j < i; ++j) {
      const long have = static_cast<long>(ledger_.Between(members[i], members[j]).size() +
                                          ledger_.RelayedBetween(members[i], members[j]).size());
      AskWide(static_cast<int>(j), static_cast<int>(i),
              static_cast<int>(std::max(0L, kFirstPairs - have)));
    }
  }
}

Reach FastMethod::ReachOf(const Request& request) const {
  if (sites_.empty()) {
    return Reach::kUnknown;
  }
  return site_of_[request.from] == site_of_[request.to] ? Reach::kLocal : Reach::kWide;
}

// Whether anything was heard across, directly or through a relay.
bool FastMethod::HasCrossed(int left, int right) const {
  const std::vector<int>& a = sites_[left].hosts;
  const std::vector<int>& b = sites_[right].hosts;
  return !ledger_.Between(a, b).empty() || !ledger_.RelayedBetween(a, b).empty();
}

// Pairs of hosts of two sites, each host about as often as any other.
void FastMethod::AskWide(int left, int right, int pairs) {
  Site& a = sites_[left];
  Site& b = sites_[right];
  std::set<std::pair<int, int>> asked;
  for (int tries = 0; tries < 4 * pairs && static_cast<int>(asked.size()) < pairs; ++tries) {
    const int from = a.spread_out[a.next++ % a.spread_out.size()];
    const int to = b.spread_out[b.next++ % b.spread_out.size()];
    if (a.next % a.spread_out.size() == 0 && b.next % b.spread_out.size() == 0) {
      ++b.next;  // sites of one size: not the same pairs again
    }
    if (!is_dropped_[from] && !is_dropped_[to] && !ledger_.Has(from, to) &&
        asked.insert({from, to}).second) {
      wide_.Add({from, to, 1, kWidePings, kWidePings});
      ++wide_pairs_;
    }
  }
}

// An order of the site's hosts in which the next is from another switch; never the same switches
// in the same order, or two sites' would always meet in the same pairs.
void FastMethod::SpreadOut(Site& site) {
  const Tree& tree = site.search->tree();
  std::vector<std::vector<int>> groups(tree.vertex_count);
  for (const Link& link : tree.links) {
    for (const auto& [host, other] : {std::pair(link.u, link.v), {link.v, link.u}}) {
      if (tree.IsHost(host) && !site.search->IsBusy(host) &&
          !is_dropped_[site.search->members()[host]]) {
        groups[other].push_back(site.search->members()[host]);
      }
    }
  }
  std::vector<int> order;
  for (size_t round = 0, added = 1; added > 0; ++round) {
    added = 0;
    std::shuffle(groups.begin(), groups.end(), random_);
    for (const auto& group : groups) {
      if (round < group.size()) {
        order.push_back(group[round]);
        ++added;
      }
    }
  }
  if (!order.empty()) {
    site.spread_out = std::move(order);
    site.next = 0;
  }
}

void FastMethod::StepLan(std::vector<Request>& started) {
  for (Site& site : sites_) {
    const size_t before = started.size();
    site.queue.Start(slots_, started);
    site.under_way += static_cast<int>(started.size() - before);
    while (!site.is_done && site.under_way == 0 && site.queue.IsEmpty()) {
      if (!site.search->Step(ledger_, site.queue)) {
        site.is_done = true;
        SpreadOut(site);
        break;
      }
      const size_t more = started.size();
      site.queue.Start(slots_, started);
      site.under_way += static_cast<int>(started.size() - more);
    }
  }
}

JoinedIslands FastMethod::Join() const {
  std::vector<SiteTree> trees;
  for (const Site& site : sites_) {
    trees.push_back({site.search->members(), site.search->tree()});
  }
  return JoinIslands(hosts_, trees, ledger_);
}

// Sites whose gateway is not sure measure more to the nearest other.  False: nothing more to ask.
bool FastMethod::ReviewWide() {
  const int count = static_cast<int>(sites_.size());
  if (count < 2 || wide_rounds_++ >= kWideRounds || wide_pairs_ >= wide_budget_) {
    return false;
  }
  const JoinedIslands joined = Join();
  // The distance between two sites: any measurement will do.
  std::vector<std::vector<double>> distance(count, std::vector<double>(count, kNoWayUs));
  for (int i = 0; i < count; ++i) {
    for (int j = 0; j < i; ++j) {
      for (const Observation& o : ledger_.Between(sites_[i].hosts, sites_[j].hosts)) {
        distance[i][j] = distance[j][i] = std::min(distance[i][j], o.rtt_us);
      }
    }
  }
  std::set<std::pair<int, int>> wanted;
  for (int i = 0; i < count; ++i) {
    if (joined.gateways[i].margin < kGatewayMargin && sites_[i].hosts.size() > 2) {
      const auto nearest = std::min_element(distance[i].begin(), distance[i].end());
      if (*nearest < kNoWayUs) {
        wanted.insert(std::minmax(i, static_cast<int>(nearest - distance[i].begin())));
      }
    }
  }
  for (const auto& [a, b] : wanted) {
    const long left = wide_budget_ - wide_pairs_;
    AskWide(a, b, static_cast<int>(std::min<long>(kMorePairs, left)));
  }
  if (wide_rounds_ == 1) {
    // The tree between the sites: a few more of every pair of them.
    const long left = wide_budget_ - wide_pairs_;
    const long site_pairs = count * (count - 1) / 2;
    const long each = std::min(left / 3 / site_pairs, 8L);
    for (int i = 0; i < count; ++i) {
      for (int j = 0; j < i; ++j) {
        const long have =
            static_cast<long>(ledger_.Between(sites_[i].hosts, sites_[j].hosts).size());
        if (have > 0) {
          AskWide(
              j, i,
              static_cast<int>(std::max(each, std::min(left / site_pairs, kLeastPairs - have))));
        } else if (!HasCrossed(j, i)) {
          AskWide(j, i, kFirstPairs);  // all may have been unlucky; of a relay they were enough
        }
      }
    }
  }
  return !wide_.IsEmpty();
}

void FastMethod::StepWide(std::vector<Request>& started) {
  const size_t before = started.size();
  wide_.Start(slots_, started);
  wide_under_way_ += static_cast<int>(started.size() - before);
  if (wide_under_way_ > 0 || !wide_.IsEmpty() ||
      !std::all_of(sites_.begin(), sites_.end(), [](const Site& site) { return site.is_done; })) {
    return;
  }
  if (ReviewWide()) {
    const size_t more = started.size();
    wide_.Start(slots_, started);
    wide_under_way_ += static_cast<int>(started.size() - more);
  }
}

std::vector<Request> FastMethod::Next() {
  std::vector<Request> started;
  if (site_search_ != nullptr) {
    site_search_->Start(ledger_, slots_, started);
    if (!site_search_->IsDone()) {
      return started;
    }
    const std::vector<int> site_of = site_search_->site_of();
    site_search_.reset();
    BeginSites(site_of);
  }
  StepLan(started);
  StepWide(started);
  return started;
}

void FastMethod::Drop(int host) {
  is_dropped_[host] = true;
  wide_.Drop(host);
  if (site_search_ != nullptr) {
    site_search_->Drop(host);
  }
  for (Site& site : sites_) {
    site.queue.Drop(host);
    site.search->Drop(host);
  }
}

void FastMethod::Lose(int host) {
  is_lost_[host] = true;
  if (!is_dropped_[host]) {
    Drop(host);
  }
  ledger_.Forget(host);
}

void FastMethod::Report(const Request& request, const Answer& heard) {
  const Answer answer = is_lost_[request.from] || is_lost_[request.to] ? Answer{} : heard;
  const Reach reach = site_search_ != nullptr ? Reach::kUnknown : ReachOf(request);
  slots_.Release(request, reach);
  // Between two sites that nothing has crossed a failure says nothing of the hosts.
  const bool is_telling = answer.is_ok || reach != Reach::kWide ||
                          HasCrossed(site_of_[request.from], site_of_[request.to]);
  if (is_telling) {
    ledger_.Add(request, answer);
  }
  if (site_search_ != nullptr) {
    site_search_->Report(request, answer, ledger_);
  } else if (reach == Reach::kLocal) {
    Site& site = sites_[site_of_[request.from]];
    --site.under_way;
    for (const int host : {request.from, request.to}) {
      site.queue.Touch(host);
    }
  } else {
    --wide_under_way_;
    for (const int host : {request.from, request.to}) {
      wide_.Touch(host);
    }
  }
  if (!answer.is_ok) {
    for (const int host : {request.from, request.to}) {
      // Again, if it is lost: whoever heard of this failure may want to ask it once more.
      if (is_dropped_[host] ||
          (is_telling && (ledger_.Failed(host) >= kFailuresToDrop + 3 * ledger_.Answered(host) ||
                          ledger_.HasFallenSilent(host)))) {
        Drop(host);
      }
    }
  }
}

// What was measured inside sites, between hosts of the tree.
std::vector<Observation> FastMethod::InsideSites(const Tree& tree) const {
  std::vector<Observation> inside;
  if (tree.links.empty()) {
    return inside;
  }
  const std::vector<int> reached = HangUp(tree, tree.links[0].u).order;
  std::vector<bool> is_placed(tree.vertex_count, false);
  for (const int vertex : reached) {
    is_placed[vertex] = true;
  }
  for (const Site& site : sites_) {
    for (Observation o : site.search->observations()) {
      o.a = site.search->members()[o.a];
      o.b = site.search->members()[o.b];
      if (is_placed[o.a] && is_placed[o.b]) {
        inside.push_back(o);
      }
    }
  }
  return inside;
}

Outcome FastMethod::Finish() {
  Outcome outcome;
  outcome.site_of = site_of_;
  outcome.tree = {.host_count = hosts_, .vertex_count = hosts_, .links = {}};
  std::vector<bool> is_cut(hosts_, false);
  if (!sites_.empty()) {
    JoinedIslands joined = Join();
    outcome.tree = std::move(joined.tree);
    for (const int host : joined.cut) {
      is_cut[host] = true;
    }
  }
  outcome.several_ways = FindSeveralWays(outcome.tree, InsideSites(outcome.tree));
  std::vector<bool> is_placed(hosts_, hosts_ < 2);
  for (const Link& link : outcome.tree.links) {
    for (const int end : {link.u, link.v}) {
      if (end < hosts_) {
        is_placed[end] = true;
      }
    }
  }
  for (int host = 0; host < hosts_; ++host) {
    if (!is_placed[host]) {
      outcome.excluded.push_back({host, ledger_.Answered(host) == 0 ? "no answer"
                                        : is_cut[host]
                                            ? "no way to its site, not even through a relay"
                                            : "too few answers"});
    } else if (is_dropped_[host] || ledger_.HasFallenSilent(host)) {
      outcome.excluded.push_back({host, "stopped answering"});
    }
  }
  return outcome;
}

}  // namespace sekisho::topology
