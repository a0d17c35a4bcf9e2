// SPDX-License-Identifier: Apache-2.0
// The rings between a context and others of its job on this host: docs/protocol/9-pm.md, "Inside a
// host".  What is read is a stranger's until the endpoint has seen its tag.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <memory>
#include <system_error>

#include "transport/pm/endpoint.h"
#include "transport/pm/near_ring.h"

namespace sekisho::pm {

struct NearSlot {
  static constexpr std::size_t kBytes = 9200;  // longer datagrams go by UDP

  std::atomic<std::uint64_t> state;
  std::uint64_t size;
  std::array<std::uint8_t, kBytes> bytes;
};
static_assert(sizeof(NearSlot) == 9216);

struct NearParts {
  using Slot = NearSlot;
  using Lease = std::atomic<std::int64_t>;
  static constexpr std::size_t kSlots = 64;
  static constexpr std::int64_t kLeaseMost = 10 * kMillisecond;
};

// To one of the two.  All zeros is an empty one.
struct NearDirection {
  alignas(64) std::atomic<std::int64_t> lease;  // its program polls until then
  alignas(64) std::atomic<std::uint32_t> joined, left;
  alignas(4096) std::array<NearSlot, NearParts::kSlots> slots;
};

struct NearMemory {
  std::array<NearDirection, 2> to;  // the smaller node, the larger

  // A sealed descriptor of one, or -1 with errno.
  static int Make();
};

class NearLinks {
 public:
  static constexpr std::size_t kMost = 64;
  static constexpr std::size_t kAtOnce = 32;

  struct Taken {
    Address from;
    MutableBytes bytes;
  };

  NearLinks() : process_(getpid()) {}
  ~NearLinks() { GiveUp(); }
  NearLinks(const NearLinks&) = delete;
  NearLinks& operator=(const NearLinks&) = delete;

  bool empty() const { return count_ == 0; }
  // Whether there may be one more.  Those whose other side never came make room.
  bool HasRoom();
  // Whether there is a link with this node that both sides have.
  bool IsJoined(NodeId node) const;
  // In the place of an older one with the same node, if there is one.  `fd` stays the caller's.
  std::error_code Join(NodeId own, NodeId node, const Address& address, std::uint32_t session,
                       int fd);
  // Those that the other side has left, or that were for another session.
  void DropStale(const Endpoint& endpoint);
  void GiveUp();

  // We look again soon, if calls go on as they do.
  // `in_order`: nothing waits elsewhere that was sent before what would come in now.
  void Poll(Nanos now, bool in_order) {
    if (count_ == 0) return;
    if (now - polled_ < kStretch && lease_ - now < kLease / 2 && (in_order || lease_ > now)) {
      Renew(now);
    }
    polled_ = now;
  }
  // We do not, once HasAny has said no after this.
  void Rest();
  bool HasAny() const;
  // Copies out what is there, at most kAtOnce; valid until the next call.
  std::span<const Taken> Pull();

  // Sends of the datagrams in `bytes`, each `step` long (the last may be shorter), as many as go
  // this way, from the first on; how many bytes that are.
  std::size_t Send(const Endpoint& endpoint, const Address& to, Bytes bytes, std::size_t step,
                   Nanos now);

  std::uint64_t sent() const { return sent_; }
  std::uint64_t received() const { return received_; }

 private:
  static constexpr Nanos kLease = 150 * kMicrosecond;  // a keeper leaves it alone much longer
  static constexpr Nanos kStretch = 150 * kMicrosecond;

  struct Link {
    Link(NearMemory& memory, bool is_larger)
        : memory(memory),
          own(memory.to[is_larger ? 1 : 0]),
          other(memory.to[is_larger ? 0 : 1]),
          reader(own.slots.data()),
          writer(other.slots.data(), other.lease) {}

    NearMemory& memory;
    NearDirection& own;
    NearDirection& other;
    NearReader<NearParts> reader;
    NearWriter<NearParts> writer;
    NodeId node = 0;
    Address address;
    std::uint32_t session = 0;
  };

  void Renew(Nanos now);
  void Drop(std::size_t index);
  Link* Find(const Address& address);

  const pid_t process_;  // a child of fork must not speak for us
  std::array<std::unique_ptr<Link>, kMost> links_;
  std::size_t count_ = 0;
  std::array<std::uint8_t, 16> ip_{};  // of them all: the host's
  std::size_t turn_ = 0;               // whose ring is read first
  std::size_t last_ = 0;               // to whom was sent
  Nanos lease_ = 0, polled_ = 0;
  std::uint64_t sent_ = 0, received_ = 0;
  std::array<Taken, kAtOnce> taken_;
  std::unique_ptr<std::uint8_t[]> room_;
};

}  // namespace sekisho::pm
