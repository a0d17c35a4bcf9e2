// SPDX-License-Identifier: Apache-2.0
// All packets under way: in at one host, over its links one after the other, out at another.  Pure:
// the clock is an argument, in nanoseconds; what enters may do so some microseconds before the last
// that was taken.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "deploy/wan/address_book.h"
#include "deploy/wan/door.h"
#include "deploy/wan/event_heap.h"
#include "deploy/wan/graph.h"
#include "deploy/wan/link.h"
#include "deploy/wan/routes.h"

namespace sekisho::wan {

// entered = delivered + lost + overflowed + denied + no_route + not_ipv4 + too_many + in_flight.
struct NetworkCounters {
  uint64_t entered = 0;
  uint64_t delivered = 0;
  uint64_t lost = 0;        // by chance
  uint64_t overflowed = 0;  // at a full queue
  uint64_t denied = 0;      // by a host's firewall
  uint64_t no_route = 0;    // to nobody's address
  uint64_t not_ipv4 = 0;
  uint64_t too_many = 0;  // beyond the emulator's memory
  uint64_t in_flight = 0;
};

struct NetworkOptions {
  uint64_t seed = 1;
  int64_t compensate_ns = 0;  // how much earlier each packet is delivered than the links say
  size_t packet_bytes_max = 1500;
  size_t memory_bytes_max = 512 << 20;
  std::vector<std::string> denied;  // Door
};

class Network {
 public:
  static std::unique_ptr<Network> Make(Graph graph, const NetworkOptions& options,
                                       std::string& error);

  // Where to put the next packet's bytes, before Enter.
  std::span<uint8_t> Spare();

  // The first `length` bytes of Spare() come from `host`.
  void Enter(int host, size_t length, int64_t now_ns);

  // When something is to be done next; never if nothing is under way.
  std::optional<int64_t> NextNs() const;

  struct Delivery {
    int host;
    int64_t due_ns;
    std::span<const uint8_t> bytes;  // until the next call of anything
  };

  // A packet that has arrived by `now_ns`.
  std::optional<Delivery> Take(int64_t now_ns);

  const Graph& graph() const { return graph_; }
  const Routes& routes() const { return routes_; }
  const std::vector<Link>& links() const { return links_; }
  const NetworkCounters& counters() const { return counters_; }

 private:
  struct Packet {
    std::unique_ptr<uint8_t[]> bytes;
    uint32_t length;
    int target;  // host
    int vertex;  // where it is or is going to be next
  };

  Network(Graph graph, Routes routes, AddressBook addresses, Door door,
          const NetworkOptions& options);
  void Advance(uint32_t index, int64_t time_ns);

  const Graph graph_;
  const Routes routes_;
  const AddressBook addresses_;
  Door door_;
  const NetworkOptions options_;
  std::vector<Link> links_;  // as graph_.edges
  std::vector<Packet> packets_;
  std::vector<uint32_t> spare_;  // the last is the next
  EventHeap events_;
  NetworkCounters counters_;
};

}  // namespace sekisho::wan
