// SPDX-License-Identifier: Apache-2.0
// One node of PM and its many peers.  They are endpoints without what a context has for a daemon:
// what counts is the node that has many.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/bench_context.h"
#include "transport/pm/bench_nodes.h"
#include "transport/pm/bench_pair.h"
#include "transport/pm/bench_peers.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kLookEvery = 100 * kMicrosecond;
constexpr std::size_t kLongestMessage = 8192;

class PmPeers final : public PeersEnd {
 public:
  explicit PmPeers(const Traffic& traffic)
      : PeersEnd(traffic), answer_(std::min(answer_size(), kLongestMessage)) {
    own_ = OpenBenchContext(ConfigOf(0), traffic.waiting);
    if (pipe2(port_, O_CLOEXEC) != 0) Die("pipe2");
    Fork();
    close(port_[1]);  // or its end would not be ours to see
    server_->Go();
    std::uint16_t port;
    if (read(port_[0], &port, sizeof port) != sizeof port) Die("no peers");
    for (int peer = 0; peer < traffic.peers; ++peer) {
      (void)own_->SetAddress(IdOf(peer), BenchNodes::AddressOf(IdOf(peer), port));
    }
    server_->Stop();
  }
  ~PmPeers() override { close(port_[0]); }

 private:
  static NodeId IdOf(int peer) { return static_cast<NodeId>(1 + peer); }

  Config ConfigOf(NodeId node) const {
    Config config = BenchConfig(node);
    config.nodes = static_cast<std::uint16_t>(1 + traffic_.peers);
    config.channels = 1;
    // Small, so that a node that only sends soon has to wait, and then takes what came back; or
    // room for some blocks.
    config.send_ring = config.receive_ring = is_incast() ? 1 << 18 : 1 << 16;
    return config;
  }

  void Serve() override {
    // Not before the fork, lest what a peer writes first is copied.
    Config config = ConfigOf(1);
    config.packets = 512;
    config.intervals = 64;
    BenchNodes nodes(config, traffic_.peers, own_->own_address());
    const std::uint16_t port = nodes.port();
    if (write(port_[1], &port, sizeof port) != sizeof port) Die("write");
    Readable readable;
    readable.Add(nodes.fd(), 0);
    // Who has just answered is not due; so all are looked at only where nothing arrives, or seldom.
    Nanos due = 0, looked = 0;
    for (;;) {
      const bool any = !readable.Wait(spins() ? 0 : due).empty();
      nodes.Progress([this](Endpoint& endpoint) { Answer(endpoint); });
      const Nanos now = Wire::Now();
      due = now;
      if (any && now < looked + kLookEvery) continue;
      looked = now;
      due = nodes.OnTimers(now);
    }
  }

  void Answer(Endpoint& endpoint) {
    Message message;
    while (endpoint.Receive(message)) {
      board_->arrived += message.bytes.size();
      if (notes_delays()) NoteDelay(message.bytes.first.data());
      (void)endpoint.Release(0, 0, Wire::Now());
      for (std::size_t left = answers() ? answer_size() : 0; left > 0;) {
        const Bytes piece = Bytes(answer_).first(std::min(left, answer_.size()));
        if (endpoint.Send(0, 0, piece, Wire::Now())) Die("PM: no room for an answer");
        left -= piece.size();
      }
    }
  }

  void SendTo(int peer) override { Put(*own_, IdOf(peer), text_, traffic_.waiting, true); }

  void Await(int count) override {
    Message message;
    const Nanos limit = Wire::Now() + 10 * kSecond;
    for (std::size_t left = static_cast<std::size_t>(count) * answer_size(); left > 0;) {
      if (own_->Receive(message)) {
        left -= message.bytes.size();
        own_->Release(message);
      } else if (!own_->Wait(limit)) {
        Die("PM: no answer");
      }
    }
  }

  void Progress() override { own_->Progress(); }

  void Explain() override { ExplainContext(*own_); }

  void Finish(Measured& /*measured*/) override {
    const Nanos limit = Wire::Now() + 10 * kSecond;
    for (int peer = 0; peer < traffic_.peers; ++peer) {
      while (!own_->Drained(IdOf(peer)) && Wire::Now() < limit) {
        WaitForPeer(*own_, traffic_.waiting);
      }
    }
  }

  std::vector<std::uint8_t> answer_;
  std::unique_ptr<Context> own_;
  int port_[2];  // a pipe: of the peers
};

}  // namespace

std::unique_ptr<Measurement> OpenPmPeers(const Traffic& traffic) {
  return std::make_unique<PmPeers>(traffic);
}

}  // namespace sekisho::pm
