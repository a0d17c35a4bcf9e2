// SPDX-License-Identifier: Apache-2.0
// The packet format: docs/protocol/9-pm.md.  Pure; nothing here allocates or trusts a length.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/pm/gang.h"
#include "transport/pm/siphash.h"

namespace sekisho::pm {

using MutableBytes = std::span<std::uint8_t>;

inline constexpr int kVersion = 1;
inline constexpr std::size_t kHeaderSize = 18;
inline constexpr std::size_t kTagSize = 8;
inline constexpr std::size_t kCipherTagSize = 16;
inline constexpr std::size_t kDatagramMax = 65507;
inline constexpr std::size_t kGreetingControlSize = 64;
inline constexpr std::uint64_t kNumberMax = (1ull << 62) - 1;
inline constexpr std::size_t kAckRangesMax = 32;
inline constexpr std::size_t kFramesMax = 64;
inline constexpr std::size_t kDataFramesMax = 16;

enum class Kind : std::uint8_t {
  kHello = 1,
  kChallenge = 2,
  kAnswer = 3,
  kWelcome = 4,
  kData = 5,
  kClassicData = 6,
  kClassicAck = 7,
  kClassicNack = 8,
};

inline constexpr std::uint8_t kFlagPayloadTag = 1;
inline constexpr std::uint8_t kFlagEncrypted = 2;
inline constexpr std::uint8_t kFlagNoHurry = 4;     // to acknowledge it
inline constexpr std::uint8_t kFlagAfterProbe = 8;  // the number before is one of path MTU

struct Header {
  Kind kind = Kind::kData;
  std::uint8_t flags = 0;
  std::uint16_t context = 0;
  std::uint16_t source = 0;
  std::uint16_t destination = 0;
  std::uint64_t number = 0;
  std::uint16_t control_size = 0;

  bool operator==(const Header&) const = default;
};

enum class ParseError : std::uint8_t { kNone, kSize, kVersion, kKind, kFlags, kControl };

// A received packet, cut but not yet believed.
struct Packet {
  Header header;
  Bytes head;  // header and control part: what the tag always covers
  Bytes control;
  Bytes payload;
  Bytes tag;
};

ParseError ParsePacket(Bytes datagram, Packet& packet);

// Writes the 18 bytes of the header.
void WriteHeader(const Header& header, std::span<std::uint8_t, kHeaderSize> out);

// The control part of the four greetings; fields that a kind has not are zero and not written.
struct Greeting {
  std::uint64_t incarnation = 0;  // of the packet's source
  std::uint64_t nonce = 0;        // of the initiator
  std::uint64_t cookie = 0;
  std::uint64_t other_incarnation = 0;  // of the packet's destination (ANSWER)
  std::uint32_t credit = 0;
  std::uint8_t channels = 0;

  bool operator==(const Greeting&) const = default;
};

void WriteGreeting(Kind kind, const Greeting& greeting,
                   std::span<std::uint8_t, kGreetingControlSize> out);
bool ParseGreeting(Kind kind, Bytes control, Greeting& greeting);

enum class FrameKind : std::uint8_t {
  kAck = 1,
  kCredit = 2,
  kData = 3,
  kGrant = 4,
  kWant = 5,
  kPing = 6,
  kPad = 7,
  kClose = 8,
  kFloor = 9,
  kGang = 10,
};

// Both ends included; ranges of an ACK descend and do not touch.
struct NumberRange {
  std::uint64_t low, high;  // not set by themselves: every frame has room for 32

  bool operator==(const NumberRange&) const = default;
};

struct Frame {
  FrameKind kind = FrameKind::kPing;
  std::uint64_t channel = 0;  // CREDIT, DATA
  std::uint64_t value = 0;   // CREDIT bytes, DATA offset, GRANT, WANT, CLOSE reason, FLOOR distance
  std::uint64_t length = 0;  // DATA, PAD: bytes; CREDIT: message limit
  std::uint64_t delay_us = 0;  // ACK
  std::uint64_t ce_count = 0;  // ACK
  std::uint32_t range_count = 0;
  std::array<NumberRange, kAckRangesMax> ranges;
  GangNote gang;
  Bytes payload;  // DATA
};

// Cuts a control part into frames and the payload into their slices.
class FrameReader {
 public:
  FrameReader(Bytes control, Bytes payload)
      : at_(control.data()), end_(control.data() + control.size()), payload_(payload) {}

  // False at the end and on an error.
  bool Next(Frame& frame);

  // After Next said false: everything was read, and the payload was covered exactly.
  bool ok() const { return !broken_ && at_ == end_ && payload_.empty(); }

 private:
  // Most numbers are short.
  bool Varint(std::uint64_t& value) {
    if (at_ == end_) return false;
    if (*at_ >= 1u << 6) return LongVarint(value);
    value = *at_++;
    return true;
  }
  bool LongVarint(std::uint64_t& value);
  bool Ack(Frame& frame);
  bool Data(Frame& frame);
  bool Parse(Frame& frame);

  const std::uint8_t* at_;  // in the control part
  const std::uint8_t* end_;
  Bytes payload_;
  std::size_t frames_ = 0;
  std::size_t data_frames_ = 0;
  bool padded_ = false;
  bool broken_ = false;
};

// Appends frames to a control part.  Each returns false, and writes nothing, where room is missing.
// No more than a reader takes: what does not fit any more is not written, and the answer is false.
class FrameWriter {
 public:
  explicit FrameWriter(MutableBytes room) : buffer_(room), room_(room) {}

  // Frames may take `bytes` in all, if the buffer has them.
  void SetRoom(std::size_t bytes) {
    room_ = buffer_.first(bytes < size_ ? size_ : bytes < buffer_.size() ? bytes : buffer_.size());
  }

  bool Ack(std::span<const NumberRange> ranges, std::uint64_t delay_us, std::uint64_t ce_count);
  bool Credit(std::uint64_t channel, std::uint64_t bytes, std::uint64_t messages);
  bool Data(std::uint64_t channel, std::uint64_t offset, std::uint64_t length);
  bool One(FrameKind kind, std::uint64_t value);  // GRANT, WANT, PAD, CLOSE, FLOOR
  bool Ping();
  bool Gang(const GangNote& note);
  // Always three bytes, below 2^14: full packets are all of one length, and so can leave together.
  // Once, for which there is always a place.
  bool Floor(std::uint64_t distance);

  std::size_t size() const { return size_; }

 private:
  bool Values(FrameKind kind, std::span<const std::uint64_t> values);

  MutableBytes buffer_;
  MutableBytes room_;
  std::size_t size_ = 0;
  std::size_t frames_ = 0;  // without FLOOR
};

// Bytes that a variable-length integer takes.
inline constexpr std::size_t kVarintMax = 8;
constexpr std::size_t VarintSize(std::uint64_t value) {
  return value < 1u << 6 ? 1 : value < 1u << 14 ? 2 : value < 1u << 30 ? 4 : kVarintMax;
}

}  // namespace sekisho::pm
