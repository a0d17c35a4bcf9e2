// SPDX-License-Identifier: Apache-2.0
// The packet format: docs/protocol/9-pm.md.
#include "transport/pm/packet.h"

#include <algorithm>

#include "transport/pm/little_endian.h"

namespace sekisho::pm {
namespace {

template <typename Integer>
void Put(std::uint8_t* out, Integer value) {
  for (std::size_t i = 0; i < sizeof value; ++i) out[i] = static_cast<std::uint8_t>(value >> 8 * i);
}

template <typename Integer>
Integer Get(const std::uint8_t* in) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    value = static_cast<Integer>(value | static_cast<Integer>(in[i]) << 8 * i);
  }
  return value;
}

// The most significant byte comes first; its two highest bits say how many there are.
template <std::size_t kSize>
std::uint8_t* PutLong(std::uint8_t* out, std::uint64_t value) {
  value |= std::uint64_t{kSize == 2 ? 1 : kSize == 4 ? 2 : 3} << (8 * kSize - 2);
  for (std::size_t i = 0; i < kSize; ++i) {
    out[i] = static_cast<std::uint8_t>(value >> 8 * (kSize - 1 - i));
  }
  return out + kSize;
}

std::uint8_t* PutVarint(std::uint8_t* out, std::uint64_t value) {
  switch (VarintSize(value)) {
    case 1:
      *out = static_cast<std::uint8_t>(value);
      return out + 1;
    case 2:
      return PutLong<2>(out, value);
    case 4:
      return PutLong<4>(out, value);
    default:
      return PutLong<8>(out, value);
  }
}

// The fields of each greeting, in the order of the page; one walk serves both directions.
template <typename Greeting, typename Field>
std::size_t WalkGreeting(Kind kind, Greeting& greeting, Field field) {
  std::size_t at = 0;
  const auto next = [&](auto& member) {
    field(at, member);
    at += sizeof member;
  };
  if (kind == Kind::kHello || kind == Kind::kAnswer) next(greeting.incarnation);
  next(greeting.nonce);
  if (kind == Kind::kChallenge || kind == Kind::kAnswer) next(greeting.cookie);
  if (kind == Kind::kChallenge || kind == Kind::kWelcome) next(greeting.incarnation);
  if (kind == Kind::kAnswer) next(greeting.other_incarnation);
  if (kind == Kind::kChallenge || kind == Kind::kAnswer) {
    next(greeting.credit);
    next(greeting.channels);
  }
  return at;
}

}  // namespace

ParseError ParsePacket(Bytes datagram, Packet& packet) {
  if (datagram.size() < kHeaderSize + kTagSize || datagram.size() > kDatagramMax) {
    return ParseError::kSize;
  }
  const std::uint8_t* in = datagram.data();
  if (in[0] >> 4 != kVersion) return ParseError::kVersion;
  const int kind = in[0] & 15;
  if (kind < 1 || kind > 8) return ParseError::kKind;
  Header& header = packet.header;
  header.kind = static_cast<Kind>(kind);
  header.flags = in[1];
  const int known = header.kind == Kind::kData
                        ? kFlagPayloadTag | kFlagEncrypted | kFlagNoHurry | kFlagAfterProbe
                        : kFlagPayloadTag;
  if ((header.flags & ~known) != 0) return ParseError::kFlags;
  header.context = Get<std::uint16_t>(in + 2);
  header.source = Get<std::uint16_t>(in + 4);
  header.destination = Get<std::uint16_t>(in + 6);
  header.number = Get<std::uint64_t>(in + 8);
  header.control_size = Get<std::uint16_t>(in + 16);
  if (header.number > kNumberMax) return ParseError::kControl;

  const std::size_t tag = (header.flags & kFlagEncrypted) != 0 ? kCipherTagSize : kTagSize;
  if (datagram.size() < kHeaderSize + header.control_size + tag) return ParseError::kControl;
  const std::size_t payload = datagram.size() - kHeaderSize - header.control_size - tag;
  packet.head = datagram.first(kHeaderSize + header.control_size);
  packet.control = packet.head.subspan(kHeaderSize);
  packet.payload = datagram.subspan(packet.head.size(), payload);
  packet.tag = datagram.last(tag);
  return ParseError::kNone;
}

// Eight bytes at a time, as the tag reads them a moment later.
void WriteHeader(const Header& header, std::span<std::uint8_t, kHeaderSize> out) {
  const auto first = static_cast<std::uint64_t>(kVersion << 4 | static_cast<int>(header.kind));
  Store(out.data(), first | std::uint64_t{header.flags} << 8 | std::uint64_t{header.context} << 16 |
                        std::uint64_t{header.source} << 32 |
                        std::uint64_t{header.destination} << 48);
  Store(out.data() + 8, header.number);
  Put(out.data() + 16, header.control_size);
}

void WriteGreeting(Kind kind, const Greeting& greeting,
                   std::span<std::uint8_t, kGreetingControlSize> out) {
  std::fill(out.begin(), out.end(), std::uint8_t{0});
  WalkGreeting(kind, greeting,
               [&](std::size_t at, const auto& member) { Put(out.data() + at, member); });
}

bool ParseGreeting(Kind kind, Bytes control, Greeting& greeting) {
  if (control.size() != kGreetingControlSize) return false;
  greeting = Greeting{};
  const std::size_t end = WalkGreeting(kind, greeting, [&](std::size_t at, auto& member) {
    member = Get<std::remove_reference_t<decltype(member)>>(control.data() + at);
  });
  return std::all_of(control.begin() + static_cast<std::ptrdiff_t>(end), control.end(),
                     [](std::uint8_t byte) { return byte == 0; });
}

bool FrameReader::LongVarint(std::uint64_t& value) {
  const std::ptrdiff_t size = std::ptrdiff_t{1} << (*at_ >> 6), left = end_ - at_;
  if (left < size) return false;
  if (left >= 8) {
    const std::uint64_t all = __builtin_bswap64(Load(at_)) & kNumberMax;
    value = all >> (64 - 8 * size);
  } else {
    value = *at_ & 0x3f;
    for (std::ptrdiff_t i = 1; i < size; ++i) value = value << 8 | at_[i];
  }
  at_ += size;
  return true;
}

bool FrameReader::Ack(Frame& frame) {
  std::uint64_t largest, count, length;
  if (!Varint(largest) || !Varint(frame.delay_us) || !Varint(frame.ce_count) || !Varint(count) ||
      !Varint(length) || count < 1 || count > kAckRangesMax || length > largest) {
    return false;
  }
  frame.ranges[0] = {largest - length, largest};
  for (std::uint64_t i = 1; i < count; ++i) {
    std::uint64_t gap;
    const std::uint64_t below = frame.ranges[i - 1].low;
    if (!Varint(gap) || !Varint(length) || below < 2 || gap > below - 2) return false;
    const std::uint64_t high = below - 2 - gap;
    if (length > high) return false;
    frame.ranges[i] = {high - length, high};
  }
  frame.range_count = static_cast<std::uint32_t>(count);
  return true;
}

bool FrameReader::Data(Frame& frame) {
  if (padded_ || ++data_frames_ > kDataFramesMax) return false;
  if (!Varint(frame.channel) || !Varint(frame.value) || !Varint(frame.length)) return false;
  if (frame.channel > 255 || frame.length < 1 || frame.length > payload_.size() ||
      frame.value > kNumberMax - frame.length) {
    return false;
  }
  frame.payload = payload_.first(frame.length);
  payload_ = payload_.subspan(frame.length);
  return true;
}

bool FrameReader::Parse(Frame& frame) {
  switch (frame.kind) {
    case FrameKind::kAck:
      return Ack(frame);
    case FrameKind::kData:
      return Data(frame);
    case FrameKind::kCredit:
      return Varint(frame.channel) && Varint(frame.value) && Varint(frame.length) &&
             frame.channel <= 255;
    case FrameKind::kPad:
      if (!Varint(frame.length) || frame.length > payload_.size()) return false;
      padded_ = true;
      payload_ = payload_.subspan(frame.length);
      return true;
    case FrameKind::kGrant:
    case FrameKind::kWant:
    case FrameKind::kClose:
    case FrameKind::kFloor:
      return Varint(frame.value);
    case FrameKind::kGang: {
      GangNote& gang = frame.gang;
      std::uint64_t idle = 0, gone = 0, leader = 0;
      if (!Varint(gang.wave) || !Varint(gang.asked) || !Varint(gang.joined) ||
          !Varint(gang.reported) || !Varint(idle) || !Varint(gone) || !Varint(leader)) {
        return false;
      }
      gang.idle = static_cast<std::uint32_t>(idle);
      gang.gone = static_cast<std::uint32_t>(gone);
      gang.leader = static_cast<std::uint32_t>(leader);
      return idle <= UINT32_MAX && gone <= UINT32_MAX && leader <= UINT16_MAX;
    }
    case FrameKind::kPing:
      return true;
  }
  return false;
}

bool FrameReader::Next(Frame& frame) {
  if (broken_ || at_ == end_) return false;
  frame.kind = static_cast<FrameKind>(*at_++);
  if (++frames_ > kFramesMax || !Parse(frame)) broken_ = true;
  return !broken_;
}

bool FrameWriter::Values(FrameKind kind, std::span<const std::uint64_t> values) {
  if (frames_ + 1 == kFramesMax) return false;
  const std::size_t left = room_.size() - size_;
  if (left < 1 + kVarintMax * values.size()) {
    std::size_t size = 1;
    for (const std::uint64_t value : values) size += VarintSize(value);
    if (left < size) return false;
  }
  ++frames_;
  std::uint8_t* out = room_.data() + size_;
  *out++ = static_cast<std::uint8_t>(kind);
  for (const std::uint64_t value : values) out = PutVarint(out, value);
  size_ = static_cast<std::size_t>(out - room_.data());
  return true;
}

bool FrameWriter::Ack(std::span<const NumberRange> ranges, std::uint64_t delay_us,
                      std::uint64_t ce_count) {
  std::array<std::uint64_t, 5 + 2 * kAckRangesMax> values = {
      ranges[0].high, delay_us, ce_count, ranges.size(), ranges[0].high - ranges[0].low};
  std::size_t count = 5;
  for (std::size_t i = 1; i < ranges.size(); ++i) {
    values[count++] = ranges[i - 1].low - ranges[i].high - 2;
    values[count++] = ranges[i].high - ranges[i].low;
  }
  return Values(FrameKind::kAck, std::span(values).first(count));
}

bool FrameWriter::Credit(std::uint64_t channel, std::uint64_t bytes, std::uint64_t messages) {
  return Values(FrameKind::kCredit, std::array{channel, bytes, messages});
}

bool FrameWriter::Data(std::uint64_t channel, std::uint64_t offset, std::uint64_t length) {
  return Values(FrameKind::kData, std::array{channel, offset, length});
}

bool FrameWriter::One(FrameKind kind, std::uint64_t value) {
  return Values(kind, std::span(&value, 1));
}

bool FrameWriter::Floor(std::uint64_t distance) {
  if (room_.size() - size_ < 3 || distance >= 1u << 14) return false;
  room_[size_++] = static_cast<std::uint8_t>(FrameKind::kFloor);
  room_[size_++] = static_cast<std::uint8_t>(0x40 | distance >> 8);
  room_[size_++] = static_cast<std::uint8_t>(distance);
  return true;
}

bool FrameWriter::Gang(const GangNote& note) {
  return Values(FrameKind::kGang,
                std::array<std::uint64_t, 7>{note.wave, note.asked, note.joined, note.reported,
                                             note.idle, note.gone, note.leader});
}

bool FrameWriter::Ping() { return Values(FrameKind::kPing, {}); }

}  // namespace sekisho::pm
