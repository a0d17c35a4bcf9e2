// SPDX-License-Identifier: Apache-2.0
#include "allocator/feasibility.h"

#include <algorithm>

#include <fmt/format.h>

namespace sekisho::allocator {
namespace {

bool Serves(const Resource& resource, const std::string& queue) {
  return queue.empty() ||
         std::find(resource.queues.begin(), resource.queues.end(), queue) != resource.queues.end();
}

// The nodes for which all of `conditions` hold (kYes), or may hold (not kNo).
struct Mask {
  std::vector<bool> yes;
  int64_t possible = 0;
};

Mask NodesFor(const Resource& resource, const std::vector<NodeFacts>& facts,
              const google::protobuf::RepeatedPtrField<proto::Demand::Condition>& conditions) {
  Mask mask{std::vector<bool>(facts.size(), true), 0};
  for (size_t n = 0; n < facts.size(); ++n) {
    bool is_possible = true;
    for (const proto::Demand::Condition& condition : conditions) {
      const Match match = Matches(resource, facts[n], condition);
      mask.yes[n] = mask.yes[n] && match == Match::kYes;
      is_possible = is_possible && match != Match::kNo;
    }
    mask.possible += is_possible;
  }
  return mask;
}

absl::Status Never(std::string reason) { return absl::ResourceExhaustedError(reason); }

bool AnyNodeMeets(const Resource& resource, const std::vector<NodeFacts>& facts,
                  const proto::Demand::Condition& condition) {
  return std::any_of(facts.begin(), facts.end(), [&](const NodeFacts& node) {
    return Matches(resource, node, condition) != Match::kNo;
  });
}

}  // namespace

absl::Status CheckDemand(const proto::Demand& demand) {
  if (demand.processes() < 1) {
    return Never(fmt::format("asks for {} processors; expected at least 1", demand.processes()));
  }
  if (demand.host_count() < 0 || demand.host_count() > demand.processes()) {
    return Never(
        fmt::format("asks for {} processes on {} nodes; expected at least one process a node",
                    demand.processes(), demand.host_count()));
  }
  for (const proto::Demand::Condition& condition : demand.condition()) {
    RETURN_IF_ERROR(CheckCondition(condition));
  }
  return absl::OkStatus();
}

std::optional<Fit> FitOf(const Resource& resource, const std::vector<NodeFacts>& facts,
                         const proto::Demand& demand) {
  if (!Serves(resource, demand.queue())) {
    return std::nullopt;
  }
  Mask mask = NodesFor(resource, facts, demand.condition());
  const int64_t hosts = demand.host_count() > 0 ? demand.host_count() : mask.possible;
  if (mask.possible < demand.host_count() ||
      hosts * resource.processors_per_node < int64_t{demand.processes()}) {
    return std::nullopt;
  }
  return Fit{
      0, Shape{demand.processes(), demand.host_count(), demand.exclusive(), std::move(mask.yes)}};
}

absl::Status WhyNever(const Inventory& inventory,
                      const std::vector<const std::vector<NodeFacts>*>& facts,
                      const proto::Demand& demand) {
  // A queue that nobody serves, or a relation that no node meets.
  const auto& resources = inventory.resources;
  if (std::none_of(resources.begin(), resources.end(),
                   [&](const Resource& resource) { return Serves(resource, demand.queue()); })) {
    const std::vector<std::string> queues = inventory.queues();
    return Never(fmt::format("no resource serves queue \"{}\"; {}", demand.queue(),
                             queues.empty()
                                 ? "this site has no queues by name"
                                 : fmt::format("there are {}", fmt::join(queues, ", "))));
  }
  for (const proto::Demand::Condition& condition : demand.condition()) {
    bool is_met = false;
    for (size_t r = 0; r < resources.size(); ++r) {
      is_met = is_met || AnyNodeMeets(resources[r], *facts[r], condition);
    }
    if (!is_met) {
      return Never(fmt::format("no resource has {}", ToString(condition)));
    }
  }

  // Too many processors, or nodes, for the largest that the relations leave.
  int64_t most = 0, most_nodes = 0;
  const Resource* largest = nullptr;
  for (size_t r = 0; r < resources.size(); ++r) {
    const int64_t nodes = NodesFor(resources[r], *facts[r], demand.condition()).possible;
    const int64_t processors = nodes * resources[r].processors_per_node;
    if (Serves(resources[r], demand.queue()) && processors > most) {
      most = processors;
      most_nodes = nodes;
      largest = &resources[r];
    }
  }
  if (largest == nullptr) {
    std::vector<std::string> conditions;
    for (const proto::Demand::Condition& condition : demand.condition()) {
      conditions.push_back(ToString(condition));
    }
    return Never(fmt::format("no resource has all of {}{}", fmt::join(conditions, ", "),
                             demand.queue().empty() ? "" : " and queue " + demand.queue()));
  }
  const char* such = demand.condition().empty() && demand.queue().empty() ? "" : " such";
  if (demand.processes() > most) {
    return Never(fmt::format("asks for {} processors, the largest{} resource {} has {}",
                             demand.processes(), such, largest->name, most));
  }
  return Never(
      fmt::format("asks for {} processes on {} nodes; the largest{} resource {} has {} nodes of {}",
                  demand.processes(), demand.host_count(), such, largest->name, most_nodes,
                  largest->processors_per_node));
}

}  // namespace sekisho::allocator
