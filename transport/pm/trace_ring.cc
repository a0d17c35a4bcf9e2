// SPDX-License-Identifier: Apache-2.0
// The latest datagrams of a context.  Each word is written with release and read with acquire: none
// of a datagram can be taken for one of another, unless its writer stood still for kSlots datagrams
// and then went on in a slot that had become another's.
#include "transport/pm/trace_ring.h"

#include <cstring>

namespace sekisho::pm {
namespace {

constexpr std::uint64_t kSentMark = std::uint64_t{1} << 32;
constexpr int kDriverShift = 34;
constexpr int kPortShift = 48;

}  // namespace

void TraceRing::Write(Nanos time, const Address& remote, bool sent, Side driver, Bytes datagram) {
  const std::uint64_t ticket = next_.fetch_add(1, std::memory_order_acq_rel);
  Slot& slot = slots_[ticket % kSlots];
  slot.ticket.store(0, std::memory_order_relaxed);
  std::size_t at = 0;
  const auto put = [&](std::uint64_t word) {
    slot.words[at++].store(word, std::memory_order_release);
  };
  put(static_cast<std::uint64_t>(time));
  put(static_cast<std::uint32_t>(datagram.size()) | (sent ? kSentMark : 0) |
      static_cast<std::uint64_t>(driver) << kDriverShift |
      static_cast<std::uint64_t>(remote.port) << kPortShift);
  const auto copy = [&](Bytes bytes) {
    for (std::size_t i = 0; i < bytes.size(); i += 8) {
      std::uint64_t word = 0;
      std::memcpy(&word, bytes.data() + i, std::min<std::size_t>(8, bytes.size() - i));
      put(word);
    }
  };
  copy(remote.ip);
  copy(datagram.first(std::min(datagram.size(), TracedDatagram::kBytes)));
  slot.ticket.store(ticket + 1, std::memory_order_release);
}

TraceRing::Found TraceRing::Read(std::uint64_t ticket, TracedDatagram& out) const {
  const Slot& slot = slots_[ticket % kSlots];
  const std::uint64_t found = slot.ticket.load(std::memory_order_acquire);
  if (found > ticket + 1) return Found::kOverwritten;
  if (found != ticket + 1) return Found::kUnfinished;
  std::size_t at = 0;
  const auto get = [&] { return slot.words[at++].load(std::memory_order_acquire); };
  out.time = static_cast<Nanos>(get());
  const std::uint64_t marks = get();
  out.size = static_cast<std::uint32_t>(marks);
  out.sent = (marks & kSentMark) != 0;
  out.driver = static_cast<Side>(marks >> kDriverShift & 3);
  out.remote.port = static_cast<std::uint16_t>(marks >> kPortShift);
  const auto copy = [&](std::uint8_t* bytes, std::size_t size) {
    for (std::size_t i = 0; i < size; i += 8) {
      const std::uint64_t word = get();
      std::memcpy(bytes + i, &word, std::min<std::size_t>(8, size - i));
    }
  };
  copy(out.remote.ip.data(), out.remote.ip.size());
  copy(out.bytes.data(), out.kept().size());
  return slot.ticket.load(std::memory_order_relaxed) == found ? Found::kWhole : Found::kOverwritten;
}

bool TraceReader::Next(TracedDatagram& datagram, Nanos now) {
  const std::uint64_t end = ring_.next();
  if (end < next_) {  // another tracer's end emptied the ring
    next_ = end > TraceRing::kSlots ? end - TraceRing::kSlots : 0;
    waited_for_ = UINT64_MAX;
  }
  if (end - next_ > TraceRing::kSlots && end > next_) {
    lost_ += end - next_ - TraceRing::kSlots;
    next_ = end - TraceRing::kSlots;
  }
  for (; next_ < end; ++next_, ++lost_) {
    switch (ring_.Read(next_, datagram)) {
      case TraceRing::Found::kWhole:
        ++next_;
        return true;
      case TraceRing::Found::kUnfinished:
        if (waited_for_ != next_) {
          waited_for_ = next_;
          since_ = now;
        }
        if (now != kNever && now - since_ < kWriting) return false;
        break;
      case TraceRing::Found::kOverwritten:
        break;
    }
  }
  return false;
}

}  // namespace sekisho::pm
