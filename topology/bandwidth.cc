// SPDX-License-Identifier: Apache-2.0
#include "topology/bandwidth.h"

#include <algorithm>
#include <limits>

#include "topology/show.h"

namespace sekisho::topology {
namespace {

constexpr size_t kMostFlows = 16;
constexpr int kMostBeyond = 40;  // stages
constexpr double kAny = std::numeric_limits<double>::infinity();

}  // namespace

BandwidthMap::BandwidthMap(const Tree& tree)
    : tree_(tree), mbps_(tree.links.size(), 0), is_at_least_(tree.links.size(), false) {
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
  std::vector<std::pair<double, double>> way;  // what a link carries, and others at its end
  int at = from.vertex();
  for (int left = from.climb(); rooted_.parent[at] >= 0; at = rooted_.parent[at]) {
    std::vector<int> here = children_[rooted_.parent[at]];
    std::erase(here, at);
    left -= here.empty() ? 0 : 1;
    way.emplace_back(mbps_[rooted_.parent_link[at]], 0);
    if (left > 0) {
      others.insert(others.end(), here.begin(), here.end());
      for (const int other : here) {
        way.back().second += mbps_[rooted_.parent_link[other]];
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
    for (size_t i = 0; i < here.size() && way.back().second < wanted; ++i) {
      roots.push_back(here[i]);
      others.push_back(here[i]);
      way.back().second += mbps_[rooted_.parent_link[here[i]]];
    }
    if (is_busy && way.back().second < wanted) {
      return {};
    }
    for (size_t i = way.size(); i-- > 0;) {
      beyond.best = std::min(way[i].first, way[i].second + beyond.best);
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

// What is still doubtful carries the most that was seen.
void BandwidthMap::Settle(Switch at) {
  for (const Branch& branch : at.branches()) {
    mbps_[branch.link] = std::max(mbps_[branch.link], branch.best);
    is_at_least_[branch.link] = at.IsAtLeast(branch);
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
      return {};
    }
  }
}

void BandwidthMap::Report(const Transfer& transfer, double mbps) {
  for (Switch& at : active_) {
    if (at.vertex() == transfer.vertex) {
      return at.Report(transfer, mbps);
    }
  }
}

}  // namespace sekisho::topology
