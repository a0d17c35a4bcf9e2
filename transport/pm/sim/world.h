// SPDX-License-Identifier: Apache-2.0
// n nodes with applications that talk over a bad network, and what must hold after every event.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "transport/pm/endpoint.h"
#include "transport/pm/sim/network.h"

namespace sekisho::pm::sim {

// All that a run depends on besides its seed.
struct Plan {
  std::uint32_t nodes = 4;
  bool faults = true;  // else a good network
  bool kills = true;
  bool clocks = true;
  bool stops = true;  // of the whole job
  Nanos heal_at = 80 * kMillisecond;
  Nanos end_at = 60 * kSecond;   // virtual; a run that is not quiet by then has stalled
  std::uint32_t messages = 400;  // per node
};

class World {
 public:
  World(const Plan& plan, std::uint64_t seed);

  // What went wrong first, or an empty string.
  std::string Run();

  std::uint64_t events() const { return events_; }
  std::uint64_t delivered() const { return delivered_; }
  std::uint64_t flushes() const { return flushes_; }
  Counters Sum() const;  // over all endpoints that ever were

 private:
  // One stream of messages from one application to another.
  struct Outgoing {
    std::uint32_t series = 0;  // 0: none yet
    std::uint32_t sent = 0;
    std::uint32_t session = 0;       // of the endpoint when the series began
    std::uint64_t kills = 0;         // of both ends when the series began
    std::vector<std::uint8_t> part;  // a message on its way in parts
    std::size_t part_done = 0;
  };
  struct Incoming {
    std::uint32_t series = 0;
    std::uint32_t received = 0;
    std::uint32_t session = 0;
    std::vector<std::uint8_t> partial;
  };
  struct Node {
    Config config;
    std::vector<std::uint8_t> memory;
    std::unique_ptr<Endpoint> endpoint;
    std::uint64_t kills = 0;
    std::uint64_t checked_wave = 0;
    std::uint64_t timer = 0;
    Nanos timer_at = kNever;
    Nanos clock_offset = 0;
    Nanos paused_until = 0;
    bool dead = false;
    std::uint32_t to_send = 0;
    double reads = 1;    // chance to read when it could
    bool holds = false;  // an open message, released at the next step
    NodeId held_from = 0;
    ChannelId held_channel = 0;
    std::vector<Arrival> socket;  // datagrams that arrived while it was stopped
    std::vector<Outgoing> out;    // [destination * channels + channel]
    std::vector<Incoming> in;     // [source * channels + channel]
  };

  void Start(std::uint32_t id);
  void DrawFaults();
  void Fault();
  void Heal();
  void Handle(Event& event);
  void Step(std::uint32_t id);
  void Preempt(std::uint32_t id);
  void CheckStop(std::uint32_t id);
  bool HasFlushed(std::uint64_t wave);
  void CheckSettled(const Node& leader);
  static bool Talk(const Node& a, const Node& b);
  bool Arrived(const Node& from, const Node& to) const;
  void GoOn(std::uint32_t id);
  void SendSome(std::uint32_t id);
  void SendOne(std::uint32_t id, NodeId to, ChannelId channel);
  void ReceiveSome(std::uint32_t id);
  static std::vector<std::uint8_t> MakeMessage(std::uint32_t from, std::uint32_t to,
                                               std::uint32_t channel, std::uint32_t series,
                                               std::uint32_t number);
  void Verify(std::uint32_t id, const Message& message);
  void Pump(std::uint32_t id);
  bool Quiet() const;
  static bool Whole(const Node& from, const Node& to, const Outgoing& out, const Incoming& in);
  void CheckEnd();
  void Fail(const std::string& what);
  std::string Unfinished() const;
  Nanos LocalTime(const Node& node) const { return network_.now() + node.clock_offset + kSecond; }

  Plan plan_;
  std::uint64_t seed_;
  Random random_;
  Network network_;
  std::vector<Node> nodes_;
  std::vector<Counters> buried_;
  std::uint16_t channels_ = 1;
  std::uint32_t next_series_ = 1;
  std::uint64_t events_ = 0;
  std::uint64_t delivered_ = 0;
  // Waves of which a node said that it is flushed or settled, and whether that was true.
  std::map<std::uint64_t, bool> claims_;
  std::uint64_t flushes_ = 0;
  bool healed_ = false;
  std::string failure_;
  std::vector<std::uint8_t> room_ =
      std::vector<std::uint8_t>(9100);  // for a datagram on its way out
};

}  // namespace sekisho::pm::sim
