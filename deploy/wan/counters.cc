// SPDX-License-Identifier: Apache-2.0
// See counters.h.
#include "deploy/wan/counters.h"

#include <cstddef>
#include <utility>

namespace sekisho::wan {

std::string CountersJson(const Network& network, const DeliveryCounters& deliveries) {
  const NetworkCounters& all = network.counters();
  const std::pair<const char*, uint64_t> totals[] = {
      {"entered", all.entered},
      {"delivered", all.delivered},
      {"lost", all.lost},
      {"overflowed", all.overflowed},
      {"denied", all.denied},
      {"no_route", all.no_route},
      {"not_ipv4", all.not_ipv4},
      {"too_many", all.too_many},
      {"in_flight", all.in_flight},
      {"failed_writes", deliveries.failed_writes},
      {"late_100us", deliveries.late_100us},
      {"late_1ms", deliveries.late_1ms},
      {"late_10ms", deliveries.late_10ms},
  };
  std::string json = "{";
  for (const auto& [name, value] : totals) {
    json += std::string("\"") + name + "\": " + std::to_string(value) + ", ";
  }
  json += "\"links\": [";
  const Graph& graph = network.graph();
  for (size_t i = 0; i < graph.edges.size(); ++i) {
    const LinkCounters& link = network.links()[i].counters();
    json += i == 0 ? "\n" : ",\n";
    json += "{\"from\": \"" + graph.vertices[graph.edges[i].from] + "\", \"to\": \"" +
            graph.vertices[graph.edges[i].to] + "\", \"packets\": " + std::to_string(link.packets) +
            ", \"bytes\": " + std::to_string(link.bytes) +
            ", \"lost\": " + std::to_string(link.lost) +
            ", \"overflowed\": " + std::to_string(link.overflowed) + "}";
  }
  return json + "]}\n";
}

}  // namespace sekisho::wan
