// SPDX-License-Identifier: Apache-2.0
#include "topology/lan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <set>
#include <utility>

#include "topology/drift.h"
#include "topology/place.h"

namespace sekisho::topology {
namespace {

constexpr int kCalibrationPartners = 4;
constexpr int kBusyPings = 30;
constexpr int kBusyPartners = 22;
constexpr double kBusyRatio = 3;   // excess over that of a usual host
constexpr double kDoubtful = 3.5;  // standard deviations
constexpr int kDoubtRounds = 2;
constexpr int kDriftRounds = 2;
constexpr int kFewHosts =
    16;  // so few that nothing evens a bad measurement out: ask twice, and often

}  // namespace

LanSearch::LanSearch(std::vector<int> members, const LanLimits& limits, uint64_t seed)
    : members_(std::move(members)), limits_(limits), random_(seed * 31 + 11) {
  std::shuffle(members_.begin(), members_.end(), random_);
  is_core_.assign(members_.size(), true);
  is_busy_.assign(members_.size(), false);
  is_dead_.assign(members_.size(), false);
}

bool LanSearch::IsFull() const { return static_cast<int>(members_.size()) <= limits_.full_hosts; }

void LanSearch::Drop(int host) {
  const auto found = std::find(members_.begin(), members_.end(), host);
  if (found != members_.end()) {
    const auto position = found - members_.begin();
    is_dead_[position] = true;
    is_core_[position] = false;
  }
}

// How many pings: few where all is quiet and there are many pairs, more where a host is busy.
Request LanSearch::Plan(int host_a, int host_b, const Ledger& ledger) const {
  const double partners = IsFull() ? static_cast<double>(members_.size()) - 1
                                   : 2.0 * (limits_.core_partners + limits_.group_partners);
  const int base = std::clamp(static_cast<int>(2 * limits_.pings_a_host / partners), 2, 4);
  const double excess = std::max(ledger.Excess(host_a), ledger.Excess(host_b));
  Request request{host_a, host_b, 1, base, base};
  if (members_.size() <= kFewHosts) {
    request.sets = 2;
    request.stop = request.most = 10;
  } else if (quiet_us_ > 0 && excess > kBusyRatio * quiet_us_) {
    request.stop = 10;
    request.most = kBusyPings;
  } else if (quiet_us_ > 0 && excess > 2.5 * quiet_us_) {
    request.stop = request.most = 10;
  }
  return request;
}

void LanSearch::Ask(int a, int b, const Ledger& ledger, PairQueue& queue) {
  queue.Add(Plan(members_[a], members_[b], ledger));
}

// A few random partners for everybody: who is busy?
void LanSearch::Calibrate(PairQueue& queue) {
  const int n = static_cast<int>(members_.size());
  for (int step = 1; step <= kCalibrationPartners / 2 && 2 * step < n; ++step) {
    for (int i = 0; i < n; ++i) {
      queue.Add({members_[i], members_[(i + step) % n], 1, 4, 4});
    }
  }
  if (n == 2) {
    queue.Add({members_[0], members_[1], 2, 10, 10});
  }
}

// Every pair of the core; a part of the core for everybody else.
void LanSearch::AskCore(const Ledger& ledger, PairQueue& queue) {
  const int n = static_cast<int>(members_.size());
  std::vector<double> excess;
  for (const int host : members_) {
    excess.push_back(std::max(ledger.Excess(host), 0.0));
  }
  std::vector<double> sorted = excess;
  std::sort(sorted.begin(), sorted.end());
  quiet_us_ = sorted[n / 2];
  std::vector<double> rtts;
  for (const Observation& o : ledger.Among(members_)) {
    rtts.push_back(o.rtt_us);
  }
  std::sort(rtts.begin(), rtts.end());
  quiet_us_ = std::max(quiet_us_, rtts.empty() ? 1.0 : 0.04 * rtts[rtts.size() / 10]);
  int core = 0;
  for (int i = 0; i < n; ++i) {
    is_busy_[i] = excess[i] > kBusyRatio * quiet_us_;
    is_core_[i] = !is_busy_[i] && !is_dead_[i] && (IsFull() || core < limits_.core_hosts);
    core += is_core_[i] ? 1 : 0;
  }
  if (core < std::min(n, 8)) {
    for (int i = 0; i < n; ++i) {
      is_core_[i] = !is_dead_[i];
    }
  }
  std::vector<int> pivots;
  for (int i = 0; i < n; ++i) {
    if (is_core_[i]) {
      pivots.push_back(i);
    }
  }
  for (int i = 0; i < n; ++i) {
    if (is_core_[i]) {
      for (int j = 0; j < i; ++j) {
        if (is_core_[j] && (n <= kFewHosts || !ledger.Has(members_[i], members_[j]))) {
          Ask(i, j, ledger, queue);
        }
      }
      continue;
    }
    if (is_dead_[i] || pivots.empty()) {
      continue;
    }
    const int wanted = IsFull() ? kBusyPartners : limits_.core_partners;
    const size_t start = random_() % pivots.size();
    // Evenly over the core, so that no member of it has much more to do than the others.
    for (int k = 0; k < std::min<int>(wanted, static_cast<int>(pivots.size())); ++k) {
      const int j = pivots[(start + k * pivots.size() / wanted) % pivots.size()];
      if (!ledger.Has(members_[i], members_[j]) || is_busy_[i]) {
        Ask(i, j, ledger, queue);
      }
    }
  }
}

void LanSearch::Build(const Ledger& ledger) {
  observations_ = ledger.Among(members_);
  const bool had_everybody = has_everybody_;
  BuildFromObservations();
  // The better the tree, the better what is no part of it can be told, and the other way round.
  std::vector<double> drift(observations_.size(), 0);
  for (int round = 0; round < kDriftRounds; ++round) {
    std::vector<double> longer = report_.residuals;
    for (size_t i = 0; i < longer.size(); ++i) {
      longer[i] += drift[i];
    }
    const std::vector<double> found = Drift(observations_, longer);
    if (found.empty()) {
      break;
    }
    for (size_t i = 0; i < drift.size(); ++i) {
      observations_[i].rtt_us += drift[i] - found[i];
    }
    drift = found;
    has_everybody_ = had_everybody;
    BuildFromObservations();
  }
}

void LanSearch::BuildFromObservations() {
  report_.residuals.clear();  // of an earlier build, of hosts that may be gone
  const int n = static_cast<int>(members_.size());
  std::vector<double> rtts;
  for (const Observation& o : observations_) {
    rtts.push_back(o.rtt_us);
  }
  std::sort(rtts.begin(), rtts.end());
  const BuildLimits limits{.floor_us = rtts.empty() ? 0 : 0.018 * rtts[rtts.size() / 10]};
  if (has_everybody_ && !IsFull()) {
    tree_ = Improve(std::move(tree_), observations_, limits, &report_);
    return;
  }
  // The core by itself, then everybody else onto it.
  std::vector<int> core;
  std::vector<int> position(n, -1);
  for (int i = 0; i < n; ++i) {
    if (is_core_[i]) {
      position[i] = static_cast<int>(core.size());
      core.push_back(i);
    }
  }
  std::vector<Observation> in_core;
  std::vector<std::vector<Sight>> sights(n);
  for (const Observation& o : observations_) {
    if (is_core_[o.a] && is_core_[o.b]) {
      in_core.push_back({position[o.a], position[o.b], o.rtt_us, o.sigma_us});
    } else if (is_core_[o.a] != is_core_[o.b]) {
      const int host = is_core_[o.a] ? o.b : o.a;
      sights[host].push_back({is_core_[o.a] ? o.a : o.b, o.rtt_us, o.sigma_us});
    }
  }
  const int core_size = static_cast<int>(core.size());
  const Tree small = BuildTree(core_size, in_core, limits, &report_);
  tree_ = {.host_count = n, .vertex_count = small.vertex_count - core_size + n, .links = {}};
  for (Link link : small.links) {
    for (int* end : {&link.u, &link.v}) {
      *end = *end < core_size ? core[*end] : *end - core_size + n;
    }
    tree_.links.push_back(link);
  }
  has_everybody_ = true;
  if (core_size == n || core.empty()) {  // all are there, or all are dead
    return;
  }
  const Tree backbone = tree_;
  const Rooted rooted = HangUp(backbone, core[0]);
  std::vector<Place> places(n);
  for (int i = 0; i < n; ++i) {
    if (!is_core_[i] && !sights[i].empty()) {
      for (Sight& sight : sights[i]) {
        sight.sigma_us *= std::max(report_.spread, 0.1);
      }
      places[i] = BestPlace(backbone, rooted, sights[i], 8);
    }
  }
  // On one link several may sit: from its end u to its end v.
  std::vector<std::vector<std::pair<double, int>>> on_link(backbone.links.size());
  for (int i = 0; i < n; ++i) {
    if (places[i].vertex >= 0) {
      Hang(tree_, i, places[i]);
    } else if (places[i].link >= 0) {
      on_link[places[i].link].emplace_back(places[i].from_u_us, i);
    }
  }
  for (size_t k = 0; k < on_link.size(); ++k) {
    std::sort(on_link[k].rbegin(), on_link[k].rend());  // from v to u: the link keeps its end u
    for (const auto& [from_u, host] : on_link[k]) {
      Place place = places[host];
      place.link = static_cast<int>(k);
      Hang(tree_, host, place);
    }
  }
  tree_ = Improve(std::move(tree_), observations_, limits, &report_);
}

// Those that seem near each other measure each other: nearest first by the tree.
bool LanSearch::AskNear(const Ledger& ledger, PairQueue& queue) {
  if (IsFull()) {
    return false;
  }
  const int n = static_cast<int>(members_.size());
  std::vector<int> at(n, -1);
  for (const Link& link : tree_.links) {
    for (const auto& [host, other] : {std::pair(link.u, link.v), {link.v, link.u}}) {
      if (host < n) {
        at[host] = other;
      }
    }
  }
  // Hosts in the order of a walk over the tree: neighbours in it are near on the tree.
  std::set<std::pair<int, int>> wanted;
  std::vector<int> asked(n, 0);
  std::vector<std::vector<int>> hosts_at(tree_.vertex_count);
  for (int i = 0; i < n; ++i) {
    if (at[i] >= 0) {
      hosts_at[at[i]].push_back(i);
    }
  }
  const auto ask = [&](int a, int b, int most) {
    if (a != b && asked[a] < most && asked[b] < most && !ledger.Has(members_[a], members_[b]) &&
        wanted.insert(std::minmax(a, b)).second) {
      ++asked[a];
      ++asked[b];
    }
  };
  // Half of them with the same switch, the rest with the switches next to it.
  for (auto& group : hosts_at) {
    std::shuffle(group.begin(), group.end(), random_);
    const int size = static_cast<int>(group.size());
    for (int step = 1; step < size; ++step) {
      for (int i = 0; i < size; ++i) {
        ask(group[i], group[(i + step) % size], 2 * limits_.group_partners * 3 / 4);
      }
    }
  }
  for (const Link& link : tree_.links) {
    if (link.u >= n && link.v >= n) {
      auto left = hosts_at[link.u];
      auto right = hosts_at[link.v];
      for (size_t step = 0; step < std::min<size_t>(right.size(), 12); ++step) {
        for (size_t i = 0; i < left.size(); ++i) {
          ask(left[i], right[(i + step) % right.size()], 2 * limits_.group_partners);
        }
      }
    }
  }
  for (const auto& [a, b] : wanted) {
    Ask(a, b, ledger, queue);
  }
  return !wanted.empty();
}

// Who is busy shows better the more is measured: those that did not seem so measure some quiet
// hosts with as many pings as the others that are busy did.
int LanSearch::AskBusy(const Ledger& ledger, PairQueue& queue) {
  const int n = static_cast<int>(members_.size());
  std::vector<int> found;
  std::vector<int> quiet;
  for (int i = 0; i < n; ++i) {
    const bool is_busy = quiet_us_ > 0 && ledger.Excess(members_[i]) > kBusyRatio * quiet_us_;
    if (!is_dead_[i] && !is_busy_[i] && is_busy) {
      found.push_back(i);
    } else if (!is_dead_[i] && !is_busy_[i]) {
      quiet.push_back(i);
    }
  }
  if (n <= kFewHosts || quiet.empty()) {
    return 0;
  }
  const int wanted = std::min(kBusyPartners, static_cast<int>(quiet.size()));
  for (const int i : found) {
    is_busy_[i] = true;
    const size_t start = random_() % quiet.size();
    for (int k = 0; k < wanted; ++k) {
      Ask(i, quiet[(start + k * quiet.size() / wanted) % quiet.size()], ledger, queue);
    }
  }
  return static_cast<int>(found.size()) * wanted;
}

// Measurements that the tree contradicts are repeated, on new connections.
bool LanSearch::AskDoubtful(const Ledger& ledger, PairQueue& queue) {
  if (doubt_rounds_ >= kDoubtRounds || report_.spread <= 0) {
    return false;
  }
  ++doubt_rounds_;
  int asked = AskBusy(ledger, queue);
  for (size_t i = 0; i < observations_.size() && i < report_.residuals.size(); ++i) {
    const Observation& o = observations_[i];
    if (report_.residuals[i] > kDoubtful * report_.spread * o.sigma_us &&
        report_.residuals[i] > 0.005 * o.rtt_us) {
      Request request = Plan(members_[o.a], members_[o.b], ledger);
      request.stop = request.most = std::max(request.most, 5);
      queue.Add(request);
      ++asked;
    }
  }
  return asked > 0;
}

bool LanSearch::Step(const Ledger& ledger, PairQueue& queue) {
  const int n = static_cast<int>(members_.size());
  for (;;) {
    switch (step_++) {
      case 0:
        if (n < 2) {
          tree_ = {.host_count = n, .vertex_count = n, .links = {}};
          step_ = 4;
          return false;
        }
        Calibrate(queue);
        return true;
      case 1:
        if (n > 2) {
          AskCore(ledger, queue);
        }
        if (!queue.IsEmpty()) {
          return true;
        }
        break;
      case 2:
        Build(ledger);
        if (AskNear(ledger, queue)) {
          return true;
        }
        break;
      case 3:
        if (!IsFull()) {
          Build(ledger);
        }
        if (AskDoubtful(ledger, queue)) {
          step_ = 10;
          return true;
        }
        break;
      case 10:
        Build(ledger);
        if (AskDoubtful(ledger, queue)) {
          step_ = 10;
          return true;
        }
        break;
      default:
        return false;
    }
  }
}

}  // namespace sekisho::topology
