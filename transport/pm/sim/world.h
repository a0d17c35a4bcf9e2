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
  bool thorough = false;         // every event is followed by a check of all (Audit)
};

// A message says which it is; its length and all other bytes follow from that.
class TextOf {
 public:
  TextOf(std::uint32_t from, std::uint32_t to, std::uint32_t channel, std::uint32_t series,
         std::uint32_t number);

  std::size_t size() const { return size_; }
  // Into `room`, which grows if it must.
  Bytes Write(std::vector<std::uint8_t>& room) const;

 private:
  std::uint32_t series_, number_;
  std::uint64_t seed_;
  std::size_t size_;
};

// Memory for an endpoint, and full of nonsense, not of zeros.  What a node of another run leaves
// behind is taken again: new memory costs a page fault for every 4 KiB.  In rings, which are most
// of it, the messages of others are as good a nonsense; in new ones a line of each page has some.
class NodeMemory {
 public:
  NodeMemory() = default;
  NodeMemory(NodeMemory&&) = default;
  ~NodeMemory();

  // Its area has one content, whatever was there before; if it is to be `thorough`, its rings, too.
  MutableBytes Take(const Config& config, bool thorough);
  // Of at most four rings of one length whose content counts no more: a line where each of them
  // begins and one in its middle, at least.
  static void Spoil(MutableBytes rings);
  static void SpoilAll(MutableBytes rings);

 private:
  struct Block {
    std::unique_ptr<std::uint8_t[]> bytes;
    std::size_t size = 0;
  };

  static std::vector<Block>& Spare();

  Block block_;
};

// Endpoint::Check after every event, at the price of what the event touched: the peers that it may
// have changed are checked anew, and with what the others held before all records must still add
// up.  So it finds what Check finds, except in a peer that an event had no business with; for that,
// and if the sum is wrong, all is checked, and that is also done every 64 events.
class Audit {
 public:
  void Start(std::size_t nodes, bool thorough);
  // The event, or its answer, may change what is known of this peer.
  void Touch(std::uint32_t peer) {
    if (is_touched_[peer]) return;
    is_touched_[peer] = true;
    touched_.push_back(peer);
  }
  const char* Check(const Endpoint& endpoint);
  // Of everything, now.
  const char* CheckAll(const Endpoint& endpoint);

 private:
  const char* CheckTouched(const Endpoint& endpoint);

  std::vector<Endpoint::Held> held_;
  Endpoint::Held sum_;
  std::vector<std::uint8_t> is_touched_;
  std::vector<std::uint32_t> touched_;
  std::uint32_t events_ = 0;  // since all was checked
  bool thorough_ = false;
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
    NodeMemory memory;
    std::unique_ptr<Endpoint> endpoint;
    Audit audit;
    std::uint64_t kills = 0;
    std::uint64_t checked_wave = 0;
    std::uint64_t timer = 0;
    Nanos timer_at = kNever;
    Nanos clock_offset = 0;
    Nanos paused_until = 0;
    std::size_t interface_mtu = kDatagramMax;  // what is longer is refused
    bool dead = false;
    bool ended = false;  // the application, until there is something to do for it
    std::uint32_t to_send = 0;
    double reads = 1;    // chance to read when it could
    bool holds = false;  // an open message, released at the next step
    NodeId held_from = 0;
    ChannelId held_channel = 0;
    std::vector<Arrival> socket;         // datagrams that arrived while it was stopped
    std::vector<Outgoing> out;           // [destination * channels + channel]
    std::vector<std::uint32_t> settled;  // the session in which nothing to this node must go on
    std::vector<Incoming> in;            // [source * channels + channel]
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
  void Verify(std::uint32_t id, const Message& message);
  void Await(std::uint32_t id, bool awaits);
  void Pump(std::uint32_t id);
  bool Owes(const Node& node, NodeId id) const;
  bool Busy(const Node& node) const;
  bool Quiet();
  static bool Whole(const Node& from, const Node& to, const Outgoing& out, const Incoming& in);
  void CheckAll(std::uint32_t id);
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
  std::uint64_t overflown_ = 0;  // datagrams that found the socket of a stopped process full
  std::uint64_t delivered_ = 0;
  // Waves of which a node said that it is flushed or settled, and whether that was true.
  std::map<std::uint64_t, bool> claims_;
  std::uint64_t flushes_ = 0;
  NodeId busy_ = 0, owed_ = 0;  // where Quiet found something last
  bool healed_ = false;
  std::string failure_;
  std::vector<std::uint8_t> text_;  // a message, while it is sent or compared
  std::vector<std::uint8_t> room_ =
      std::vector<std::uint8_t>(9100);  // for a datagram on its way out
};

}  // namespace sekisho::pm::sim
