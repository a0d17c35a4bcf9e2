// SPDX-License-Identifier: Apache-2.0
// See door.h.
#include "deploy/wan/door.h"

#include <unordered_map>

namespace sekisho::wan {
namespace {

// One number for a flow, whichever end has sent the packet.  Two flows may share a number: a
// firewall of a lab can live with one packet in 2^64 too many.
uint64_t FlowOf(const PacketFacts& packet) {
  const auto end = [](uint32_t address, uint16_t port) {
    uint64_t x = (static_cast<uint64_t>(address) << 16 | port) * 0x9e3779b97f4a7c15;
    x ^= x >> 29;
    return x * 0xbf58476d1ce4e5b9;
  };
  return end(packet.source, packet.source_port) + end(packet.target, packet.target_port);
}

}  // namespace

std::optional<Door> Door::Make(const std::vector<Host>& hosts,
                               const std::vector<std::string>& denied, std::string& error) {
  Door door;
  std::unordered_map<std::string, int> clusters;
  for (const Host& host : hosts) {
    const int number = static_cast<int>(clusters.size());
    door.cluster_.push_back(
        host.cluster.empty() ? kNobody : clusters.try_emplace(host.cluster, number).first->second);
    door.admitted_.push_back(kEverybody);
  }
  for (const std::string& name : denied) {
    bool is_known = false;
    for (size_t i = 0; i < hosts.size(); ++i) {
      if (hosts[i].name == name) {
        door.admitted_[i] = kNobody;
      } else if (hosts[i].cluster == name && door.admitted_[i] == kEverybody) {
        door.admitted_[i] = door.cluster_[i];
      } else if (hosts[i].cluster != name) {
        continue;
      }
      is_known = true;
    }
    if (!is_known) {
      error = "no host and no cluster is called '" + name + "'";
      return std::nullopt;
    }
  }
  return door;
}

bool Door::Admits(const PacketFacts& packet, int from_host, int to_host) {
  if (admitted_[from_host] != kEverybody && packet.protocol == kUdp) {
    if (flows_.size() >= kFlowsMax) flows_.clear();
    flows_.insert(FlowOf(packet));
  }
  const int admitted = admitted_[to_host];
  if (admitted == kEverybody || (admitted >= 0 && admitted == cluster_[from_host])) return true;
  if (packet.protocol == kUdp) return flows_.contains(FlowOf(packet));
  return !packet.is_opening;
}

}  // namespace sekisho::wan
