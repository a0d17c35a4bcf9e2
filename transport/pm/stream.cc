// SPDX-License-Identifier: Apache-2.0
// Rings of bytes in which messages follow each other.
#include "transport/pm/stream.h"

#include <algorithm>
#include <cstring>

namespace sekisho::pm {
namespace {

struct Head {
  std::uint32_t length = 0;
  std::uint32_t kind = 0;

  bool ok() const {
    return length <= kMessageMax && kind <= static_cast<std::uint32_t>(MessageKind::kRemote);
  }
};

Head ReadHead(MutableBytes ring, std::uint64_t place) {
  // Places of heads and sizes of rings are multiples of 8: a head never wraps.
  const std::uint8_t* at = RingRead(ring, place & ~7ull, kMessageHeadSize).first.data();
  Head head;
  for (int i = 0; i < 4; ++i) {
    head.length |= static_cast<std::uint32_t>(at[i]) << 8 * i;
    head.kind |= static_cast<std::uint32_t>(at[4 + i]) << 8 * i;
  }
  return head;
}

void WriteHead(MutableBytes ring, std::uint64_t place, Head head) {
  std::array<std::uint8_t, kMessageHeadSize> bytes;
  for (int i = 0; i < 4; ++i) {
    bytes[i] = static_cast<std::uint8_t>(head.length >> 8 * i);
    bytes[4 + i] = static_cast<std::uint8_t>(head.kind >> 8 * i);
  }
  RingWrite(ring, place, bytes);
}

}  // namespace

Pieces RingRead(MutableBytes ring, std::uint64_t place, std::size_t length) {
  if (length > ring.size()) Spoiled();
  const std::size_t at = place & (ring.size() - 1);
  const std::size_t first = std::min(length, ring.size() - at);
  return {ring.subspan(at, first), ring.first(length - first)};
}

void RingWrite(MutableBytes ring, std::uint64_t place, Bytes data) {
  if (data.empty()) return;
  if (data.size() > ring.size()) Spoiled();
  const std::size_t at = place & (ring.size() - 1);
  const std::size_t first = std::min(data.size(), ring.size() - at);
  std::memcpy(ring.data() + at, data.data(), first);
  if (first < data.size()) std::memcpy(ring.data(), data.data() + first, data.size() - first);
}

void RingClear(MutableBytes ring, std::uint64_t place, std::size_t length) {
  for (std::size_t i = 0; i < length; ++i) ring[(place + i) & (ring.size() - 1)] = 0;
}

bool SendStream::Begin(MutableBytes ring, std::uint32_t length, std::uint64_t room_for) {
  if (messages >= message_limit || room(ring.size()) < kMessageHeadSize + room_for) return false;
  Rewind();
  WriteHead(ring, Place(written), {length, 0});
  written += kMessageHeadSize;
  part_left = length;
  ++messages;
  return true;
}

void SendStream::Put(MutableBytes ring, MessageKind kind, Bytes begin, Bytes end) {
  Rewind();
  const std::uint64_t at = Once(written), place = Place(at);
  const std::uint64_t size = begin.size() + end.size(), total = kMessageHeadSize + size;
  WriteHead(ring, place, {static_cast<std::uint32_t>(size), static_cast<std::uint32_t>(kind)});
  RingWrite(ring, place + kMessageHeadSize, begin);
  RingWrite(ring, place + kMessageHeadSize + begin.size(), end);
  RingClear(ring, place + total, Padded(total) - total);
  ++messages;
  Publish();
  written = at + Padded(total);
}

std::uint32_t SendStream::Append(MutableBytes ring, Bytes data) {
  const std::uint64_t room_left = room(ring.size());
  std::uint64_t take = std::min<std::uint64_t>({data.size(), part_left, room_left});
  const std::uint64_t padding = Padded(written + take) - (written + take);
  if (take == part_left && room_left < take + padding) {
    // No room for the padding of the end: keep the last bytes back.
    take = take > 8 ? take - 8 : 0;
    if (take == 0) return 0;
  }
  RingWrite(ring, Place(written), data.first(take));
  written += take;
  part_left -= static_cast<std::uint32_t>(take);
  if (part_left == 0) {
    const std::uint64_t end = Padded(written);
    RingClear(ring, Place(written), end - written);
    written = end;
  }
  return static_cast<std::uint32_t>(take);
}

bool ReceiveStream::AddInterval(Pool<Interval>& intervals, std::uint64_t low, std::uint64_t high,
                                std::uint64_t& fresh) {
  std::uint32_t* link = &interval;
  while (*link != kNil && intervals[*link].high < low) link = &intervals[*link].next;
  // `link` leads to the first run that touches or follows [low, high).
  if (*link == kNil || intervals[*link].low > high) {
    const std::uint32_t made = intervals.Get();
    if (made == kNil) return false;
    intervals[made] = {low, high, *link};
    Publish();
    *link = made;
    fresh += high - low;
    return true;
  }
  Interval& into = intervals[*link];
  std::uint64_t had = into.high - into.low;
  into.low = std::min(into.low, low);
  into.high = std::max(into.high, high);
  while (into.next != kNil && intervals[into.next].low <= into.high) {
    const std::uint32_t swallowed = into.next;
    had += intervals[swallowed].high - intervals[swallowed].low;
    into.high = std::max(into.high, intervals[swallowed].high);
    into.next = intervals[swallowed].next;
    intervals.Put(swallowed);
  }
  fresh += into.high - into.low - had;
  return true;
}

Stored ReceiveStream::Store(MutableBytes ring, Pool<Interval>& intervals, std::uint64_t offset,
                            Bytes data, std::uint64_t& fresh) {
  const std::uint64_t high = offset + data.size();
  const std::uint64_t end = Once(contiguous);
  fresh = 0;
  if (high <= end) return Stored::kYes;
  if (offset < end) {
    data = data.subspan(end - offset);
    offset = end;
  }
  Rewind();
  if (offset > end) {
    // Bytes first: a run that is known is in the ring, also if we are killed here.
    RingWrite(ring, Place(offset), data);
    return AddInterval(intervals, offset, high, fresh) ? Stored::kYes : Stored::kNoInterval;
  }
  RingWrite(ring, Place(offset), data);
  Publish();
  fresh = high - contiguous;
  contiguous = high;
  while (interval != kNil && intervals[interval].low <= contiguous) {
    const std::uint32_t joined = interval;
    const Interval& run = intervals[joined];
    fresh -= std::min(contiguous, run.high) - run.low;
    contiguous = std::max(contiguous, run.high);
    interval = run.next;
    intervals.Put(joined);
  }
  return Stored::kYes;
}

void ReceiveStream::FreeIntervals(Pool<Interval>& intervals) {
  while (interval != kNil) {
    const std::uint32_t next = intervals[interval].next;
    intervals.Put(interval);
    interval = next;
  }
}

ReceiveStream::Look ReceiveStream::Peek(MutableBytes ring) const {
  const std::uint64_t available = contiguous - opened;
  if (in_pieces) {
    if (is_open()) return Look::kNothing;
    const std::uint64_t rest = Padded(piece_left);
    if (available >= rest) return Look::kPiece;
    return available >= ring.size() / 4 ? Look::kPiece : Look::kNothing;
  }
  if (available < kMessageHeadSize) return Look::kNothing;
  const Head head = ReadHead(ring, Place(opened));
  if (!head.ok()) return Look::kBroken;
  const std::uint64_t total = kMessageHeadSize + Padded(head.length);
  if (total <= ring.size()) return available >= total ? Look::kMessage : Look::kNothing;
  return available >= ring.size() / 4 && !is_open() ? Look::kPiece : Look::kNothing;
}

bool ReceiveStream::Starved(MutableBytes ring) const {
  if (in_pieces || contiguous - opened < kMessageHeadSize || byte_limit >= consumed + ring.size()) {
    return false;
  }
  const std::uint64_t total = kMessageHeadSize + Padded(ReadHead(ring, Place(opened)).length);
  return total <= ring.size() && opened + total > byte_limit;
}

Pieces ReceiveStream::Open(MutableBytes ring, MessageKind& kind, bool& more) {
  kind = MessageKind::kProgram;
  if (!in_pieces) {
    const std::uint64_t begin = Once(opened);
    const Head head = ReadHead(ring, Place(begin));
    kind = static_cast<MessageKind>(head.kind);
    const std::uint64_t total = kMessageHeadSize + Padded(head.length);
    if (total <= ring.size()) {
      more = false;
      opened = begin + total;
      return RingRead(ring, Place(begin) + kMessageHeadSize, head.length);
    }
    in_pieces = true;
    piece_left = head.length;
    consumed += kMessageHeadSize;
  }
  const std::uint64_t begin = consumed;
  const std::uint64_t available = contiguous - begin;
  if (available >= Padded(piece_left)) {
    more = false;
    opened = begin + Padded(piece_left);
    return RingRead(ring, Place(begin), piece_left);
  }
  more = true;
  const auto length =
      static_cast<std::uint32_t>(std::min<std::uint64_t>(available, piece_left) & ~7ull);
  opened = begin + length;
  return RingRead(ring, Place(begin), length);
}

void ReceiveStream::Release(MutableBytes ring, std::uint64_t end) {
  const std::uint64_t held = std::min(opened, end) - consumed;
  if (!in_pieces) {
    const std::uint64_t total = kMessageHeadSize + Padded(ReadHead(ring, Place(consumed)).length);
    consumed += std::min(total, held);
    Publish();
    ++messages;
    return;
  }
  consumed = opened;
  if (held >= piece_left) {
    in_pieces = false;
    piece_left = 0;
    ++messages;
  } else {
    piece_left -= static_cast<std::uint32_t>(held);
  }
}

}  // namespace sekisho::pm
