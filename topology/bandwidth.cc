// SPDX-License-Identifier: Apache-2.0
#include "topology/bandwidth.h"

#include <algorithm>
#include <limits>

#include "topology/show.h"

namespace sekisho::topology {
namespace {

constexpr size_t kMostFlows = 16;
constexpr int kMostRounds = 12;
constexpr int kEnoughRepeats = 3;  // with as many partners: not all of them are as slow
constexpr double kSame = 0.93;     // two rates that differ by less are one

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
    return std::numeric_limits<double>::infinity();
  }
  double sum = 0;
  for (const int child : children_[vertex]) {
    sum += mbps_[rooted_.parent_link[child]];
  }
  return sum;
}

// Hosts below, a branch after the other in turn, best branches first.
std::vector<int> BandwidthMap::Senders(int vertex) const {
  if (tree_.IsHost(vertex)) {
    return {vertex};
  }
  std::vector<int> branches = children_[vertex];
  std::sort(branches.begin(), branches.end(), [this](int a, int b) {
    return mbps_[rooted_.parent_link[a]] > mbps_[rooted_.parent_link[b]];
  });
  std::vector<std::vector<int>> below;
  for (const int child : branches) {
    below.push_back(Senders(child));
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

void BandwidthMap::BeginLevel() {
  active_.clear();
  while (active_.empty() && --level_ >= 0) {
    for (const int vertex : rooted_.order) {
      if (rooted_.level[vertex] != level_ || children_[vertex].empty()) {
        continue;
      }
      Level level{.vertex = vertex, .branches = {}};
      for (const int child : children_[vertex]) {
        level.branches.push_back(
            {.link = rooted_.parent_link[child], .hosts = Senders(child), .supply = Supply(child)});
      }
      // Above a single branch there is nothing to tell it from what follows; and of a host that
      // hangs the tree up, it is the other end.
      if (level.branches.size() == 1 && tree_.IsHost(vertex)) {
        level.branches.push_back({.link = level.branches[0].link,
                                  .hosts = {vertex},
                                  .supply = std::numeric_limits<double>::infinity()});
      }
      active_.push_back(std::move(level));
    }
  }
}

// Pairs of branches of which at least one is not known yet: the best seen helps a doubtful one to
// show what it can do.
std::vector<Transfer> BandwidthMap::Pair(Level& level) {
  std::vector<Transfer> transfers;
  if (level.rounds++ >= kMostRounds) {
    return transfers;
  }
  const int count = static_cast<int>(level.branches.size());
  std::vector<int> order(count);
  for (int i = 0; i < count; ++i) {
    order[i] = i;
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](int a, int b) { return level.branches[a].best > level.branches[b].best; });
  std::vector<bool> is_taken(count, false);
  // The least known first, with the best that it has not met.
  std::vector<int> doubtful(order.rbegin(), order.rend());
  for (const int i : doubtful) {
    Branch& one = level.branches[i];
    if (one.is_known || is_taken[i]) {
      continue;
    }
    for (const int j : order) {
      Branch& other = level.branches[j];
      if (j == i || is_taken[j] || std::find(one.met.begin(), one.met.end(), j) != one.met.end()) {
        continue;
      }
      is_taken[i] = is_taken[j] = true;
      one.met.push_back(j);
      other.met.push_back(i);
      Transfer transfer{.vertex = level.vertex, .left = one.link, .right = other.link, .flows = {}};
      const size_t flows = std::max(one.hosts.size(), other.hosts.size());
      for (size_t k = 0; k < flows; ++k) {
        transfer.flows.emplace_back(one.hosts[k % one.hosts.size()],
                                    other.hosts[k % other.hosts.size()]);
      }
      transfers.push_back(std::move(transfer));
      break;
    }
  }
  return transfers;
}

std::vector<Transfer> BandwidthMap::Next() {
  std::vector<Transfer> transfers;
  while (transfers.empty() && !active_.empty()) {
    for (Level& level : active_) {
      const std::vector<Transfer> more = Pair(level);
      transfers.insert(transfers.end(), more.begin(), more.end());
    }
    if (!transfers.empty()) {
      ++stages_;
      return transfers;
    }
    // What is still doubtful: the most that was seen.
    for (const Level& level : active_) {
      for (const Branch& branch : level.branches) {
        mbps_[branch.link] = std::max(mbps_[branch.link], branch.best);
      }
    }
    BeginLevel();
  }
  return transfers;
}

void BandwidthMap::Report(const Transfer& transfer, double mbps) {
  for (Level& level : active_) {
    if (level.vertex != transfer.vertex) {
      continue;
    }
    Branch* ends[2] = {nullptr, nullptr};
    for (Branch& branch : level.branches) {
      if (branch.link == transfer.left && ends[0] == nullptr) {
        ends[0] = &branch;
      } else if (branch.link == transfer.right) {
        ends[1] = &branch;
      }
    }
    for (int side = 0; side < 2; ++side) {
      Branch& own = *ends[side];
      const Branch& other = *ends[1 - side];
      // A partner that has carried more before, and could now, was not in the way: we were.
      const bool is_ours = other.best * kSame > mbps && other.supply * kSame > mbps;
      const bool is_all = mbps >= kSame * own.supply;
      if (is_ours || is_all) {
        own.is_known = true;
        is_at_least_[own.link] = is_all;
      }
    }
    for (Branch* branch : ends) {
      const bool is_same = mbps >= kSame * branch->best && branch->best >= kSame * mbps;
      branch->repeats = is_same ? branch->repeats + 1 : 0;
      branch->is_known = branch->is_known || branch->repeats >= kEnoughRepeats;
      branch->best = std::max(branch->best, mbps);
    }
    return;
  }
}

}  // namespace sekisho::topology
