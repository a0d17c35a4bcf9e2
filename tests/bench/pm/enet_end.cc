// SPDX-License-Identifier: Apache-2.0
// One end of a measurement with ENet, where its library is installed: reliable packets in order,
// both ends spin.  `peers` starts it.
#include <enet/enet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <string>

namespace {

using Clock = std::chrono::steady_clock;

// The first byte of a packet: send it back, drop it, or send it back and end.
constexpr std::uint8_t kEcho = 'e', kSink = 's', kLast = 'l';
constexpr std::size_t kOutstanding = 1 << 20;  // bytes that were not acknowledged
constexpr enet_uint32 kPatienceMs = 5000;

[[noreturn]] void Die(const char* what) {
  fprintf(stderr, "sekisho-pm-enet: %s\n", what);
  exit(1);
}

std::size_t outstanding = 0;

void Acknowledged(ENetPacket* packet) { outstanding -= packet->dataLength; }

void Send(ENetPeer* peer, const std::string& text) {
  ENetPacket* packet = enet_packet_create(text.data(), text.size(), ENET_PACKET_FLAG_RELIABLE);
  if (packet == nullptr) Die("no memory");
  packet->freeCallback = Acknowledged;
  outstanding += text.size();
  if (enet_peer_send(peer, 0, packet) != 0) Die("enet_peer_send");
}

// Spins until a packet has come.
std::string Receive(ENetHost* host) {
  const auto limit = Clock::now() + std::chrono::milliseconds(kPatienceMs);
  ENetEvent event;
  for (;;) {
    const int got = enet_host_service(host, &event, 0);
    if (got > 0 && event.type == ENET_EVENT_TYPE_DISCONNECT) Die("the other end has gone");
    if (got < 0 || Clock::now() > limit) Die("nothing arrives");
    if (got == 0 || event.type != ENET_EVENT_TYPE_RECEIVE) continue;
    std::string text(reinterpret_cast<const char*>(event.packet->data), event.packet->dataLength);
    enet_packet_destroy(event.packet);
    return text;
  }
}

int Serve(enet_uint16 port) {
  const ENetAddress address = {ENET_HOST_ANY, port};
  ENetHost* host = enet_host_create(&address, 1, 1, 0, 0);
  ENetEvent event;
  if (host == nullptr) Die("cannot bind the port");
  puts("ready");
  fflush(stdout);
  if (enet_host_service(host, &event, kPatienceMs) <= 0) Die("nobody came");
  ENetPeer* peer = event.peer;
  for (;;) {
    const std::string text = Receive(host);
    if (text[0] == kSink) continue;
    Send(peer, text);
    if (text[0] != kLast) continue;
    while (enet_host_service(host, &event, kPatienceMs) > 0 &&
           event.type != ENET_EVENT_TYPE_DISCONNECT) {
    }
    return 0;
  }
}

double RoundTrips(ENetHost* host, ENetPeer* peer, std::string text, Clock::duration time) {
  text[0] = kEcho;
  const auto start = Clock::now();
  std::uint64_t count = 0;
  for (; Clock::now() - start < time; ++count) {
    Send(peer, text);
    (void)Receive(host);
  }
  return std::chrono::duration<double>(Clock::now() - start).count() / static_cast<double>(count);
}

double Stream(ENetHost* host, ENetPeer* peer, std::string text, Clock::duration time) {
  text[0] = kSink;
  const auto start = Clock::now();
  std::uint64_t count = 0;
  while (Clock::now() - start < time) {
    for (; outstanding + text.size() <= kOutstanding; ++count) Send(peer, text);
    ENetEvent event;
    if (enet_host_service(host, &event, 0) < 0) Die("enet_host_service");
  }
  text[0] = kEcho;  // all have arrived when it comes back
  Send(peer, text);
  (void)Receive(host);
  return static_cast<double>(count + 1) /
         std::chrono::duration<double>(Clock::now() - start).count();
}

int Measure(const std::string& what, const char* server, enet_uint16 port, std::size_t bytes,
            std::uint64_t ms) {
  ENetAddress address = {};
  if (enet_address_set_host_ip(&address, server) != 0) Die("not an address");
  address.port = port;
  ENetHost* host = enet_host_create(nullptr, 1, 1, 0, 0);
  ENetPeer* peer = host == nullptr ? nullptr : enet_host_connect(host, &address, 1, 0);
  ENetEvent event;
  if (peer == nullptr || enet_host_service(host, &event, kPatienceMs) <= 0 ||
      event.type != ENET_EVENT_TYPE_CONNECT) {
    Die("cannot connect");
  }
  const std::string text(std::max<std::size_t>(bytes, 1), 'x');
  const auto time = std::chrono::milliseconds(ms);
  if (what == "roundtrip") {
    printf("%g\n", RoundTrips(host, peer, text, time) * 1e6);
  } else {
    printf("%g\n", Stream(host, peer, text, time));
  }
  Send(peer, std::string(1, static_cast<char>(kLast)));
  (void)Receive(host);
  enet_peer_disconnect_now(peer, 0);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (enet_initialize() != 0) Die("enet_initialize");
  const auto port = [](const char* text) { return static_cast<enet_uint16>(atoi(text)); };
  const std::string what = argc > 1 ? argv[1] : "";
  if (what == "serve" && argc == 3) return Serve(port(argv[2]));
  if ((what == "roundtrip" || what == "stream") && argc == 6) {
    return Measure(what, argv[2], port(argv[3]), strtoull(argv[4], nullptr, 10),
                   strtoull(argv[5], nullptr, 10));
  }
  fputs(
      "usage: sekisho-pm-enet serve PORT | roundtrip ADDRESS PORT BYTES MS | stream ADDRESS PORT "
      "BYTES MS\n"
      "roundtrip prints microseconds, stream messages a second\n",
      stderr);
  return 64;
}
