// SPDX-License-Identifier: Apache-2.0
// The packet format: docs/protocol/9-pm.md.  The hex strings are the examples of that page.
#include "transport/pm/packet.h"

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/pm/seal.h"
#include "transport/pm/tag.h"

namespace sekisho::pm {
namespace {

using NodeId = std::uint16_t;
using ::testing::ElementsAre;

constexpr char kHelloExample[] =
    "11000700000001000000000000000000400011000000000000002200000000000000000000000000"
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000466d7d03fbbbf6f";
constexpr char kChallengeExample[] =
    "12000700010000000000000000000000400022000000000000004400000000000000330000000000"
    "00000000040003000000000000000000000000000000000000000000000000000000000000000000"
    "0000a32a6f1311dbc0fa";
constexpr char kAnswerExample[] =
    "13000700000001000000000000000000400011000000000000002200000000000000440000000000"
    "00003300000000000000000004000300000000000000000000000000000000000000000000000000"
    "00005d46dba066c81428";
constexpr char kWelcomeExample[] =
    "14000700010000000000000000000000400022000000000000003300000000000000000000000000"
    "00000000000000000000000000000000000000000000000000000000000000000000000000000000"
    "00004b7ac222d2ae4746";
constexpr char kDataExample[] =
    "15010700000001000a000000000000001700010c1e00020301050202800400005000030240401009"
    "03050000000000000068656c6c6f00000052fff44716434eb9";
constexpr char kClassicExample[] =
    "1601070000000100000000000000000005002a0000000078cdf8476ec26884dc";

JobKey CountingKey() {
  JobKey key;
  for (std::size_t i = 0; i < key.size(); ++i) key[i] = static_cast<std::uint8_t>(i);
  return key;
}

std::string Hex(Bytes bytes) {
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += "0123456789abcdef"[byte >> 4];
    text += "0123456789abcdef"[byte & 15];
  }
  return text;
}

std::vector<std::uint8_t> GreetingPacket(Kind kind, const Greeting& greeting, NodeId source,
                                         NodeId destination) {
  std::vector<std::uint8_t> out(kHeaderSize + kGreetingControlSize + kTagSize);
  const MutableBytes room(out);
  WriteHeader({kind, 0, 7, source, destination, 0, kGreetingControlSize},
              room.first<kHeaderSize>());
  WriteGreeting(kind, greeting, room.subspan<kHeaderSize, kGreetingControlSize>());
  const std::size_t size = Seal(GreetingKey(CountingKey(), {7, source, destination, 0, 0}), nullptr,
                                nullptr, room, kHeaderSize + kGreetingControlSize);
  EXPECT_EQ(size, out.size());
  return out;
}

TEST(SipHash, AgreesWithTheAuthorsVectors) {
  std::array<std::uint8_t, 16> key;
  std::array<std::uint8_t, 15> text;
  for (std::size_t i = 0; i < 16; ++i) key[i] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < 15; ++i) text[i] = static_cast<std::uint8_t>(i);
  const SipKey sip = SipKeyFrom(key);

  EXPECT_EQ(SipHash(sip, text), 0xa129ca6149be45e5u);
  std::array<std::uint8_t, 300> longer;  // than its length byte can say
  for (std::size_t i = 0; i < 300; ++i) longer[i] = static_cast<std::uint8_t>(i);
  EXPECT_EQ(SipHash(sip, longer), 0x4b0b710db6117839u);
  EXPECT_EQ(SipHash128(sip, {}), (SipKey{0xe6a825ba047f81a3u, 0x930255c71472f66du}));
}

TEST(SipHash, OfPartsIsThatOfTheirSum) {
  std::vector<std::uint8_t> all(64);
  for (std::size_t i = 0; i < all.size(); ++i) all[i] = static_cast<std::uint8_t>(i * 7);
  const SipKey key = {1, 2};

  for (std::size_t size = 56; size <= all.size(); ++size) {
    const Bytes text = Bytes(all).first(size);
    for (std::size_t cut = 0; cut + 8 <= size; ++cut) {
      SipHasher hash(key);
      hash.Add(text.first(cut));
      hash.Add(Load(text.data() + cut));
      hash.Add(text.subspan(cut + 8));
      EXPECT_EQ(hash.Finish(), SipHash(key, text)) << size << ", " << cut;
    }
  }
}

const PayloadKey kPayloadKey = MakePayloadKey(CountingKey());

TEST(Packet, HelloIsTheExampleOfThePage) {
  const auto packet = GreetingPacket(Kind::kHello, {.incarnation = 0x11, .nonce = 0x22}, 0, 1);

  EXPECT_EQ(Hex(packet), kHelloExample);
}

TEST(Packet, ChallengeAnswerAndWelcomeAreTheExamplesOfThePage) {
  EXPECT_EQ(
      Hex(GreetingPacket(
          Kind::kChallenge,
          {.incarnation = 0x33, .nonce = 0x22, .cookie = 0x44, .credit = 262144, .channels = 3}, 1,
          0)),
      kChallengeExample);
  EXPECT_EQ(Hex(GreetingPacket(Kind::kAnswer,
                               {.incarnation = 0x11,
                                .nonce = 0x22,
                                .cookie = 0x44,
                                .other_incarnation = 0x33,
                                .credit = 262144,
                                .channels = 3},
                               0, 1)),
            kAnswerExample);
  EXPECT_EQ(Hex(GreetingPacket(Kind::kWelcome, {.incarnation = 0x33, .nonce = 0x22}, 1, 0)),
            kWelcomeExample);
}

TEST(Packet, DataIsTheExampleOfThePage) {
  std::array<std::uint8_t, 128> out{};
  std::array<std::uint8_t, 64> control{};
  FrameWriter writer(control);
  const std::array<NumberRange, 2> ranges = {{{9, 12}, {1, 6}}};
  ASSERT_TRUE(writer.Ack(ranges, 30, 0));
  ASSERT_TRUE(writer.Credit(2, 262144, 4096));
  ASSERT_TRUE(writer.Data(2, 64, 16));
  ASSERT_TRUE(writer.One(FrameKind::kFloor, 3));
  const std::array<std::uint8_t, 16> message = {5, 0, 0, 0, 0, 0, 0, 0, 'h', 'e', 'l', 'l', 'o'};
  WriteHeader({Kind::kData, 0, 7, 0, 1, 10, static_cast<std::uint16_t>(writer.size())},
              std::span(out).first<kHeaderSize>());
  std::memcpy(out.data() + kHeaderSize, control.data(), writer.size());
  std::memcpy(out.data() + kHeaderSize + writer.size(), message.data(), message.size());

  const SipKey key = SessionKey(CountingKey(), {7, 0, 1, 0x11, 0x33});
  const std::size_t size =
      Seal(key, nullptr, &kPayloadKey, out, kHeaderSize + writer.size() + message.size());

  EXPECT_EQ(Hex(Bytes(out).first(size)), kDataExample);
}

TEST(Packet, ClassicMessageIsTheExampleOfThePage) {
  std::array<std::uint8_t, 64> out{};
  WriteHeader({Kind::kClassicData, 0, 7, 0, 1, 0, 5}, std::span(out).first<kHeaderSize>());
  out[kHeaderSize] = 0x2a;
  out[kHeaderSize + 5] = 'x';

  const std::size_t size =
      Seal(ClassicKey(CountingKey(), {7, 0, 1, 0, 0}), nullptr, &kPayloadKey, out, kHeaderSize + 6);

  EXPECT_EQ(Hex(Bytes(out).first(size)), kClassicExample);
}

TEST(Packet, FramesComeBackAsTheyWereWritten) {
  std::array<std::uint8_t, 256> control;
  FrameWriter writer(control);
  const std::array<NumberRange, 3> ranges = {{{1000, 1000}, {500, 998}, {0, 0}}};
  ASSERT_TRUE(writer.Ack(ranges, 77, 5));
  ASSERT_TRUE(writer.Credit(255, kNumberMax, 1));
  ASSERT_TRUE(writer.Data(3, 1ull << 40, 4));
  ASSERT_TRUE(writer.One(FrameKind::kGrant, 1234567));
  ASSERT_TRUE(writer.Ping());
  ASSERT_TRUE(writer.One(FrameKind::kPad, 2));
  const std::array<std::uint8_t, 6> payload = {1, 2, 3, 4, 0, 0};

  FrameReader reader(Bytes(control).first(writer.size()), payload);
  Frame frame;
  ASSERT_TRUE(reader.Next(frame));
  EXPECT_EQ(frame.range_count, 3u);
  EXPECT_THAT(std::vector(frame.ranges.begin(), frame.ranges.begin() + 3),
              ElementsAre(ranges[0], ranges[1], ranges[2]));
  EXPECT_EQ(frame.delay_us, 77u);
  EXPECT_EQ(frame.ce_count, 5u);
  ASSERT_TRUE(reader.Next(frame));
  EXPECT_EQ(frame.channel, 255u);
  EXPECT_EQ(frame.value, kNumberMax);
  ASSERT_TRUE(reader.Next(frame));
  EXPECT_EQ(frame.value, 1ull << 40);
  EXPECT_THAT(frame.payload, ElementsAre(1, 2, 3, 4));
  ASSERT_TRUE(reader.Next(frame));
  EXPECT_EQ(frame.value, 1234567u);
  ASSERT_TRUE(reader.Next(frame));
  ASSERT_TRUE(reader.Next(frame));
  EXPECT_EQ(frame.length, 2u);
  EXPECT_FALSE(reader.Next(frame));
  EXPECT_TRUE(reader.ok());
}

TEST(Packet, FramesThatLieAreRefused) {
  const auto ok = [](std::vector<std::uint8_t> control, std::vector<std::uint8_t> payload) {
    FrameReader reader(control, payload);
    Frame frame;
    while (reader.Next(frame)) {
    }
    return reader.ok();
  };

  EXPECT_TRUE(ok({3, 0, 0, 1}, {9}));
  EXPECT_FALSE(ok({3, 0, 0, 2}, {9})) << "data longer than the payload";
  EXPECT_FALSE(ok({6}, {9})) << "payload that no frame describes";
  EXPECT_FALSE(ok({3, 0, 0, 0}, {})) << "empty data";
  EXPECT_FALSE(ok({1, 5, 0, 0, 1, 6}, {})) << "range below zero";
  EXPECT_FALSE(ok({1, 5, 0, 0, 33, 0}, {})) << "too many ranges";
  EXPECT_FALSE(ok({1, 5, 0, 0, 2, 0, 4, 0}, {})) << "gap below zero";
  EXPECT_FALSE(ok({9, 0xc0}, {})) << "cut integer";
  EXPECT_FALSE(ok({77}, {})) << "unknown frame";
  EXPECT_TRUE(
      ok({10, 0, 0, 0, 0, 1, 0xc0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0x80, 0, 0xff, 0xff}, {}));
  EXPECT_FALSE(ok({10, 0, 0, 0, 0, 1, 0xc0, 0, 0, 1, 0, 0, 0, 0, 0}, {}))
      << "more nodes gone than can be";
  EXPECT_FALSE(ok({10, 0, 0, 0, 0, 1, 0, 0x80, 1, 0, 0}, {})) << "a leader that cannot be";
  EXPECT_FALSE(ok(std::vector<std::uint8_t>(kFramesMax + 1, 6), {})) << "too many frames";
  EXPECT_FALSE(ok({7, 1, 3, 0, 0, 1}, {0, 9})) << "data behind padding";
}

TEST(Packet, HeaderLiesAreRefused) {
  auto packet = GreetingPacket(Kind::kHello, {.incarnation = 1, .nonce = 2}, 0, 1);
  Packet parsed;
  ASSERT_EQ(ParsePacket(packet, parsed), ParseError::kNone);

  const auto with = [&](std::size_t at, std::uint8_t value) {
    auto changed = packet;
    changed[at] = value;
    return ParsePacket(changed, parsed);
  };
  EXPECT_EQ(with(0, 0x21), ParseError::kVersion);
  EXPECT_EQ(with(0, 0x10), ParseError::kKind);
  EXPECT_EQ(with(0, 0x19), ParseError::kKind);
  EXPECT_EQ(with(1, 16), ParseError::kFlags);
  EXPECT_EQ(with(1, kFlagNoHurry), ParseError::kFlags) << "of a greeting";
  EXPECT_EQ(with(1, kFlagAfterProbe), ParseError::kFlags) << "of a greeting";
  EXPECT_EQ(with(1, kFlagEncrypted), ParseError::kFlags);
  EXPECT_EQ(with(15, 0x40), ParseError::kControl) << "packet number of 2^62";
  EXPECT_EQ(with(17, 0xff), ParseError::kControl) << "control part longer than the datagram";
  EXPECT_EQ(ParsePacket(Bytes(packet).first(25), parsed), ParseError::kSize);
}

TEST(Packet, ACutOrChangedPacketIsNotGenuine) {
  const auto packet = GreetingPacket(Kind::kHello, {.incarnation = 1, .nonce = 2}, 0, 1);
  const SipKey key = GreetingKey(CountingKey(), {7, 0, 1, 0, 0});
  const auto genuine = [&](std::vector<std::uint8_t> bytes) {
    Packet parsed;
    return ParsePacket(bytes, parsed) == ParseError::kNone &&
           Open(key, nullptr, nullptr, bytes, parsed);
  };
  ASSERT_TRUE(genuine(packet));

  for (std::size_t bit = 0; bit < packet.size() * 8; ++bit) {
    auto changed = packet;
    changed[bit / 8] = static_cast<std::uint8_t>(changed[bit / 8] ^ 1u << bit % 8);
    EXPECT_FALSE(genuine(changed)) << "bit " << bit;
  }
  for (std::size_t size = 0; size < packet.size(); ++size) {
    EXPECT_FALSE(genuine({packet.begin(), packet.begin() + static_cast<long>(size)}));
  }
}

TEST(Packet, TheTagCoversThePayloadOnlyIfItSaysSo) {
  for (const bool payload_tag : {false, true}) {
    std::vector<std::uint8_t> out(kHeaderSize + 4 + kTagSize);
    WriteHeader({Kind::kData, 0, 7, 0, 1, 1, 0}, std::span(out).first<kHeaderSize>());
    Seal({1, 2}, nullptr, payload_tag ? &kPayloadKey : nullptr, out, kHeaderSize + 4);
    out[kHeaderSize] ^= 1;
    Packet parsed;
    ASSERT_EQ(ParsePacket(out, parsed), ParseError::kNone);
    EXPECT_EQ(Open({1, 2}, nullptr, &kPayloadKey, out, parsed), !payload_tag);
  }
}

// By its definition, a word at a time.
std::vector<std::uint8_t> PlainDigest(std::vector<std::uint8_t> payload) {
  std::vector<std::uint8_t> out;
  const std::uint64_t length = payload.size();
  const auto put = [&out](std::uint64_t value) {
    for (int i = 0; i < 8; ++i) out.push_back(static_cast<std::uint8_t>(value >> 8 * i));
  };
  for (std::size_t block = 0; block < length; block += 1024) {
    unsigned __int128 sum = 0;
    for (std::size_t at = block; at < std::min<std::size_t>(block + 1024, length); at += 16) {
      std::uint64_t words[2] = {kPayloadKey.words[(at - block) / 8],
                                kPayloadKey.words[(at - block) / 8 + 1]};
      for (std::size_t i = 0; i < 16 && at + i < length; ++i) {
        words[i / 8] += std::uint64_t{payload[at + i]} << 8 * (i % 8);
      }
      sum += static_cast<unsigned __int128>(words[0]) * words[1];
    }
    put(static_cast<std::uint64_t>(sum));
    put(static_cast<std::uint64_t>(sum >> 64));
  }
  put(length);
  return out;
}

TEST(Packet, TheTagCoversTheHeadAndNhOfThePayloadsBlocks) {
  const std::vector<std::uint8_t> head = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13};
  std::vector<std::uint8_t> payload;
  const auto expect_tag = [&] {
    std::vector<std::uint8_t> text = head;
    const std::vector<std::uint8_t> digest = PlainDigest(payload);
    text.insert(text.end(), digest.begin(), digest.end());
    EXPECT_EQ(Tag({1, 2}, &kPayloadKey, head, payload), SipHash({1, 2}, text)) << payload.size();
  };
  for (std::size_t size = 0; size <= 4200; size += size < 100 ? 1 : 61) {
    while (payload.size() < size) payload.push_back(static_cast<std::uint8_t>(payload.size() * 37));
    expect_tag();
  }
  payload.assign(65507, 1);
  expect_tag();
}

TEST(Packet, PayloadsThatDifferOnlyInZerosAtTheEndHaveOtherTags) {
  const std::vector<std::uint8_t> payload(20, 0);
  EXPECT_NE(Tag({1, 2}, &kPayloadKey, {}, payload),
            Tag({1, 2}, &kPayloadKey, {}, Bytes(payload).first(19)));
}

constexpr std::uint64_t kNumbers[] = {
    0, 1, 63, 64, 16383, 16384, 1 << 20, (1 << 30) - 1, 1 << 30, kNumberMax};

TEST(Packet, AFrameIsWrittenWhereItFitsAndNotAByteBesides) {
  const auto expect = [](auto write) {
    constexpr std::size_t kEnough = 400;
    constexpr std::uint8_t kUntouched = 0xee;
    std::array<std::uint8_t, kEnough> whole;
    FrameWriter large(whole);
    ASSERT_TRUE(write(large));
    for (std::size_t room = 0; room <= large.size() + 9; ++room) {
      std::array<std::uint8_t, kEnough> out;
      out.fill(kUntouched);
      FrameWriter writer({out.data(), room});
      const bool fits = room >= large.size();
      ASSERT_EQ(write(writer), fits) << room << " for " << large.size();
      ASSERT_EQ(writer.size(), fits ? large.size() : 0);
      ASSERT_TRUE(std::equal(out.begin(), out.begin() + static_cast<std::ptrdiff_t>(writer.size()),
                             whole.begin()));
      ASSERT_TRUE(std::all_of(out.begin() + static_cast<std::ptrdiff_t>(writer.size()), out.end(),
                              [](std::uint8_t byte) { return byte == kUntouched; }));
    }
  };
  for (const std::uint64_t number : kNumbers) {
    expect([&](FrameWriter& writer) { return writer.One(FrameKind::kGrant, number); });
    expect([&](FrameWriter& writer) { return writer.Credit(200, number, 7); });
    expect([&](FrameWriter& writer) { return writer.Data(1, number, 1400); });
    expect([&](FrameWriter& writer) {
      const std::array<NumberRange, 2> ranges = {
          {{number + 10, number + 20}, {number, number + 3}}};
      return writer.Ack(ranges, number, number);
    });
    expect([&](FrameWriter& writer) {
      return writer.Gang({.wave = number, .asked = 1, .joined = number, .reported = 3});
    });
  }
}

TEST(Packet, ANumberIsReadHoweverManyBytesFollow) {
  for (const std::uint64_t number : kNumbers) {
    for (std::size_t behind = 0; behind <= 9; ++behind) {
      std::array<std::uint8_t, 64> out;
      FrameWriter writer(out);
      ASSERT_TRUE(writer.One(FrameKind::kGrant, number));
      for (std::size_t i = 0; i < behind; ++i) ASSERT_TRUE(writer.Ping());
      FrameReader reader(Bytes(out).first(writer.size()), {});
      Frame frame;
      ASSERT_TRUE(reader.Next(frame));
      EXPECT_EQ(frame.value, number) << behind;
      for (std::size_t i = 0; i < behind; ++i) ASSERT_TRUE(reader.Next(frame));
      EXPECT_FALSE(reader.Next(frame));
      EXPECT_TRUE(reader.ok());

      // One whose end is missing is none.
      FrameReader cut(Bytes(out).first(writer.size() - behind - 1), {});
      EXPECT_FALSE(cut.Next(frame));
      EXPECT_FALSE(cut.ok()) << number;
    }
  }
}

// Stands in for an AEAD: what matters here is where the bytes go.
class XorCipher final : public Cipher {
 public:
  void Seal(const SipKey& session, std::uint64_t nonce, Bytes additional, MutableBytes text,
            std::span<std::uint8_t, kCipherTagSize> tag) override {
    for (std::uint8_t& byte : text) byte ^= static_cast<std::uint8_t>(0x5a + nonce);
    const SipKey sum = SipHash128({session[0] ^ SipHash(session, additional), session[1]}, text);
    std::memcpy(tag.data(), sum.data(), kCipherTagSize);
  }
  bool Open(const SipKey& session, std::uint64_t nonce, Bytes additional, MutableBytes text,
            std::span<const std::uint8_t, kCipherTagSize> tag) override {
    const SipKey sum = SipHash128({session[0] ^ SipHash(session, additional), session[1]}, text);
    if (std::memcmp(tag.data(), sum.data(), kCipherTagSize) != 0) return false;
    for (std::uint8_t& byte : text) byte ^= static_cast<std::uint8_t>(0x5a + nonce);
    return true;
  }
};

TEST(Packet, ACipherHidesControlPartAndPayload) {
  XorCipher cipher;
  std::vector<std::uint8_t> out(kHeaderSize + 8 + kCipherTagSize);
  WriteHeader({Kind::kData, 0, 7, 0, 1, 5, 3}, std::span(out).first<kHeaderSize>());
  std::memcpy(out.data() + kHeaderSize, "ctlsecret", 8);

  ASSERT_EQ(Seal({1, 2}, &cipher, &kPayloadKey, out, kHeaderSize + 8), out.size());

  EXPECT_NE(std::memcmp(out.data() + kHeaderSize, "ctl", 3), 0);
  Packet parsed;
  ASSERT_EQ(ParsePacket(out, parsed), ParseError::kNone);
  EXPECT_FALSE(Open({1, 2}, nullptr, &kPayloadKey, out, parsed)) << "no cipher, encrypted packet";
  ASSERT_TRUE(Open({1, 2}, &cipher, &kPayloadKey, out, parsed));
  EXPECT_EQ(std::memcmp(parsed.control.data(), "ctl", 3), 0);
}

}  // namespace
}  // namespace sekisho::pm
