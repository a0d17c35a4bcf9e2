// SPDX-License-Identifier: Apache-2.0
// The rings between a context and others of its job on this host.
#include "transport/pm/near_links.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include <algorithm>
#include <cstring>
#include <new>

namespace sekisho::pm {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::error_code LastError() { return {errno, std::generic_category()}; }

}  // namespace

int NearMemory::Make() {
  const int fd = memfd_create("pm-near", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (fd < 0) return -1;
  if (ftruncate(fd, sizeof(NearMemory)) == 0 && fcntl(fd, F_ADD_SEALS, kSeals) == 0) return fd;
  const int error = errno;
  close(fd);
  errno = error;
  return -1;
}

bool NearLinks::IsJoined(NodeId node) const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (links_[i]->node == node) return links_[i]->other.joined.load() != 0;
  }
  return false;
}

std::error_code NearLinks::Join(NodeId own, NodeId node, const Address& address,
                                std::uint32_t session, int fd) {
  for (std::size_t i = 0; i < count_; ++i) {
    if (links_[i]->node == node) Drop(i--);
  }
  if (count_ == kMost) return Error::kNoMemory;
  if (!room_) room_.reset(new (std::nothrow) std::uint8_t[kAtOnce * NearSlot::kBytes]);
  struct stat status;
  const int seals = fcntl(fd, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0 || fstat(fd, &status) != 0 ||
      status.st_size != sizeof(NearMemory)) {
    return Error::kBadConfig;
  }
  void* memory =
      mmap(nullptr, sizeof(NearMemory), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
  if (memory == MAP_FAILED) return LastError();
  std::unique_ptr<Link> link(new (std::nothrow)
                                 Link(*static_cast<NearMemory*>(memory), own > node));
  if (!link || !room_) {
    munmap(memory, sizeof(NearMemory));
    return Error::kNoMemory;
  }
  link->node = node;
  link->address = address;
  ip_ = address.ip;
  link->session = session;
  link->own.lease.store(lease_);
  link->own.joined.store(1);
  links_[count_++] = std::move(link);
  return {};
}

void NearLinks::Drop(std::size_t index) {
  Link& link = *links_[index];
  if (getpid() == process_) {
    link.own.lease.store(0);
    link.own.left.store(1);
  }
  munmap(&link.memory, sizeof(NearMemory));
  links_[index] = std::move(links_[--count_]);
  links_[count_].reset();
}

bool NearLinks::HasRoom() {
  for (std::size_t i = count_; count_ == kMost && i-- > 0;) {
    if (links_[i]->other.joined.load() == 0) Drop(i);
  }
  return count_ < kMost;
}

void NearLinks::GiveUp() {
  while (count_ > 0) Drop(count_ - 1);
}

void NearLinks::DropStale(const Endpoint& endpoint) {
  for (std::size_t i = count_; i-- > 0;) {
    const Link& link = *links_[i];
    const Peer& peer = endpoint.peer(link.node);
    const bool left = link.other.left.load(std::memory_order_relaxed) != 0;
    if (left || peer.session != link.session || !(peer.address == link.address)) Drop(i);
  }
}

void NearLinks::Renew(Nanos now) {
  lease_ = now + kLease;
  for (std::size_t i = 0; i < count_; ++i) {
    links_[i]->own.lease.store(lease_, std::memory_order_relaxed);
  }
}

void NearLinks::Rest() {
  polled_ = 0;
  if (lease_ == 0) return;
  lease_ = 0;
  for (std::size_t i = 0; i < count_; ++i) {
    links_[i]->own.lease.store(0);
  }
}

bool NearLinks::HasAny() const {
  for (std::size_t i = 0; i < count_; ++i) {
    if (links_[i]->reader.HasAny()) return true;
  }
  return false;
}

std::span<const NearLinks::Taken> NearLinks::Pull() {
  std::size_t count = 0;
  const std::size_t first = turn_;
  for (std::size_t i = 0; i < count_ && count < kAtOnce; ++i) {
    const std::size_t index = (first + i) % count_;
    Link& link = *links_[index];
    const auto copy = [&](const NearSlot& slot) {
      // What is copied is what is checked; a wrong size spoils this datagram alone.
      const std::size_t size = std::min<std::size_t>(Once(slot.size), NearSlot::kBytes);
      std::uint8_t* const to = room_.get() + count * NearSlot::kBytes;
      std::memcpy(to, slot.bytes.data(), size);
      taken_[count] = {link.address, {to, size}};
    };
    while (count < kAtOnce && link.reader.Read(copy)) ++count;
    if (count == kAtOnce) turn_ = index + 1;  // the others first next time
  }
  received_ += count;
  return std::span(taken_).first(count);
}

NearLinks::Link* NearLinks::Find(const Address& address) {
  if (address.ip != ip_) return nullptr;
  for (std::size_t i = 0; i < count_; ++i) {
    const std::size_t index = (last_ + i) % count_;
    if (links_[index]->address.port != address.port) continue;
    last_ = index;
    return links_[index].get();
  }
  return nullptr;
}

std::size_t NearLinks::Send(const Endpoint& endpoint, const Address& to, Bytes bytes,
                            std::size_t step, Nanos now) {
  if (step > NearSlot::kBytes) return 0;
  Link* const link = Find(to);
  if (link == nullptr || !link->writer.MayWrite(now)) return 0;
  const Peer& peer = endpoint.peer(link->node);
  // Silence: it may be dead or stopped, and its keeper hears what comes by UDP.
  const bool is_silent = peer.has_session && endpoint.session(link->node).timeouts > 0;
  if (is_silent || peer.session != link->session) return 0;
  // Who finds longer ones by UDP sends all by UDP: what overtakes another looks like a loss.
  if (peer.has_session && endpoint.session(link->node).mtu > NearSlot::kBytes) return 0;
  std::size_t count = 0;
  for (std::size_t done = 0; done < bytes.size(); done += step) {
    const Bytes datagram = bytes.subspan(done, std::min(step, bytes.size() - done));
    const bool written = link->writer.Write([&](NearSlot& slot) {
      std::memcpy(slot.bytes.data(), datagram.data(), datagram.size());
      slot.size = datagram.size();
    });
    if (!written) break;
    ++count;
  }
  count -= link->writer.Settle(now);
  sent_ += count;
  return std::min(bytes.size(), count * step);
}

}  // namespace sekisho::pm
