// SPDX-License-Identifier: Apache-2.0
#include "topology/bandwidth.h"

#include <algorithm>
#include <limits>

#include "topology/show.h"

namespace sekisho::topology {
namespace {

constexpr size_t kMostFlows = 16;
constexpr int kMostBeyond = 40;  // stages
constexpr double kGrown = 0.93;  // of what can be sent now: less was known before
constexpr double kAny = std::numeric_limits<double>::infinity();

}  // namespace

BandwidthMap::BandwidthMap(const Tree& tree)
    : tree_(tree),
      mbps_(tree.links.size(), 0),
      is_at_least_(tree.links.size(), false),
      supply_(tree.links.size(), kAny) {
  const int root = Centre(tree);
  children_.resize(tree.vertex_count);
  if (root < 0) {
    return;
  }
  rooted_ = HangUp(tree_, root);
  // Where no hosts are nothing can be measured.
  std::vector<bool> has_host(tree.vertex_count, false);
  for (size_t i = rooted_.order.size(); i-- > 1;) {
    const int vertex = rooted_.order[i];
    has_host[vertex] = has_host[vertex] || tree_.IsHost(vertex);
    has_host[rooted_.parent[vertex]] = has_host[rooted_.parent[vertex]] || has_host[vertex];
  }
  for (size_t i = 1; i < rooted_.order.size(); ++i) {
    const int vertex = rooted_.order[i];
    if (has_host[vertex]) {
      children_[rooted_.parent[vertex]].push_back(vertex);
      level_ = std::max(level_, rooted_.level[vertex]);
    }
  }
  BeginLevel();
}

// What the hosts below can send up to `vertex`.
double BandwidthMap::Supply(int vertex) const {
  if (tree_.IsHost(vertex)) {
    return kAny;
  }
  double sum = 0;
  for (const int child : children_[vertex]) {
    sum += mbps_[rooted_.parent_link[child]];
  }
  return sum;
}

// Hosts below these vertices, one of each after the other in turn, best branches first.
std::vector<int> BandwidthMap::Senders(std::vector<int> branches) const {
  std::sort(branches.begin(), branches.end(), [this](int a, int b) {
    return mbps_[rooted_.parent_link[a]] > mbps_[rooted_.parent_link[b]];
  });
  std::vector<std::vector<int>> below;
  for (const int child : branches) {
    below.push_back(tree_.IsHost(child) ? std::vector<int>{child} : Senders(children_[child]));
  }
  std::vector<int> senders;
  for (size_t round = 0, added = 1; added > 0 && senders.size() < kMostFlows; ++round) {
    added = 0;
    for (const auto& list : below) {
      if (round < list.size() && senders.size() < kMostFlows) {
        senders.push_back(list[round]);
        ++added;
      }
    }
  }
  return senders;
}

std::vector<Branch> BandwidthMap::BranchesAt(int vertex) const {
  std::vector<Branch> branches;
  for (const int child : children_[vertex]) {
    branches.push_back({.link = rooted_.parent_link[child],
                        .hosts = Senders({child}),
                        .supply = Supply(child),
                        .with = {}});
  }
  // Above a single branch there is nothing to tell it from what follows; and of a host that hangs
  // the tree up, it is the other end.
  if (branches.size() == 1 && tree_.IsHost(vertex)) {
    branches.push_back({.link = branches[0].link, .hosts = {vertex}, .supply = kAny, .with = {}});
  }
  return branches;
}

void BandwidthMap::BeginLevel() {
  active_.clear();
  while (active_.empty() && --level_ >= 0) {
    for (const int vertex : rooted_.order) {
      if (rooted_.level[vertex] == level_ && !children_[vertex].empty()) {
        active_.emplace_back(vertex, BranchesAt(vertex));
      }
    }
  }
}

std::vector<int> BandwidthMap::LookBeyond(const Switch& from, const std::vector<bool>& is_used,
                                          Branch& beyond) const {
  const double wanted = from.Wanted();
  beyond = {.link = rooted_.parent_link[from.vertex()],
            .hosts = {},
            .supply = kAny,
            .with = {},
            .is_known = true};
  std::vector<int> others;
  struct Step {
    double most, sure;  // that the link carries
    double others;      // at its end
  };
  std::vector<Step> way;
  int at = from.vertex();
  for (int left = from.climb(); rooted_.parent[at] >= 0; at = rooted_.parent[at]) {
    std::vector<int> here = children_[rooted_.parent[at]];
    std::erase(here, at);
    left -= here.empty() ? 0 : 1;
    const int link = rooted_.parent_link[at];
    way.push_back({is_at_least_[link] ? kAny : mbps_[link], mbps_[link], 0});
    if (left > 0) {
      others.insert(others.end(), here.begin(), here.end());
      for (const int other : here) {
        way.back().others += mbps_[rooted_.parent_link[other]];
      }
      continue;
    }
    // Of the last ones as many as it takes: more switches can look beyond at once.
    if (is_used[at]) {
      return {};
    }
    const bool is_busy = std::erase_if(here, [&](int other) { return is_used[other]; }) > 0;
    std::stable_sort(here.begin(), here.end(), [this](int a, int b) {
      return mbps_[rooted_.parent_link[a]] > mbps_[rooted_.parent_link[b]];
    });
    std::vector<int> roots{at};
    for (size_t i = 0; i < here.size() && way.back().others < wanted; ++i) {
      roots.push_back(here[i]);
      others.push_back(here[i]);
      way.back().others += mbps_[rooted_.parent_link[here[i]]];
    }
    if (is_busy && way.back().others < wanted) {
      return {};
    }
    for (size_t i = way.size(); i-- > 0;) {
      beyond.best = std::min(way[i].most, way[i].others + beyond.best);
      beyond.sure = std::min(way[i].sure, way[i].others + beyond.sure);
    }
    beyond.hosts = Senders(std::move(others));
    return roots.size() > 1 ? roots : std::vector<int>{};
  }
  return {};
}

// Switches that have something open, as many as do not come across each other.
void BandwidthMap::BeginBeyond() {
  is_beyond_ = true;
  active_.clear();
  if (beyond_stages_ >= kMostBeyond) {
    open_.clear();
  }
  std::vector<bool> is_used(tree_.vertex_count, false);
  std::vector<Switch> later;
  for (Switch& open : open_) {
    Branch beyond;
    const std::vector<int> roots = LookBeyond(open, is_used, beyond);
    if (roots.empty()) {
      later.push_back(std::move(open));
      continue;
    }
    // All below them and, as they lie in the midst of what others would take, all above.
    for (const int root : roots) {
      for (int at = root; at >= 0; at = rooted_.parent[at]) {
        is_used[at] = true;
      }
    }
    for (const int vertex : rooted_.order) {
      is_used[vertex] = is_used[vertex] || std::any_of(roots.begin(), roots.end(), [&](int root) {
                          return rooted_.Ancestor(root, vertex) == root;
                        });
    }
    open.Resume(std::move(beyond));
    active_.push_back(std::move(open));
  }
  // Where nothing was in use, there is nothing to wait for.
  open_ = active_.empty() ? std::vector<Switch>{} : std::move(later);
}

// Links that were taken for known because the hosts below could send no more, when hosts beyond
// have shown since that they can: their switches are measured again, the deepest first.
void BandwidthMap::BeginAgain() {
  is_beyond_ = false;
  active_.clear();
  int level = -1;
  for (size_t i = rooted_.order.size(); i-- > 0 && rooted_.level[rooted_.order[i]] >= level;) {
    const int vertex = rooted_.order[i];
    std::vector<Branch> branches = BranchesAt(vertex);
    bool is_any = false;
    for (size_t k = 0; k < children_[vertex].size(); ++k) {
      Branch& branch = branches[k];
      branch.best = mbps_[branch.link];
      branch.is_known =
          !is_at_least_[branch.link] || kGrown * branch.supply <= supply_[branch.link];
      is_any = is_any || !branch.is_known;
    }
    if (is_any) {
      level = rooted_.level[vertex];
      active_.emplace_back(vertex, std::move(branches));
    }
  }
}

// What is still doubtful carries the most that was seen.
void BandwidthMap::Settle(Switch at) {
  for (const Branch& branch : at.branches()) {
    mbps_[branch.link] = std::max(mbps_[branch.link], branch.best);
    is_at_least_[branch.link] = at.IsAtLeast(branch);
    supply_[branch.link] = branch.supply;
  }
  if (!at.IsDone()) {
    at.LookFarther();
    open_.push_back(std::move(at));
  }
}

std::vector<Transfer> BandwidthMap::Next() {
  for (;;) {
    std::vector<Transfer> transfers;
    for (Switch& at : active_) {
      const std::vector<Transfer> more = at.Match();
      transfers.insert(transfers.end(), more.begin(), more.end());
    }
    if (!transfers.empty()) {
      ++stages_;
      beyond_stages_ += is_beyond_ ? 1 : 0;
      return transfers;
    }
    for (Switch& at : active_) {
      Settle(std::move(at));
    }
    if (!is_beyond_) {
      BeginLevel();
    }
    if (active_.empty() || is_beyond_) {
      BeginBeyond();
    }
    if (active_.empty()) {
      BeginAgain();
    }
    if (active_.empty()) {
      return {};
    }
  }
}

void BandwidthMap::Report(const Transfer& transfer, double mbps) {
  // What goes beyond the switch all passes the link above it.
  const int above = rooted_.parent_link[transfer.vertex];
  if (transfer.others.size() == 1 &&
      std::count(transfer.links.begin(), transfer.links.end(), above) > 0) {
    mbps_[above] = std::max(mbps_[above], mbps);
  }
  for (Switch& at : active_) {
    if (at.vertex() == transfer.vertex) {
      at.Report(transfer, mbps);
    }
  }
}

}  // namespace sekisho::topology
