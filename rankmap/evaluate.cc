// SPDX-License-Identifier: Apache-2.0
#include "rankmap/evaluate.h"

#include <algorithm>

#include "rankmap/errors.h"

namespace sekisho::rankmap {

std::string_view NameOf(Objective objective) {
  switch (objective) {
    case Objective::kQap:
      return "qap";
    case Objective::kHopBytes:
      return "hopbytes";
    case Objective::kMaxLink:
      return "maxlink";
    case Objective::kRmatt:
      return "rmatt";
    case Objective::kSteps:
      return "steps";
  }
  return "";
}

absl::StatusOr<Objective> ParseObjective(std::string_view name) {
  for (const Objective objective : {Objective::kQap, Objective::kHopBytes, Objective::kMaxLink,
                                    Objective::kRmatt, Objective::kSteps}) {
    if (name == NameOf(objective)) {
      return objective;
    }
  }
  return errors::BadOption(
      fmt::format("objective '{}': expected qap, hopbytes, maxlink, rmatt or steps", name));
}

absl::Status CheckProblem(const Pattern& pattern, const Network& network, Objective objective) {
  if (pattern.ranks() > network.slots()) {
    return errors::TooManyRanks(pattern.ranks(), network.slots());
  }
  if (NeedsLinks(objective) && network.links() == 0) {
    return errors::NeedsLinks(NameOf(objective));
  }
  const double total = static_cast<double>(std::max(pattern.total_bytes(), pattern.total_count()));
  if (total * static_cast<double>(std::max<int64_t>(network.diameter(), 1)) > 0x1.0p61) {
    return errors::TooLarge("bytes times distance");
  }
  return absl::OkStatus();
}

Values Evaluate(const Pattern& pattern, const Network& network, const Placement& placement) {
  const int capacity = network.capacity();
  const auto node = [&](uint32_t rank) { return placement.slot_of(rank) / capacity; };
  Values values;
  for (const Message& m : pattern.messages()) {
    const int64_t distance = network.Distance(node(m.source), node(m.target));
    values.hop_bytes += m.bytes * distance;
    values.hops_sum += m.count * distance;
  }
  if (pattern.total_bytes() > 0) {
    values.avg_hops =
        static_cast<double>(values.hop_bytes) / static_cast<double>(pattern.total_bytes());
  }
  if (network.links() == 0) {
    return values;
  }

  const std::vector<int64_t> total = LinkBytes(pattern, network, placement);
  values.max_link = *std::max_element(total.begin(), total.end());
  std::vector<std::vector<const Message*>> by_step(pattern.steps());
  for (const Message& m : pattern.messages()) {
    by_step[m.step].push_back(&m);
  }
  std::vector<int64_t> loads(network.links());
  for (const auto& messages : by_step) {
    std::fill(loads.begin(), loads.end(), 0);
    int64_t largest = 0;
    for (const Message* m : messages) {
      network.Route(node(m->source), node(m->target), [&](int link) {
        loads[link] += m->bytes;
        largest = std::max(largest, loads[link]);
      });
    }
    values.step_sum += largest;
  }
  return values;
}

std::vector<int64_t> LinkBytes(const Pattern& pattern, const Network& network,
                               const Placement& placement) {
  std::vector<int64_t> loads(network.links());
  for (const Message& m : pattern.messages()) {
    network.Route(placement.slot_of(m.source) / network.capacity(),
                  placement.slot_of(m.target) / network.capacity(),
                  [&](int link) { loads[link] += m.bytes; });
  }
  return loads;
}

double ObjectiveValue(const Values& values, Objective objective, Weight qap_weight) {
  switch (objective) {
    case Objective::kQap:
      return static_cast<double>(qap_weight == Weight::kBytes ? values.hop_bytes : values.hops_sum);
    case Objective::kHopBytes:
      return static_cast<double>(values.hop_bytes);
    case Objective::kMaxLink:
      return static_cast<double>(values.max_link);
    case Objective::kRmatt:
      return values.rmatt_eval();
    case Objective::kSteps:
      return static_cast<double>(values.step_sum);
  }
  return 0;
}

absl::StatusOr<Placement> FromNodes(const Network& network, int ranks, std::span<const int> nodes) {
  if (static_cast<int>(nodes.size()) != ranks) {
    return errors::BadPlacement(fmt::format("{} lines for {} ranks", nodes.size(), ranks));
  }
  if (ranks > network.slots()) {
    return errors::TooManyRanks(ranks, network.slots());
  }
  std::vector<int> used(network.nodes());
  std::vector<uint32_t> slot_of;
  std::vector<char> taken(network.slots());
  slot_of.reserve(network.slots());
  for (int rank = 0; rank < ranks; ++rank) {
    const int node = nodes[rank];
    if (node < 0 || node >= network.nodes()) {
      return errors::BadPlacement(
          fmt::format("rank {} on node {}: the network has {}", rank, node, network.nodes()));
    }
    if (used[node] == network.capacity()) {
      return errors::BadPlacement(
          fmt::format("node {} has more than {} ranks (rank {} is one too many)", node,
                      network.capacity(), rank));
    }
    const uint32_t slot = node * network.capacity() + used[node]++;
    taken[slot] = 1;
    slot_of.push_back(slot);
  }
  for (uint32_t slot = 0; slot < taken.size(); ++slot) {
    if (taken[slot] == 0) {
      slot_of.push_back(slot);
    }
  }
  return Placement(std::move(slot_of));
}

std::vector<int> ToNodes(const Network& network, int ranks, const Placement& placement) {
  std::vector<int> nodes(ranks);
  for (int rank = 0; rank < ranks; ++rank) {
    nodes[rank] = static_cast<int>(placement.slot_of(rank)) / network.capacity();
  }
  return nodes;
}

}  // namespace sekisho::rankmap
