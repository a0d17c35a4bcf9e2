// SPDX-License-Identifier: Apache-2.0
#include "allocator/plan.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <unordered_map>

#include <fmt/format.h>

#include "allocator/feasibility.h"
#include "allocator/usage.h"

namespace sekisho::allocator {
namespace {

constexpr int64_t kNoKnownTime = std::numeric_limits<int64_t>::max();

// Processors held, until when at the latest.
struct Held {
  Shares shares;
  bool exclusive = false;
  int64_t ends_ms = kNoKnownTime;
};

// The first that waits at a resource: when it can start at the latest, and what is held then.
struct Head {
  std::string job_id;
  Shape shape;
  int64_t starts_ms = kNoKnownTime;
  Usage usage;
};

struct State {
  const Resource* resource = nullptr;
  Usage usage;
  std::vector<size_t> order;  // in which nodes are filled
  std::vector<Held> held;
  int running_jobs = 0;
  double load_per_processor = 0;
  std::vector<NodeFacts> facts;
  std::optional<Head> head;
  int waiting = 0;
  int drained = 0;  // nodes
};

Head MakeHead(const State& state, const std::string& job_id, const Shape& shape) {
  Head head{job_id, shape, kNoKnownTime, state.usage};
  std::vector<const Held*> by_end;
  for (const Held& held : state.held) {
    if (held.ends_ms != kNoKnownTime) {
      by_end.push_back(&held);
    }
  }
  std::stable_sort(by_end.begin(), by_end.end(),
                   [](const Held* a, const Held* b) { return a->ends_ms < b->ends_ms; });
  for (size_t i = 0; i < by_end.size(); ++i) {
    head.usage.Remove(by_end[i]->shares, by_end[i]->exclusive);
    const bool is_last_of_its_time =
        i + 1 == by_end.size() || by_end[i + 1]->ends_ms > by_end[i]->ends_ms;
    if (is_last_of_its_time && head.usage.Place(shape, state.order)) {
      head.starts_ms = by_end[i]->ends_ms;
      return head;
    }
  }
  return head;
}

// Whether `held`, started now, leaves the head its start.  Where no limit tells when the head
// starts, only a job with a limit of its own may go ahead: it cannot hold the head up for ever.
bool DelaysHead(const State& state, const Held& held) {
  const Head& head = *state.head;
  if (head.starts_ms == kNoKnownTime) {
    return held.ends_ms == kNoKnownTime;
  }
  if (held.ends_ms <= head.starts_ms) {
    return false;
  }
  Usage then = head.usage;
  then.Add(held.shares, held.exclusive);
  return !then.Place(head.shape, state.order);
}

// Coarse where it matters little: each change of a reason is an event that is stored and sent, and every job that
// starts changes the number for all behind it.
std::string Ahead(int jobs) {
  constexpr int kExact = 3;
  if (jobs == 0) {
    return "";
  }
  if (jobs <= kExact) {
    return fmt::format("; {} job{} ahead", jobs, jobs == 1 ? "" : "s");
  }
  return fmt::format("; more than {} jobs ahead", jobs <= 10 ? kExact : jobs <= 30 ? 10 : 30);
}

std::string OfNodes(int count, size_t all, const char* what) {
  return count == 0 ? ""
                    : fmt::format("; {} of {} node{} {} {}", count, all, all == 1 ? "" : "s",
                                  count == 1 ? "is" : "are", what);
}

class Planner {
 public:
  Planner(const Inventory& inventory, const Policy& policy, const proto::DecideRequest& request,
          const Nearness& nearness)
      : inventory_(inventory), policy_(policy), request_(request), nearness_(nearness) {
    ReadResources();
    ReadLeases();
  }

  proto::Decision Decide(const proto::Demand& demand) {
    proto::Decision decision;
    decision.set_job_id(demand.job_id());
    std::vector<Fit> fits;
    if (absl::Status status = FindFits(demand, fits); !status.ok()) {
      decision.mutable_never()->set_reason(
          std::string(status.message().data(), status.message().size()));
      return decision;
    }

    const Fit& fit = Choose(demand, fits);
    State& state = states_[fit.resource];
    Held held{{}, demand.exclusive()};
    if (demand.wall_time_s() > 0) {
      held.ends_ms = request_.now_ms() + demand.wall_time_s() * 1000;
    }
    const std::optional<Shares> shares = Place(state, fit.shape, held);
    held.shares = shares.value_or(Shares{});
    if (shares && (!state.head || !DelaysHead(state, held))) {
      Start(state, std::move(held), decision);
    } else {
      Wait(state, fit, shares.has_value(), decision);
    }
    return decision;
  }

 private:
  void ReadResources() {
    std::unordered_map<std::string_view, const proto::NodeState*> seen;
    for (const proto::NodeState& node : request_.node()) {
      seen[node.name()] = &node;
    }
    for (size_t r = 0; r < inventory_.resources.size(); ++r) {
      const Resource& resource = inventory_.resources[r];
      State& state =
          states_.emplace_back(State{&resource,
                                     Usage(resource.nodes.size(), resource.processors_per_node),
                                     {},
                                     {},
                                     0,
                                     0,
                                     {},
                                     {},
                                     0,
                                     0});
      std::vector<double> load(resource.nodes.size());
      int64_t processors = 0;
      for (size_t n = 0; n < resource.nodes.size(); ++n) {
        index_[resource.nodes[n]] = {r, n};
        NodeFacts facts{&resource.nodes[n], resource.architecture, resource.os, resource.memory_mb,
                        false};
        const auto at = seen.find(resource.nodes[n]);
        facts.is_up = at != seen.end() && at->second->is_up();
        const bool is_drained = at != seen.end() && at->second->is_drained();
        state.drained += is_drained;
        state.usage.SetUp(n, facts.is_up && !is_drained);
        if (at != seen.end()) {
          AddReported(*at->second, facts);
          load[n] = at->second->load();
        }
        if (state.usage.is_up(n)) {
          state.load_per_processor += load[n];
          processors += resource.processors_per_node;
        }
        state.facts.push_back(std::move(facts));
      }
      state.load_per_processor /= double(std::max<int64_t>(1, processors));
      state.order.resize(resource.nodes.size());
      std::iota(state.order.begin(), state.order.end(), size_t{0});
      if (policy_.least_loaded_nodes_first) {
        std::stable_sort(state.order.begin(), state.order.end(),
                         [&](size_t a, size_t b) { return load[a] < load[b]; });
      }
    }
  }

  static void AddReported(const proto::NodeState& node, NodeFacts& facts) {
    if (facts.architecture.empty()) facts.architecture = node.architecture();
    if (facts.os.empty()) facts.os = node.os();
    if (facts.memory_mb == 0) facts.memory_mb = node.memory_mb();
  }

  void ReadLeases() {
    for (const proto::Lease& lease : request_.running()) {
      std::vector<Held> held(states_.size());
      for (const proto::Placement& placement : lease.placement()) {
        if (const auto at = index_.find(placement.node());
            at != index_.end()) {  // else: taken out since
          held[at->second.first].shares.push_back({at->second.second, placement.processes()});
        }
      }
      for (size_t r = 0; r < held.size(); ++r) {
        if (!held[r].shares.empty()) {
          held[r].exclusive = lease.exclusive();
          held[r].ends_ms = lease.ends_ms() > 0 ? lease.ends_ms() : kNoKnownTime;
          Hold(states_[r], std::move(held[r]));
        }
      }
    }
  }

  static void Hold(State& state, Held held) {
    state.usage.Add(held.shares, held.exclusive);
    ++state.running_jobs;
    if (state.head && held.ends_ms > state.head->starts_ms) {
      state.head->usage.Add(held.shares, held.exclusive);
    }
    state.held.push_back(std::move(held));
  }

  absl::Status FindFits(const proto::Demand& demand, std::vector<Fit>& fits) const {
    RETURN_IF_ERROR(CheckDemand(demand));
    for (size_t r = 0; r < states_.size(); ++r) {
      if (std::optional<Fit> fit = FitOf(*states_[r].resource, states_[r].facts, demand)) {
        fit->resource = r;
        fits.push_back(*std::move(fit));
      }
    }
    if (!fits.empty()) {
      return absl::OkStatus();
    }
    std::vector<const std::vector<NodeFacts>*> facts;
    for (const State& state : states_) {
      facts.push_back(&state.facts);
    }
    return WhyNever(inventory_, facts, demand);
  }

  const Fit& Choose(const proto::Demand& demand, const std::vector<Fit>& fits) const {
    const Fit* best = nullptr;
    Candidate best_candidate;
    for (const Fit& fit : fits) {
      const State& state = states_[fit.resource];
      if (!demand.resource().empty() && state.resource->name == demand.resource()) {
        return fit;  // it was told to wait here
      }
      const Candidate candidate{state.running_jobs, state.resource->clock_mhz,
                                state.load_per_processor,
                                state.usage.Place(fit.shape, state.order).has_value()};
      if (best == nullptr || policy_.is_better(candidate, best_candidate)) {
        best = &fit;
        best_candidate = candidate;
      }
    }
    return *best;
  }

  // Where `held` would run.
  std::optional<Shares> Place(const State& state, const Shape& shape, const Held& held) const {
    const auto near = nearness_.find(state.resource->name);
    if (!policy_.keeps_jobs_near || near == nearness_.end()) {
      return state.usage.Place(shape, state.order);
    }
    return PlaceNear(state.usage, shape, state.order, near->second, [&](const Shares& shares) {
      Held there = held;
      there.shares = shares;
      return !state.head || !DelaysHead(state, there);
    });
  }

  static void Start(State& state, Held held, proto::Decision& decision) {
    proto::Lease& lease = *decision.mutable_start();
    lease.set_job_id(decision.job_id());
    lease.set_resource(state.resource->name);
    lease.set_exclusive(held.exclusive);
    lease.set_ends_ms(held.ends_ms == kNoKnownTime ? 0 : held.ends_ms);
    for (const Share& share : held.shares) {
      proto::Placement& placement = *lease.add_placement();
      placement.set_node(state.resource->nodes[share.node]);
      placement.set_processes(share.processes);
    }
    Hold(state, std::move(held));
  }

  static void Wait(State& state, const Fit& fit, bool fits_now, proto::Decision& decision) {
    const int64_t missing = fit.shape.processes - state.usage.Free(fit.shape);
    std::string reason;
    if (fits_now) {
      reason = fmt::format("would fit on {} now, but could delay job {}", state.resource->name,
                           state.head->job_id);
    } else if (missing > 0) {
      reason = fmt::format("waits for {} more processor{} on {}", missing, missing == 1 ? "" : "s",
                           state.resource->name);
    } else {
      reason = fmt::format("waits for {} nodes with free processors on {}", fit.shape.host_count,
                           state.resource->name);
    }
    reason += Ahead(state.waiting);
    int unusable = 0;
    for (size_t n = 0; n < state.facts.size(); ++n) {
      unusable += !state.usage.is_up(n);
    }
    reason += OfNodes(unusable - state.drained, state.facts.size(), "down");
    reason += OfNodes(state.drained, state.facts.size(), "drained");
    ++state.waiting;
    if (!state.head) {
      state.head = MakeHead(state, decision.job_id(), fit.shape);
    }
    decision.mutable_wait()->set_resource(state.resource->name);
    decision.mutable_wait()->set_reason(reason);
  }

  const Inventory& inventory_;
  const Policy& policy_;
  const proto::DecideRequest& request_;
  const Nearness& nearness_;
  std::vector<State> states_;
  std::unordered_map<std::string_view, std::pair<size_t, size_t>> index_;  // node -> resource, node
};

}  // namespace

proto::DecideReply Decide(const Inventory& inventory, const Policy& policy,
                          const proto::DecideRequest& request, const Nearness& nearness) {
  Planner planner(inventory, policy, request, nearness);
  proto::DecideReply reply;
  for (const proto::Demand& demand : request.pending()) {
    *reply.add_decision() = planner.Decide(demand);
  }
  return reply;
}

}  // namespace sekisho::allocator
