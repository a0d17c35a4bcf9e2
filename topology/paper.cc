// SPDX-License-Identifier: Apache-2.0
#include "topology/paper.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sekisho::topology {
namespace {

constexpr size_t kAhead = 10;  // hosts that look for a near one while another is inserted
constexpr double kFar = 3;     // a candidate so many times farther or nearer is out
constexpr int kMostFailures = 3;
constexpr double kLeastHalfUs = 1.2;  // of an interval: three sets may agree by chance

}  // namespace

PaperMethod::PaperMethod(int hosts, uint64_t seed)
    : hosts_(hosts),
      random_(seed * 13 + 3),
      order_(hosts),
      newcomers_(hosts),
      is_in_(hosts, false),
      is_dead_(hosts, false),
      tree_{.host_count = hosts, .vertex_count = hosts, .links = {}},
      slots_(hosts) {
  std::iota(order_.begin(), order_.end(), 0);
  std::shuffle(order_.begin(), order_.end(), random_);
  if (hosts > 0) {
    is_in_[order_[0]] = true;
    adding_ = 1;
  }
  for (size_t i = 1; i < order_.size() && i <= kAhead; ++i) {
    BeginLooking(order_[i]);
  }
  if (hosts > 1) {
    BeginAdding(order_[1]);
  }
}

int PaperMethod::Pick(std::vector<int>& from) {
  const size_t index = random_() % from.size();
  const int picked = from[index];
  from[index] = from.back();
  from.pop_back();
  return picked;
}

void PaperMethod::BeginLooking(int host) {
  Newcomer& newcomer = newcomers_[host];
  newcomer.is_looking = true;
  for (int other = 0; other < hosts_; ++other) {
    if (is_in_[other] && !is_dead_[other]) {
      newcomer.candidates.push_back(other);
    }
  }
  Step(host);
}

void PaperMethod::BeginAdding(int host) {
  newcomers_[host].is_adding = true;
  if (newcomers_[host].asking < 0) {
    Step(host);
  }
}

// Asks the next host, or ends the phase.
void PaperMethod::Step(int host) {
  Newcomer& newcomer = newcomers_[host];
  if (newcomer.is_looking && !newcomer.candidates.empty()) {
    newcomer.asking = Pick(newcomer.candidates);
    waiting_.push_back({host, newcomer.asking, 3, 10, 30});
    return;
  }
  newcomer.is_looking = false;
  if (newcomer.is_adding) {
    Add(host);
  }
}

// A candidate that the tree puts much farther from, or much nearer to, the host just asked than we
// are from it need not be asked.
void PaperMethod::Look(int host) {
  Newcomer& newcomer = newcomers_[host];
  const auto seen = newcomer.known.find(newcomer.asking);
  if (seen == newcomer.known.end() || tree_.links.empty()) {
    return;
  }
  const Rooted rooted = HangUp(tree_, newcomer.asking);
  std::erase_if(newcomer.candidates, [&](int other) {
    const double way = rooted.depth_us[other];
    return way > kFar * seen->second.min_us || way < seen->second.min_us / kFar;
  });
}

void PaperMethod::Add(int host) {
  Newcomer& newcomer = newcomers_[host];
  if (newcomer.a < 0) {
    // The nearest known host; all others are where it may branch off.
    double best = 1e18;
    for (const auto& [other, range] : newcomer.known) {
      if (range.min_us < best && is_in_[other]) {
        best = range.min_us;
        newcomer.a = other;
      }
    }
    newcomer.candidates.clear();
    for (int other = 0; other < hosts_; ++other) {
      if (is_in_[other] && other != newcomer.a && !is_dead_[other]) {
        newcomer.candidates.push_back(other);
      }
    }
    if (newcomer.a < 0) {
      if (newcomer.candidates.empty() || newcomer.failures >= kMostFailures) {
        GiveUp(host);
      } else {
        newcomer.asking = Pick(newcomer.candidates);
        waiting_.push_back({host, newcomer.asking, 3, 10, 30});
      }
      return;
    }
  }
  while (!newcomer.candidates.empty()) {
    const int b = Pick(newcomer.candidates);
    if (!newcomer.known.contains(b)) {
      newcomer.asking = b;
      waiting_.push_back({host, b, 3, 10, 30});
      return;
    }
    Branch(host, b);
  }
  Connect(host);
}

// Where on the way from a to b does the host branch off?
void PaperMethod::Branch(int host, int b) {
  Newcomer& newcomer = newcomers_[host];
  const Rooted rooted = HangUp(tree_, newcomer.a);
  const Range& to_a = newcomer.known.at(newcomer.a);
  const Range& to_b = newcomer.known.at(b);
  const double way = rooted.depth_us[b];
  const double centre = std::clamp((to_a.min_us + way - to_b.min_us) / 2, 0.0, way);
  const double half =
      std::max(kLeastHalfUs, ((to_a.high_us - to_a.low_us) + (to_b.high_us - to_b.low_us)) / 4);
  newcomer.leaf_us = std::max(0.1, (to_a.min_us + to_b.min_us - way) / 2);
  // A switch in the interval, the nearest to its centre.
  int best = -1;
  int below = b;  // the first vertex beyond the centre, seen from a
  for (int vertex = b; vertex >= 0; vertex = rooted.parent[vertex]) {
    const double off = std::abs(rooted.depth_us[vertex] - centre);
    if (!tree_.IsHost(vertex) && off <= half &&
        (best < 0 || off < std::abs(rooted.depth_us[best] - centre))) {
      best = vertex;
    }
    if (rooted.depth_us[vertex] >= centre && vertex != newcomer.a) {
      below = vertex;
    }
  }
  if (best < 0) {
    best = tree_.vertex_count++;
    Link& link = tree_.links[rooted.parent_link[below]];
    const int above = rooted.parent[below];
    const double total = link.rtt_us;
    const double first = std::clamp(centre - rooted.depth_us[above], 0.0, total);
    link = {above, best, first};
    tree_.links.push_back({best, below, total - first});
  }
  newcomer.at = best;
  // Whoever hangs on the branches towards a and b is out.
  const Rooted from = HangUp(tree_, best);
  const auto branch_of = [&](int vertex) {
    while (from.parent[vertex] != best) {
      vertex = from.parent[vertex];
    }
    return vertex;
  };
  const int towards_a = branch_of(newcomer.a);
  const int towards_b = branch_of(b);
  std::erase_if(newcomer.candidates, [&](int other) {
    const int branch = branch_of(other);
    return branch == towards_a || branch == towards_b;
  });
  if (to_b.min_us < to_a.min_us) {
    newcomer.a = b;
  }
}

void PaperMethod::Connect(int host) {
  Newcomer& newcomer = newcomers_[host];
  if (newcomer.at < 0) {  // the second host of all
    tree_.links.push_back({host, newcomer.a, newcomer.known.at(newcomer.a).min_us});
  } else {
    tree_.links.push_back({host, newcomer.at, newcomer.leaf_us});
  }
  is_in_[host] = true;
  GiveUp(host);
}

// Hands the tree to the next host, and to the one that may begin to look.
void PaperMethod::GiveUp(int host) {
  newcomers_[host].is_adding = false;
  if (!is_in_[host]) {
    is_dead_[host] = true;
  }
  ++adding_;
  if (adding_ + kAhead - 1 < order_.size()) {
    BeginLooking(order_[adding_ + kAhead - 1]);
  }
  if (adding_ < order_.size()) {
    BeginAdding(order_[adding_]);
  }
}

std::vector<Request> PaperMethod::Next() {
  std::vector<Request> started;
  std::erase_if(waiting_, [&](const Request& request) {
    if (!slots_.IsFree(request.from, Reach::kLocal) || !slots_.IsFree(request.to, Reach::kLocal)) {
      return false;
    }
    slots_.Take(request, Reach::kLocal);
    started.push_back(request);
    return true;
  });
  return started;
}

void PaperMethod::Report(const Request& request, const Answer& answer) {
  slots_.Release(request, Reach::kLocal);
  Newcomer& newcomer = newcomers_[request.from];
  if (answer.is_ok) {
    newcomer.known[request.to] = {answer.min_us, answer.low_us, answer.high_us};
  } else {
    ++newcomer.failures;
  }
  const int asked = newcomer.asking;
  if (newcomer.is_looking) {
    Look(request.from);
    if (newcomer.failures >= kMostFailures && newcomer.known.empty()) {
      newcomer.candidates.clear();
    }
  }
  newcomer.asking = -1;
  if (newcomer.is_looking) {
    Step(request.from);
    return;
  }
  if (newcomer.a >= 0 && newcomer.known.contains(asked)) {
    Branch(request.from, asked);
  }
  if (newcomer.is_adding) {
    Add(request.from);
  }
}

Outcome PaperMethod::Finish() {
  Outcome outcome;
  outcome.tree = Simplified(tree_);
  for (int host = 0; host < hosts_; ++host) {
    if (!is_in_[host]) {
      outcome.excluded.push_back({host, "no answer"});
    }
  }
  return outcome;
}

}  // namespace sekisho::topology
