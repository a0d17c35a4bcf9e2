// SPDX-License-Identifier: Apache-2.0
// Any bytes as the emulator's files, then as packets through the network that they describe: every
// packet is counted once, and each refusal says why.  The text ends at the first zero byte.
#include <algorithm>
#include <cstdlib>
#include <cstring>

#include "deploy/wan/network.h"
#include "deploy/wan/pairs_file.h"
#include "deploy/wan/tree_file.h"

using namespace sekisho::wan;

namespace {

std::optional<Graph> Parse(std::string_view text, std::string& error) {
  if (text.starts_with("n")) return ParsePairs(text, "fuzz", error);
  std::optional<Graph> graph = ParseTree(text, "fuzz", error);
  if (graph && !NumberHosts(*graph, {10 << 24, 24}, error)) return std::nullopt;
  return graph;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view all(reinterpret_cast<const char*>(data), size);
  const std::string_view text = all.substr(0, all.find('\0'));
  std::string error;
  const std::optional<Graph> graph = Parse(text, error);
  auto network = graph ? Network::Make(*graph, {.memory_bytes_max = 64 * 1500}, error) : nullptr;
  if (network == nullptr) {
    if (error.empty()) abort();
    return 0;
  }
  int64_t now_ns = 0;
  for (size_t at = text.size(); at + 44 < size; at += 44) {
    const std::span<uint8_t> packet = network->Spare();
    memcpy(packet.data(), data + at, 44);
    network->Enter(data[at] % graph->hosts.size(), 20 + data[at + 1] % 25, now_ns);
    now_ns += 1000 * data[at + 2];
    while (network->Take(now_ns)) {
    }
  }
  const NetworkCounters& seen = network->counters();
  if (seen.entered != seen.delivered + seen.lost + seen.overflowed + seen.denied + seen.no_route +
                          seen.not_ipv4 + seen.too_many + seen.in_flight) {
    abort();
  }
  return 0;
}
