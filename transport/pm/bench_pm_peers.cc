// SPDX-License-Identifier: Apache-2.0
// One node of PM and its many peers.  They are endpoints on sockets without what a context has for
// a daemon: what counts is the node that has many.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/bench_context.h"
#include "transport/pm/bench_network.h"
#include "transport/pm/bench_pair.h"
#include "transport/pm/bench_peers.h"
#include "transport/pm/device.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kLookEvery = 100 * kMicrosecond;

class PmPeers final : public PeersEnd {
 public:
  explicit PmPeers(const Traffic& traffic) : PeersEnd(traffic) {
    own_ = OpenBenchContext(ConfigOf(0), traffic.waiting);
    if (pipe2(addresses_, O_CLOEXEC) != 0) Die("pipe2");
    Fork();
    close(addresses_[1]);  // or its end would not be ours to see
    server_->Go();
    for (int peer = 0; peer < traffic.peers; ++peer) {
      Address address;
      if (read(addresses_[0], &address, sizeof address) != sizeof address) Die("no peer");
      (void)own_->SetAddress(IdOf(peer), address);
    }
    server_->Stop();
  }
  ~PmPeers() override { close(addresses_[0]); }

 private:
  static NodeId IdOf(int peer) { return static_cast<NodeId>(1 + peer); }

  Config ConfigOf(NodeId node) const {
    Config config = BenchConfig(node);
    config.nodes = static_cast<std::uint16_t>(1 + traffic_.peers);
    config.channels = 1;
    // Small, so that a node that only sends soon has to wait, and then takes what came back.
    config.send_ring = config.receive_ring = 1 << 16;
    return config;
  }

  // Not before the fork, lest what a peer writes first is copied.
  void OpenPeers() {
    for (int peer = 0; peer < traffic_.peers; ++peer) {
      Config config = ConfigOf(IdOf(peer));
      config.packets = 512;
      config.intervals = 64;
      const AtHostOf host(config.node);
      if (Device::Open(config, AddressAt(config.node), {}, nullptr, devices_.emplace_back())) {
        Die("cannot open a peer");
      }
      (void)devices_.back()->endpoint().SetAddress(0, own_->own_address());
      const Address address = devices_.back()->own_address();
      if (write(addresses_[1], &address, sizeof address) != sizeof address) Die("write");
    }
  }

  void Serve() override {
    OpenPeers();
    Readable readable;
    for (std::size_t i = 0; i < devices_.size(); ++i) {
      readable.Add(devices_[i]->fd(), static_cast<std::uint32_t>(i));
    }
    // Who has just answered is not due; so all are looked at only where nothing arrives, or seldom.
    Nanos due = 0, looked = 0;
    for (;;) {
      const auto events = readable.Wait(spins() ? 0 : due);
      for (const epoll_event& event : events) Answer(*devices_[event.data.u32]);
      const Nanos now = Wire::Now();
      due = now;
      if (!events.empty() && now < looked + kLookEvery) continue;
      looked = now;
      due = kNever;
      for (const auto& device : devices_) {
        if (device->endpoint().NextDeadline() <= now) Answer(*device);
        due = std::min(due, device->endpoint().NextDeadline());
      }
    }
  }

  void Answer(Device& device) {
    device.Progress();
    Endpoint& endpoint = device.endpoint();
    Message message;
    bool any = false;
    while (endpoint.Receive(message)) {
      any = true;
      board_->arrived += message.bytes.size();
      if (notes_delays()) NoteDelay(message.bytes.first.data());
      (void)endpoint.Release(0, 0, Wire::Now());
      if (answers() && endpoint.Send(0, 0, text_, Wire::Now())) Die("PM: no room for an answer");
    }
    if (any) device.Flush();
  }

  void SendTo(int peer) override { Put(*own_, IdOf(peer), text_, traffic_.waiting, true); }

  void Await(int count) override {
    Message message;
    const Nanos limit = Wire::Now() + 10 * kSecond;
    while (count > 0) {
      if (own_->Receive(message)) {
        own_->Release(message);
        --count;
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

  std::unique_ptr<Context> own_;
  int addresses_[2];                              // a pipe: of the peers
  std::vector<std::unique_ptr<Device>> devices_;  // in their process
};

}  // namespace

std::unique_ptr<Measurement> OpenPmPeers(const Traffic& traffic) {
  return std::make_unique<PmPeers>(traffic);
}

}  // namespace sekisho::pm
