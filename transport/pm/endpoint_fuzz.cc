// SPDX-License-Identifier: Apache-2.0
// The receive path with the key known: what a hostile member of the job can do to a node.  The
// input is a list of genuine packets with any content, raw datagrams, passing time and calls; the
// state must stay whole.
#include <cstdlib>
#include <cstring>
#include <vector>

#include "transport/pm/endpoint.h"
#include "transport/pm/fuzz_input.h"

using namespace sekisho::pm;

namespace {

struct Node {
  explicit Node(NodeId id) {
    Config config;
    config.node = id;
    config.channels = 2;
    config.send_ring = config.receive_ring = 4096;
    config.message_limit = 64;
    config.packets = 16;
    config.intervals = 6;
    config.incast_budget = 8192;
    memory.resize(Endpoint::MemoryNeeded(config) + 64);
    const auto address = reinterpret_cast<std::uintptr_t>(memory.data());
    if (endpoint.Init(config, MutableBytes(memory).subspan((64 - address % 64) % 64), nullptr, 0)) {
      std::abort();
    }
    Address there;
    there.port = static_cast<std::uint16_t>(2 - id);
    (void)endpoint.SetAddress(static_cast<NodeId>(1 - id), there);
  }

  std::vector<std::uint8_t> memory;
  Endpoint endpoint;
};

Address From(NodeId id) {
  Address address;
  address.port = static_cast<std::uint16_t>(1 + id);
  return address;
}

void Drain(Endpoint& from, Endpoint* to, NodeId id, Nanos now) {
  std::array<std::uint8_t, 2048> room;
  Address address;
  for (int i = 0; i < 2000; ++i) {
    const std::size_t size = from.NextDatagram(now, room, address);
    if (size == 0) return;
    if (to != nullptr) to->OnDatagram(From(id), std::span(room).first(size), false, now);
  }
  std::abort();  // it never ends
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzInput input(data, size);
  Node peer(0), node(1);
  Endpoint& under_test = node.endpoint;
  Nanos now = kMillisecond;
  const std::array<std::uint8_t, 9> text{};
  (void)peer.endpoint.Send(1, 0, text, now);
  for (int i = 0; i < 4; ++i) {
    Drain(peer.endpoint, &under_test, 0, now);
    Drain(under_test, &peer.endpoint, 1, now);
  }
  if (under_test.peer_state(0) != PeerState::kUp) std::abort();

  const JobKey key{};
  const SipKey session = SessionKey(key, {0, 0, 1, 1, 1});
  const PayloadKey payload_key = MakePayloadKey(key);
  const SipKey greeting = GreetingKey(key, {0, 0, 1, 0, 0});
  std::uint64_t number = 8;
  std::array<std::uint8_t, 1024> packet;
  Message message;
  for (int steps = 0; !input.empty() && steps < 400; ++steps) {
    packet.fill(0);
    switch (input.Byte() % 8) {
      case 0:
      case 1:
      case 2: {  // genuine DATA
        number += input.Byte() % 8;
        const std::uint16_t control = input.Byte();
        const std::size_t payload = input.Byte() * std::size_t{2};
        const int flags = input.Byte() & (kFlagNoHurry | kFlagAfterProbe);
        WriteHeader({Kind::kData, static_cast<std::uint8_t>(flags), 0, 0, 1, number, control},
                    std::span(packet).first<kHeaderSize>());
        input.Fill(MutableBytes(packet).subspan(kHeaderSize, control + payload));
        const std::size_t end =
            Seal(session, nullptr, &payload_key, packet, kHeaderSize + control + payload);
        under_test.OnDatagram(From(0), std::span(packet).first(end), (number & 16) != 0, now);
        break;
      }
      case 3: {  // genuine greeting
        const Kind kind = static_cast<Kind>(1 + input.Byte() % 4);
        WriteHeader({kind, 0, 0, 0, 1, 0, kGreetingControlSize},
                    std::span(packet).first<kHeaderSize>());
        input.Fill(MutableBytes(packet).subspan(kHeaderSize, 38));
        const std::size_t end =
            Seal(greeting, nullptr, nullptr, packet, kHeaderSize + kGreetingControlSize);
        under_test.OnDatagram(From(0), std::span(packet).first(end), false, now);
        break;
      }
      case 4: {  // any datagram
        const std::size_t length = input.Byte();
        input.Fill(MutableBytes(packet).first(length));
        under_test.OnDatagram(From(0), std::span(packet).first(length), false, now);
        break;
      }
      case 5:
        under_test.OnRefused(0, input.Byte() % 2 == 0, now);
        now += Nanos{1} << input.Byte() % 32;
        under_test.OnTimer(now);
        break;
      case 6:
        if (under_test.Receive(message)) {
          std::uint8_t sum = 0;
          for (const std::uint8_t byte : message.bytes.first)
            sum = static_cast<std::uint8_t>(sum + byte);
          for (const std::uint8_t byte : message.bytes.second)
            sum = static_cast<std::uint8_t>(sum + byte);
          (void)sum;
        }
        (void)under_test.Release(0, static_cast<ChannelId>(input.Byte() % 2), now);
        break;
      default: {
        const std::size_t length = input.Byte() * std::size_t{4};
        (void)under_test.Send(0, static_cast<ChannelId>(length / 4 % 2),
                              Bytes(packet).first(length), now);
      }
    }
    Drain(under_test, nullptr, 1, now);
    if (under_test.Check() != nullptr) std::abort();
  }
  return 0;
}
