// SPDX-License-Identifier: Apache-2.0
// What memory a peer takes: how much more of it is in use (resident, not only reserved) in a
// context with many peers than in one with fewer, for each peer more; both have so many that
// nothing is made before it is needed (WarmPages).  A ring takes none until something is in it, and
// then a page at least; a second after it was emptied it gives that back.
#include <stdio.h>
#include <string.h>

#include "transport/pm/bench_context.h"
#include "transport/pm/bench_network.h"
#include "transport/pm/bench_pair.h"
#include "transport/pm/bench_peers.h"
#include "transport/pm/device.h"
#include "transport/pm/warm_pages.h"

namespace sekisho::pm {
namespace {

// Of all contexts in this process: what depends on the number of peers lies there.
double ResidentBytes() {
  FILE* file = fopen("/proc/self/smaps", "re");
  if (file == nullptr) Die("/proc/self/smaps");
  char line[512];
  bool is_context = false;
  double kib = 0;
  for (long one; fgets(line, sizeof line, file) != nullptr;) {
    if (strchr(line, '-') != nullptr) is_context = strstr(line, "memfd:pm-context") != nullptr;
    if (is_context && sscanf(line, "Rss: %ld", &one) == 1) kib += static_cast<double>(one);
  }
  fclose(file);
  return kib * 1024;
}

Config ConfigOf(NodeId node, int peers) {
  Config config = BenchConfig(node);
  config.nodes = static_cast<std::uint16_t>(1 + peers);
  config.channels = 1;
  config.send_ring = config.receive_ring = 1 << 16;
  return config;
}

class PeerMemory final : public Measurement {
 public:
  PeerMemory(const Traffic& traffic, bool talks)
      : peers_(traffic.peers), talks_(talks), text_(traffic.size) {}

  Measured Run(Nanos /*time*/) override {
    const double before = ResidentBytes();
    const auto some = Open(kSome);
    const double with_some = ResidentBytes();
    const auto many = Open(peers_);
    const double with_many = ResidentBytes();
    return {((with_many - with_some) - (with_some - before)) / (peers_ - kSome), 0};
  }

 private:
  static constexpr int kSome = kFewStreams;  // and itself: one too many to be few

  std::unique_ptr<Context> Open(int peers) {
    auto own = OpenBenchContext(ConfigOf(0, peers), Waiting::kSleep);
    for (int peer = 1; talks_ && peer <= peers; ++peer) Talk(*own, static_cast<NodeId>(peer));
    const Nanos limit = Wire::Now() + 10 * kSecond;
    while (own->NextDeadline() != kNever && Wire::Now() < limit) own->Sleep(limit);  // idle
    return own;
  }

  // A message each way, from a peer that is there for this alone.
  void Talk(Context& own, NodeId node) {
    Config config = ConfigOf(node, node);
    config.packets = 16;
    config.intervals = 4;
    const AtHostOf host(node);
    std::unique_ptr<Device> peer;
    if (Device::Open(config, AddressAt(node), {}, nullptr, peer) ||
        peer->endpoint().SetAddress(0, own.own_address()) ||
        own.SetAddress(node, peer->own_address())) {
      Die("cannot open a peer");
    }
    Put(own, node, text_, Waiting::kSpin);
    if (peer->endpoint().Send(0, 0, text_, Device::Now())) Die("PM: no room");
    Message message;
    const Nanos limit = Wire::Now() + 10 * kSecond;
    // Until nothing is in flight that nobody would acknowledge any more.
    for (int got = 0, quiet = 0; got < 2 || quiet < 2;) {
      if (Wire::Now() > limit) Die("PM: no answer");
      own.Progress();
      peer->Progress();
      if (own.Receive(message)) {
        own.Release(message);
        ++got;
      }
      if (peer->endpoint().Receive(message)) {
        (void)peer->endpoint().Release(0, 0, Device::Now());
        ++got;
      }
      quiet = peer->endpoint().NextDeadline() == kNever ? quiet + 1 : 0;
    }
  }

  const int peers_;
  const bool talks_;
  const std::vector<std::uint8_t> text_;
};

}  // namespace

std::unique_ptr<Measurement> OpenSilentPeers(const Traffic& traffic) {
  return std::make_unique<PeerMemory>(traffic, false);
}

std::unique_ptr<Measurement> OpenKnownPeers(const Traffic& traffic) {
  return std::make_unique<PeerMemory>(traffic, true);
}

}  // namespace sekisho::pm
