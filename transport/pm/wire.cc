// SPDX-License-Identifier: Apache-2.0
// A UDP socket and the buffers between it and an endpoint.
#include "transport/pm/wire.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/number.h"
#include "transport/pm/socket_sleep.h"
#include "transport/pm/udp_offload.h"

namespace sekisho::pm {
namespace {

// Explicit congestion notification (RFC 3168): two bits of every packet.
constexpr int kEcnMask = 3, kEcnCapable = 2, kEcnMarked = 3;
constexpr std::size_t kReceiveBufferSize = 65536;
constexpr std::size_t kSendBufferSize = 128 * 1024;
constexpr std::size_t kTrain = 8192;       // so much in a buffer is best taken while it is in cache
constexpr std::size_t kRunDatagrams = 60;  // the kernel's limit is 64
constexpr std::size_t kRunBytes = 65000;

struct SocketAddress {
  union {
    sockaddr any;
    sockaddr_in v4;
    sockaddr_in6 v6;
  };
  socklen_t size = 0;
};

SocketAddress ToSocket(const Address& address, int family) {
  SocketAddress out;
  memset(&out.v6, 0, sizeof out.v6);
  if (family == AF_INET) {
    out.v4.sin_family = AF_INET;
    out.v4.sin_port = htons(address.port);
    memcpy(&out.v4.sin_addr, address.ip.data() + 12, 4);
    out.size = sizeof out.v4;
  } else {
    out.v6.sin6_family = AF_INET6;
    out.v6.sin6_port = htons(address.port);
    memcpy(&out.v6.sin6_addr, address.ip.data(), 16);
    out.size = sizeof out.v6;
  }
  return out;
}

std::error_code LastError() { return {errno, std::generic_category()}; }

}  // namespace

Address AddressFrom(const sockaddr& in) {
  Address address;
  if (in.sa_family == AF_INET) {
    const auto& v4 = reinterpret_cast<const sockaddr_in&>(in);
    address.ip[10] = address.ip[11] = 0xff;
    memcpy(address.ip.data() + 12, &v4.sin_addr, 4);
    address.port = ntohs(v4.sin_port);
  } else if (in.sa_family == AF_INET6) {
    const auto& v6 = reinterpret_cast<const sockaddr_in6&>(in);
    memcpy(address.ip.data(), &v6.sin6_addr, 16);
    address.port = ntohs(v6.sin6_port);
  }
  return address;
}

bool IsMapped(const Address& address) {
  static constexpr std::uint8_t kPrefix[12] = {0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return memcmp(address.ip.data(), kPrefix, sizeof kPrefix) == 0;
}

std::error_code ParseAddress(const char* text, Address& address) {
  const char* colon = strrchr(text, ':');
  if (colon == nullptr) return Error::kBadConfig;
  unsigned long port;
  if (!ReadNumber(colon + 1, 0, 65535, port)) return Error::kBadConfig;
  const bool bracketed = text[0] == '[' && colon > text && colon[-1] == ']';
  const char* host = text + (bracketed ? 1 : 0);
  const auto length = static_cast<std::size_t>(colon - host) - (bracketed ? 1 : 0);
  std::array<char, 64> name{};
  if (length >= name.size()) return Error::kBadConfig;
  memcpy(name.data(), host, length);
  SocketAddress socket;
  memset(&socket.v6, 0, sizeof socket.v6);
  if (bracketed) {
    socket.v6.sin6_family = AF_INET6;
    if (inet_pton(AF_INET6, name.data(), &socket.v6.sin6_addr) != 1) return Error::kBadConfig;
  } else {
    socket.v4.sin_family = AF_INET;
    if (inet_pton(AF_INET, name.data(), &socket.v4.sin_addr) != 1) return Error::kBadConfig;
  }
  address = AddressFrom(socket.any);
  address.port = static_cast<std::uint16_t>(port);
  return {};
}

Nanos Wire::Now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * kSecond + now.tv_nsec;
}

UdpSocket::~UdpSocket() {
  if (fd_ >= 0) close(fd_);
}

std::error_code UdpSocket::Open(const Address& own) {
  family_ = IsMapped(own) ? AF_INET : AF_INET6;
  fd_ = socket(family_, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const SocketAddress at = ToSocket(own, family_);
  if (fd_ < 0 || bind(fd_, &at.any, at.size) != 0) return LastError();
  return {};
}

bool UdpSocket::SendTo(const Address& to, Bytes datagram) {
  const SocketAddress at = ToSocket(to, family_);
  return sendto(fd_, datagram.data(), datagram.size(), 0, &at.any, at.size) >= 0;
}

std::size_t UdpSocket::Receive(MutableBytes room) {
  const ssize_t size = recv(fd_, room.data(), room.size(), 0);
  return size > 0 ? static_cast<std::size_t>(size) : 0;
}

Wire::~Wire() {
  if (fd_ >= 0) close(fd_);
  if (!mapping_.empty()) munmap(mapping_.data(), mapping_.size());
}

// The buffers, and what the socket says of itself.
std::error_code Wire::Prepare() {
  SocketAddress bound;
  bound.size = sizeof bound.v6;
  if (getsockname(fd_, &bound.any, &bound.size) != 0) return LastError();
  if (bound.any.sa_family != AF_INET && bound.any.sa_family != AF_INET6) return Error::kBadConfig;
  family_ = bound.any.sa_family;
  own_ = AddressFrom(bound.any);
  // All calls but Await do without waiting.
  const timeval longest = {0, SocketSleep::kLongest / kMicrosecond};
  if (setsockopt(fd_, SOL_SOCKET, SO_RCVTIMEO, &longest, sizeof longest) != 0) return LastError();
  const std::size_t buffers = (kReceiveBuffers + 1) * kReceiveBufferSize;
  const std::size_t size = buffers + kSendBufferSize;
  void* memory = mmap(nullptr, size, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return LastError();
  mapping_ = {static_cast<std::uint8_t*>(memory), size};
  receive_buffers_ = mapping_.first(buffers);
  send_buffer_ = mapping_.subspan(buffers);
  return {};
}

std::error_code Wire::Open(const Address& address, const Options& options) {
  family_ = IsMapped(address) ? AF_INET : AF_INET6;
  fd_ = socket(family_, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  if (fd_ < 0) return LastError();
  const SocketAddress own = ToSocket(address, family_);
  if (bind(fd_, &own.any, own.size) != 0) return LastError();

  // Larger than the system's limit is cut silently; smaller only costs datagrams.
  (void)setsockopt(fd_, SOL_SOCKET, SO_RCVBUF, &options.socket_buffer, sizeof(int));
  (void)setsockopt(fd_, SOL_SOCKET, SO_SNDBUF, &options.socket_buffer, sizeof(int));
  // Never IP fragments, and no help of the kernel's own idea of the path: we probe.
  const int probe = family_ == AF_INET ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE;
  const int set = family_ == AF_INET
                      ? setsockopt(fd_, IPPROTO_IP, IP_MTU_DISCOVER, &probe, sizeof probe)
                      : setsockopt(fd_, IPPROTO_IPV6, IPV6_MTU_DISCOVER, &probe, sizeof probe);
  if (set != 0) return LastError();
  // Where the path marks instead of dropping, we hear of it; elsewhere nothing changes.
  const int capable = kEcnCapable, on = 1;
  if (family_ == AF_INET) {
    (void)setsockopt(fd_, IPPROTO_IP, IP_TOS, &capable, sizeof capable);
    (void)setsockopt(fd_, IPPROTO_IP, IP_RECVTOS, &on, sizeof on);
  } else {
    (void)setsockopt(fd_, IPPROTO_IPV6, IPV6_TCLASS, &capable, sizeof capable);
    (void)setsockopt(fd_, IPPROTO_IPV6, IPV6_RECVTCLASS, &on, sizeof on);
  }
  if (options.offload) {
    const int off = 0;
    counters_.segmentation = setsockopt(fd_, SOL_UDP, UDP_SEGMENT, &off, sizeof off) == 0;
    counters_.coalescing = setsockopt(fd_, SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
  }
  return Prepare();
}

std::error_code Wire::Adopt(int fd) {
  fd_ = fd;
  int type = 0, on = 0;
  socklen_t size = sizeof type;
  if (getsockopt(fd_, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return LastError();
  if (type != SOCK_DGRAM) return Error::kBadConfig;
  size = sizeof on;
  counters_.coalescing = getsockopt(fd_, SOL_UDP, UDP_GRO, &on, &size) == 0 && on != 0;
  counters_.segmentation = counters_.coalescing;
  return Prepare();
}

namespace {

// What the kernel says of a buffer: bytes of each datagram if it holds several, and whether the
// path marked them (ECN; both families call the field by other names).
void ReadControl(msghdr& header, std::size_t& step, bool& marked) {
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    int value = 0;
    memcpy(&value, CMSG_DATA(c), std::min<std::size_t>(c->cmsg_len - CMSG_LEN(0), sizeof value));
    if (c->cmsg_level == SOL_UDP && c->cmsg_type == UDP_GRO && value > 0) {
      step = static_cast<std::size_t>(value);
    }
    const bool is_class = (c->cmsg_level == IPPROTO_IP && c->cmsg_type == IP_TOS) ||
                          (c->cmsg_level == IPPROTO_IPV6 && c->cmsg_type == IPV6_TCLASS);
    if (is_class) marked = (value & kEcnMask) == kEcnMarked;
  }
}

}  // namespace

MutableBytes Wire::ReceiveBuffer(std::size_t at) const {
  return receive_buffers_.subspan(at * kReceiveBufferSize, kReceiveBufferSize);
}

Wire::Pulled Wire::ReceiveOne(std::size_t buffer, int flags) const {
  const MutableBytes room = ReceiveBuffer(buffer);
  SocketAddress from;
  std::array<std::uint64_t, 8> control;  // aligned for cmsghdr
  iovec piece = {room.data(), room.size()};
  msghdr header = {&from.v6, sizeof from.v6, &piece, 1, control.data(), sizeof control, 0};
  const ssize_t size = recvmsg(fd_, &header, flags);
  if (size < 0) return {};
  const auto total = static_cast<std::size_t>(size);
  Pulled pulled = {AddressFrom(from.any), room.first(total), total, false, true};
  ReadControl(header, pulled.step, pulled.marked);
  return pulled;
}

// One call for one datagram costs less than asking for many and being told that there is no more.
std::size_t Wire::PullOne() {
  datagrams_[0] = ReceiveOne(0, MSG_DONTWAIT);
  ++counters_.receive_calls;
  NoteOne();
  return pulled_;
}

void Wire::NoteOne() {
  pulled_ = datagrams_[0].is_there ? 1 : 0;
  in_a_row_ = datagrams_[0].is_there ? in_a_row_ + 1 : 0;
  if (in_a_row_ >= many_in_a_row_ && datagrams_[0].bytes.size() < kTrain) one_by_one_ = false;
}

Wire::Pulled Wire::Await() const { return ReceiveOne(kReceiveBuffers, 0); }

void Wire::Keep(const Pulled& awaited) {
  ++counters_.receive_calls;
  kept_ = awaited;
  ends_await_ = false;
}

void Wire::EndAwait() {
  if (ends_await_) return;
  ends_await_ = true;
  const SocketAddress to = ToSocket(own_, family_);
  (void)sendto(fd_, nullptr, 0, MSG_DONTWAIT, &to.any, to.size);
}

std::size_t Wire::PullMany() {
  std::array<mmsghdr, kReceiveBuffers> headers{};
  std::array<iovec, kReceiveBuffers> pieces;
  std::array<SocketAddress, kReceiveBuffers> from;
  std::array<std::array<std::uint64_t, 8>, kReceiveBuffers> control;  // aligned for cmsghdr
  for (std::size_t i = 0; i < kReceiveBuffers; ++i) {
    pieces[i] = {ReceiveBuffer(i).data(), kReceiveBufferSize};
    headers[i].msg_hdr = {&from[i].v6,       sizeof from[i].v6, &pieces[i], 1,
                          control[i].data(), sizeof control[i], 0};
  }
  const int count = recvmmsg(fd_, headers.data(), kReceiveBuffers, MSG_DONTWAIT, nullptr);
  ++counters_.receive_calls;
  pulled_ = count <= 0 ? 0 : static_cast<std::size_t>(count);
  std::size_t total = 0;
  for (std::size_t i = 0; i < pulled_; ++i) total += headers[i].msg_len;
  one_by_one_ = pulled_ <= 1 || total >= pulled_ * kTrain;
  if (pulled_ > 1) many_in_a_row_ = kManyInARow;
  if (pulled_ <= 1 && in_a_row_ > 0) many_in_a_row_ = std::min(2 * many_in_a_row_, kMostInARow);
  in_a_row_ = 0;
  for (std::size_t i = 0; i < pulled_; ++i) {
    msghdr& header = headers[i].msg_hdr;
    const std::size_t size = headers[i].msg_len;
    datagrams_[i] = {AddressFrom(from[i].any), ReceiveBuffer(i).first(size), size, false, true};
    ReadControl(header, datagrams_[i].step, datagrams_[i].marked);
  }
  return pulled_;
}

void Wire::Feed(Endpoint& endpoint, Nanos now) {
  if (!near_pulled_.empty()) FeedNear(endpoint, now);
  for (std::size_t i = 0; i < pulled_; ++i) {
    const auto& [from, bytes, step, marked, is_there] = datagrams_[i];
    MutableBytes rest = bytes;
    if (rest.empty()) {
      ends_await_ = false;
      // Ours, which EndAwait sent, come from our own port, at whatever address.
      if (from.port != own_.port) endpoint.OnDatagram(from, rest, marked, now);
      continue;
    }
    if (step < rest.size()) counters_.received_together += (rest.size() + step - 1) / step;
    const bool traced = trace_ != nullptr && trace_->IsOn(now);
    while (!rest.empty()) {
      const std::size_t size = std::min(step, rest.size());
      if (traced) trace_->Write(now, from, false, driver_, rest.first(size));
      endpoint.OnDatagram(from, rest.first(size), marked, now);
      rest = rest.subspan(size);
    }
  }
  pulled_ = 0;
}

void Wire::Trace(std::span<const Run> runs) {
  const Nanos now = Now();
  if (!trace_->IsOn(now)) return;
  for (const Run& run : runs) {
    for (std::size_t done = 0; done < run.bytes.size(); done += run.step) {
      trace_->Write(now, run.to, true, driver_, run.Datagram(done));
    }
  }
}

void Wire::SendSingly(Run& run) {
  const SocketAddress to = ToSocket(run.to, family_);
  for (std::size_t done = 0; done < run.bytes.size(); done += run.step) {
    const Bytes one = run.Datagram(done);
    const auto send = [&] {
      return sendto(fd_, one.data(), one.size(), MSG_DONTWAIT, &to.any, to.size) >= 0;
    };
    ++counters_.send_calls;
    if (send()) continue;
    if (errno == ECONNREFUSED) {  // an older datagram's ICMP answer; this one was not sent
      (void)send();
    } else if (errno == EMSGSIZE) {
      ++counters_.too_large;
      run.refused = true;
    } else {
      ++(errno == EAGAIN || errno == ENOBUFS ? counters_.blocked : counters_.failed);
    }
  }
}

bool Wire::SendOne(const Run& run) {
  const SocketAddress to = ToSocket(run.to, family_);
  ++counters_.send_calls;
  return sendto(fd_, run.bytes.data(), run.bytes.size(), MSG_DONTWAIT, &to.any, to.size) >= 0;
}

void Wire::Send(std::span<Run> runs) {
  if (runs.size() == 1 && runs[0].count == 1 && SendOne(runs[0])) return;
  // Not set by themselves, for most often there is one.
  std::array<mmsghdr, kRuns> headers;
  std::array<SocketAddress, kRuns> to;
  std::array<iovec, kRuns> pieces;
  std::array<std::array<std::uint64_t, 4>, kRuns> control;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    to[i] = ToSocket(runs[i].to, family_);
    pieces[i] = {runs[i].bytes.data(), runs[i].bytes.size()};
    headers[i].msg_len = 0;
    control[i].fill(0);
    msghdr& header = headers[i].msg_hdr;
    header = {&to[i].v6, to[i].size, &pieces[i], 1, nullptr, 0, 0};
    if (runs[i].count == 1) continue;
    counters_.sent_together += runs[i].count;
    header.msg_control = control[i].data();
    header.msg_controllen = CMSG_SPACE(sizeof(std::uint16_t));
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_UDP;
    c->cmsg_type = UDP_SEGMENT;
    c->cmsg_len = CMSG_LEN(sizeof(std::uint16_t));
    const auto step = static_cast<std::uint16_t>(runs[i].step);
    memcpy(CMSG_DATA(c), &step, sizeof step);
  }
  std::size_t done = 0;
  while (done < runs.size()) {
    const int sent = sendmmsg(fd_, headers.data() + done, static_cast<unsigned>(runs.size() - done),
                              MSG_DONTWAIT);
    ++counters_.send_calls;
    if (sent > 0) {
      done += static_cast<std::size_t>(sent);
      continue;
    }
    const bool cannot_cut = runs[done].count > 1 && (errno == EIO || errno == EINVAL);
    SendSingly(runs[done]);
    if (cannot_cut && !runs[done].refused) counters_.segmentation = false;
    ++done;
  }
}

// As much as leaves in one turn: what is in cache, many datagrams to one address or a few to many.
// False: there is no more.
bool Wire::Collect(Endpoint& endpoint, std::span<Run> runs, std::size_t& count, Nanos now) {
  MutableBytes room = send_buffer_;
  count = 0;
  Outgoing datagram;
  while (room.size() >= kDatagramMax) {
    if (!endpoint.NextOutgoing(now, room, datagram)) return false;
    Run* last = count == 0 ? nullptr : &runs[count - 1];
    const bool joins = last != nullptr && counters_.segmentation && !last->closed &&
                       last->to == datagram.to && datagram.size <= last->step && !datagram.is_probe;
    if (!joins) {
      last = &runs[count++];
      *last = Run{.to = datagram.to,
                  .bytes = room.first(0),
                  .step = datagram.size,
                  .node = datagram.node,
                  .is_probe = datagram.is_probe};
    }
    last->bytes = {last->bytes.data(), last->bytes.size() + datagram.size};
    ++last->count;
    last->closed = datagram.size < last->step || last->count >= kRunDatagrams;
    room = room.subspan(datagram.size);
    const bool full = last->bytes.size() + last->step > kRunBytes;
    if (count == runs.size() || full || last->is_probe) break;
  }
  return true;
}

void Wire::Flush(Endpoint& endpoint, const Fence& fence, Nanos now) {
  for (bool more = endpoint.HasWork(); more;) {
    std::size_t count;
    more = Collect(endpoint, runs_, count, now);
    if (count == 0 || !fence.holds()) return;
    if (trace_ != nullptr && trace_->asked()) Trace(std::span(runs_).first(count));
    if (near_ != nullptr && !near_->empty()) {
      count = SendNear(endpoint, std::span(runs_).first(count));
    }
    const std::span runs = std::span(runs_).first(count);
    Send(runs);
    for (const Run& run : runs) {
      if (!run.refused || run.node == kNil) continue;
      endpoint.OnRefused(static_cast<NodeId>(run.node), run.is_probe, now);
      more = true;
    }
    if (more) now = Now();
  }
}

}  // namespace sekisho::pm
