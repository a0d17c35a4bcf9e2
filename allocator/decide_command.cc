// SPDX-License-Identifier: Apache-2.0
#include "allocator/decide_command.h"

#include <charconv>

#include <fmt/format.h>

#include "allocator/inventory_json.h"
#include "allocator/plan.h"

namespace sekisho::allocator {
namespace {

std::string ToLine(const proto::Decision& decision) {
  if (decision.has_never()) {
    return "never: " + decision.never().reason();
  }
  if (decision.has_wait()) {
    return decision.wait().resource() + " (waits)";
  }
  std::string line = decision.start().resource();
  for (const proto::Placement& placement : decision.start().placement()) {
    line += " " + placement.node();
  }
  return line;
}

}  // namespace

void DecideCounts(const Inventory& inventory, const Policy& policy, std::istream& in,
                  std::ostream& out, const Nearness& nearness) {
  proto::DecideRequest request;
  for (const Resource& resource : inventory.resources) {
    for (const std::string& node : resource.nodes) {
      proto::NodeState& state = *request.add_node();
      state.set_name(node);
      state.set_is_up(true);
    }
  }

  int number = 0;
  for (std::string word; in >> word;) {
    int count = 0;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), count);
    if (error != std::errc() || end != word.data() + word.size()) {
      out << fmt::format("never: expected a number of processors, saw \"{}\"\n", Printable(word));
      continue;
    }
    proto::Demand& demand = *request.add_pending();
    demand.set_job_id(fmt::format("{}", ++number));
    demand.set_processes(count);
    const proto::DecideReply reply = Decide(inventory, policy, request, nearness);

    // What waits keeps its place, what starts keeps its processors: the same answer the next time
    // round.
    const proto::Decision& decision = reply.decision(reply.decision_size() - 1);
    if (decision.has_wait()) {
      demand.set_resource(decision.wait().resource());
    } else {
      request.mutable_pending()->RemoveLast();
      if (decision.has_start()) {
        *request.add_running() = decision.start();
      }
    }
    out << ToLine(decision) << std::endl;
  }
}

}  // namespace sekisho::allocator
