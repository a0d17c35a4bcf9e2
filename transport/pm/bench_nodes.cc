// SPDX-License-Identifier: Apache-2.0
// Many nodes behind one socket.
#include "transport/pm/bench_nodes.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>

#include <algorithm>

#include "transport/pm/bench_network.h"
#include "transport/pm/bench_process.h"
#include "transport/pm/warm_pages.h"

namespace sekisho::pm {
namespace {

constexpr std::size_t kAligned = 4096;

}  // namespace

BenchNodes::BenchNodes(const Config& config, int count, const Address& hub)
    : nodes_(static_cast<std::size_t>(count) + 1),
      in_(std::make_unique<Batch>()),
      out_(std::make_unique<Batch>()) {
  const AtHostOf host(1);
  sockaddr_in bound{};
  socklen_t length = sizeof bound;
  Address any;
  if (ParseAddress("0.0.0.0:0", any) || socket_.Open(any) ||
      getsockname(socket_.fd(), reinterpret_cast<sockaddr*>(&bound), &length) != 0) {
    Die("cannot open a socket");
  }
  const int buffer = 4 << 20;
  (void)setsockopt(socket_.fd(), SOL_SOCKET, SO_RCVBUF, &buffer, sizeof buffer);
  port_ = ntohs(bound.sin_port);
  const std::size_t each = (Endpoint::MemoryNeeded(config) + kAligned - 1) / kAligned * kAligned;
  void* memory = mmap(nullptr, each * nodes_.size(), PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) Die("mmap");
  memory_ = {static_cast<std::uint8_t*>(memory), each * nodes_.size()};
  for (NodeId node = 1; node < nodes_.size(); ++node) {
    Config own = config;
    own.node = node;
    own.seed = config.seed + node;
    if (nodes_[node].Init(own, memory_.subspan(node * each, each), nullptr, Wire::Now()) ||
        nodes_[node].SetAddress(0, hub)) {
      Die("cannot open a node");
    }
    const std::size_t area = Endpoint::AreaNeeded(own);
    const MutableBytes bytes = memory_.subspan(node * each, each);
    WarmPages(own, bytes.first(area), bytes.subspan(area));
  }
}

// The host of node 1 has the whole network of its address.
Address BenchNodes::AddressOf(NodeId node, std::uint16_t port) {
  Address address = AddressAt(1);
  address.ip[14] = static_cast<std::uint8_t>(1 + node / 250);
  address.ip[15] = static_cast<std::uint8_t>(1 + node % 250);
  address.port = port;
  return address;
}

BenchNodes::~BenchNodes() { munmap(memory_.data(), memory_.size()); }

void BenchNodes::Batch::Describe(std::size_t i, std::size_t size) {
  pieces[i] = {bytes[i].data(), size};
  headers[i] = {{&addresses[i], sizeof addresses[i], &pieces[i], 1, nullptr, 0, 0}, 0};
}

// What there is, as far as it fits into a batch, goes to whom it is for.
bool BenchNodes::Receive() {
  for (std::size_t i = 0; i < kAtOnce; ++i) in_->Describe(i, in_->bytes[i].size());
  const int count = recvmmsg(socket_.fd(), in_->headers.data(), kAtOnce, MSG_DONTWAIT, nullptr);
  touched_.clear();
  const Nanos now = Wire::Now();
  for (int i = 0; i < count; ++i) {
    const auto at = static_cast<std::size_t>(i);
    const MutableBytes datagram = in_->room(at).first(in_->headers[at].msg_len);
    Packet packet;
    if (ParsePacket(datagram, packet) != ParseError::kNone) continue;
    const NodeId node = packet.header.destination;
    if (node == 0 || node >= nodes_.size()) continue;
    nodes_[node].OnDatagram(FromIpv4(in_->addresses[at]), datagram, false, now);
    touched_.push_back(node);
  }
  return count > 0;
}

void BenchNodes::Send(Endpoint& endpoint) {
  const Nanos now = Wire::Now();
  for (;;) {
    if (out_->count == kAtOnce) SendRest();
    Address to;
    const std::size_t size = endpoint.NextDatagram(now, out_->room(out_->count), to);
    if (size == 0) return;
    out_->addresses[out_->count] = ToIpv4(to);
    out_->Describe(out_->count++, size);
  }
}

void BenchNodes::SendRest() {
  for (std::size_t done = 0; done < out_->count;) {
    const int sent = sendmmsg(socket_.fd(), out_->headers.data() + done,
                              static_cast<unsigned>(out_->count - done), 0);
    done += static_cast<std::size_t>(std::max(sent, 1));  // what is refused is lost
  }
  out_->count = 0;
}

Nanos BenchNodes::OnTimers(Nanos now) {
  Nanos next = kNever;
  for (NodeId node = 1; node < nodes_.size(); ++node) {
    Endpoint& endpoint = nodes_[node];
    if (endpoint.NextDeadline() <= now) {
      endpoint.OnTimer(now);
      Send(endpoint);
    }
    next = std::min(next, endpoint.NextDeadline());
  }
  SendRest();
  return next;
}

}  // namespace sekisho::pm
