// SPDX-License-Identifier: Apache-2.0
// A UDP socket and the buffers between it and an endpoint.  Linux.
#pragma once

#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <memory>
#include <system_error>

#include "transport/pm/endpoint.h"
#include "transport/pm/near_links.h"
#include "transport/pm/trace_ring.h"

namespace sekisho::pm {

// "192.0.2.1:5000" or "[2001:db8::1]:5000".
std::error_code ParseAddress(const char* text, Address& address);
Address AddressFrom(const sockaddr& in);  // of IPv4 or IPv6; else zeros
bool IsMapped(const Address& address);    // of IPv4

struct WireCounters {
  std::uint64_t receive_calls = 0, send_calls = 0;
  std::uint64_t received_together = 0;  // datagrams that came as part of a larger buffer (UDP_GRO)
  std::uint64_t sent_together = 0;  // datagrams that left as part of a larger buffer (UDP_SEGMENT)
  std::uint64_t blocked = 0;        // dropped here: the socket's buffer was full
  std::uint64_t too_large = 0;      // refused by the own interface (path MTU probes)
  std::uint64_t failed = 0;
  bool segmentation = false, coalescing = false;  // in use now
};

// Whether what was decided may still leave: the owner word is as it was.
struct Fence {
  const std::atomic<std::uint64_t>* word = nullptr;
  std::uint64_t value = 0;

  bool holds() const { return word == nullptr || SameHold(word->load(), value); }
};

// A plain socket for single datagrams.
class UdpSocket {
 public:
  UdpSocket() = default;
  ~UdpSocket();
  UdpSocket(const UdpSocket&) = delete;
  UdpSocket& operator=(const UdpSocket&) = delete;

  std::error_code Open(const Address& own);
  bool SendTo(const Address& to, Bytes datagram);
  std::size_t Receive(MutableBytes room);  // 0: nothing
  int fd() const { return fd_; }

 private:
  int fd_ = -1;
  int family_ = 0;
};

class Wire {
 public:
  struct Options {
    bool offload = true;  // UDP_SEGMENT and UDP_GRO where the kernel has them
    int socket_buffer = 4 << 20;
  };

  Wire() = default;
  ~Wire();
  Wire(const Wire&) = delete;
  Wire& operator=(const Wire&) = delete;

  static Nanos Now();

  // Binds `own` (port 0: any).
  std::error_code Open(const Address& own, const Options& options);
  // A socket that another process opened so; `fd` becomes ours.
  std::error_code Adopt(int fd);
  // Where datagrams are recorded when somebody asks for it; as those of `driver`.
  void SetTrace(TraceRing& trace, Side driver) { trace_ = &trace, driver_ = driver; }

  // By which datagrams go besides, as far as they can.
  void SetNear(NearLinks& near) { near_ = &near; }

  // Takes datagrams from the rings or from the socket; how many buffers.  Touches no endpoint.  One
  // that `spins` calls again at once: then what it waits for is sooner in a ring, if it was lately.
  std::size_t Pull(bool spins = false);
  // One who was woken for what is there asks for all of it.
  void ExpectMany() { one_by_one_ = false; }
  // Whether there may be more than Pull took.
  bool full() const {
    return near_pulled_.size() == NearLinks::kAtOnce || pulled_ == kReceiveBuffers;
  }
  bool socket_is_empty() const { return socket_is_empty_; }  // when we last looked

  // A buffer that the socket filled: datagrams of one size (the last may be shorter), or an empty
  // one.
  struct Pulled {
    Address from;
    MutableBytes bytes;
    std::size_t step = 0;
    bool marked = false;  // the path is congested
    bool is_there = false;
  };
  // Sleeps until something is there, at most SocketSleep::kWithTicks.  Meanwhile other threads may
  // do everything else.  What came is Pull's next, once it is kept.
  Pulled Await() const;
  void Keep(const Pulled& awaited);
  bool has_kept() const { return kept_.is_there; }
  // Lately one came at a time: so it may be awaited.
  bool one_by_one() const { return one_by_one_; }
  // Whoever is in Await gets an empty datagram, of which one is enough, unless another call took
  // it.
  void EndAwait();

  void Feed(Endpoint& endpoint, Nanos now);
  // Sends what may leave.
  void Flush(Endpoint& endpoint, const Fence& fence, Nanos now);

  int fd() const { return fd_; }
  const Address& own_address() const { return own_; }
  const WireCounters& counters() const { return counters_; }

 private:
  static constexpr std::size_t kReceiveBuffers = 16;
  // So many datagrams in a row, each there when it was asked for or awaited, may be many at once:
  // twice as many each time that they were not.
  static constexpr int kManyInARow = 3, kMostInARow = 48;
  static constexpr std::size_t kRuns = 16;

  // Datagrams of one size (the last may be shorter) to one address, one behind the other.
  struct Run {
    Address to;
    MutableBytes bytes;
    std::size_t step = 0;
    std::size_t count = 0;
    bool closed = false;
    std::uint32_t node = kNil;
    bool is_probe = false;
    bool refused = false;  // the interface carries nothing as long

    Bytes Datagram(std::size_t at) const {
      return bytes.subspan(at, std::min(step, bytes.size() - at));
    }
  };

  std::error_code Prepare();
  MutableBytes ReceiveBuffer(std::size_t at) const;
  Pulled ReceiveOne(std::size_t buffer, int flags) const;
  void NoteOne();
  std::size_t PullOne();
  std::size_t PullMany();
  void FeedNear(Endpoint& endpoint, Nanos now);
  bool Collect(Endpoint& endpoint, std::span<Run> runs, std::size_t& count, Nanos now);
  void Trace(std::span<const Run> runs);
  std::size_t SendNear(const Endpoint& endpoint, std::span<Run> runs);
  void Send(std::span<Run> runs);
  bool SendOne(const Run& run);
  void SendSingly(Run& run);

  int fd_ = -1;
  int family_ = 0;
  Address own_;
  WireCounters counters_;
  NearLinks* near_ = nullptr;
  std::span<const NearLinks::Taken> near_pulled_;
  bool socket_is_empty_ = false;
  int near_in_a_row_ = 0;  // looks without one at the socket
  int near_lately_ = 0;    // looks until nothing is expected there any more
  TraceRing* trace_ = nullptr;
  Side driver_ = Side::kNone;
  MutableBytes mapping_;          // receive buffers, then send buffer
  MutableBytes receive_buffers_;  // and one for Await
  MutableBytes send_buffer_;
  std::array<Run, kRuns> runs_;  // of one turn; setting them up costs as much as a short message
  std::array<Pulled, kReceiveBuffers> datagrams_;
  Pulled kept_;
  bool ends_await_ = false;  // its datagram is under way, or in the socket
  std::size_t pulled_ = 0;
  bool one_by_one_ = false;  // lately one datagram came at a time
  int in_a_row_ = 0, many_in_a_row_ = kManyInARow;
};

}  // namespace sekisho::pm
