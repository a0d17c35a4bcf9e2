// SPDX-License-Identifier: Apache-2.0
// A firewall in front of each host that wants one: what is opened from inside may be answered, all
// else from outside of the host's own cluster is dropped.  TCP and ping are judged by the packet
// alone, UDP by what the host has sent before.  Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_set>
#include <vector>

#include "deploy/wan/graph.h"
#include "deploy/wan/packet.h"

namespace sekisho::wan {

class Door {
 public:
  // `denied` are names of hosts, which then admit nobody, and of clusters, which admit themselves.
  // `error` names one that is neither.
  static std::optional<Door> Make(const std::vector<Host>& hosts,
                                  const std::vector<std::string>& denied, std::string& error);

  // Whether the packet passes; remembers what it opens.
  bool Admits(const PacketFacts& packet, int from_host, int to_host);

  static constexpr size_t kFlowsMax = 1 << 16;  // then all are forgotten

 private:
  static constexpr int kEverybody = -1;  // is let in
  static constexpr int kNobody = -2;

  std::vector<int> admitted_;  // per host: one of the above, or the cluster that is let in
  std::vector<int> cluster_;   // per host
  std::unordered_set<uint64_t> flows_;
};

}  // namespace sekisho::wan
