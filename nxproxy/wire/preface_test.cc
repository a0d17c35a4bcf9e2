// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/wire/preface.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nxproxy/wire/ticket.h"

namespace sekisho::nxproxy::wire {
namespace {

using testing::SizeIs;

const std::string kKey(32, 'k');

Preface Connect() {
  return {.kind = Kind::kConnect,
          .wants_opening = true,
          .session = 0x1122334455667788,
          .counter = 42,
          .from = *ParseAddress("10.2.0.11:1024"),
          .target = "203.0.113.5:40001"};
}

TEST(NxproxyPreface, SurvivesTheWire) {
  const Preface spare{.kind = Kind::kAccept, .session = 1, .counter = 1};
  for (const Preface& preface : {Connect(), spare}) {
    const std::string bytes = Seal(preface, kKey);

    EXPECT_EQ(PrefaceLength(bytes), bytes.size());
    EXPECT_EQ(DecodePreface(bytes).value().preface, preface);
  }
}

TEST(NxproxyPreface, ItsSealCoversEveryByte) {
  const std::string bytes = Seal(Connect(), kKey);
  EXPECT_TRUE(IsSealedWith(*DecodePreface(bytes), kKey));
  EXPECT_FALSE(IsSealedWith(*DecodePreface(bytes), std::string(32, 'x')));

  for (size_t i = 0; i < bytes.size(); ++i) {
    std::string forged = bytes;
    forged[i] ^= 1;
    const auto decoded = DecodePreface(forged);
    EXPECT_FALSE(decoded && IsSealedWith(*decoded, kKey)) << "byte " << i;
  }
}

TEST(NxproxyPreface, IsToldFromTlsAndFromOtherProtocolsByItsFirstBytes) {
  EXPECT_EQ(PrefaceLength("N"), std::nullopt);
  EXPECT_EQ(PrefaceLength("NXD1"), std::nullopt);
  EXPECT_EQ(PrefaceLength("\x16\x03\x01"), 0u);
  EXPECT_EQ(PrefaceLength("GET / HTTP/1.1"), 0u);
  EXPECT_EQ(PrefaceLength("NXD2"), 0u);
  EXPECT_EQ(PrefaceLength(std::string_view("NXD1\1\0\xff\xff", 8)), 0u);
}

TEST(NxproxyPreface, AcceptHasNoTargetAndConnectHasOne) {
  Preface accept{.kind = Kind::kAccept, .session = 1, .target = "x:1"};
  EXPECT_EQ(DecodePreface(Seal(accept, kKey)), std::nullopt);

  Preface connect = Connect();
  connect.target = "";
  EXPECT_EQ(DecodePreface(Seal(connect, kKey)), std::nullopt);

  connect.target = std::string(kTargetBytesMax + 1, 'x');
  EXPECT_EQ(Seal(connect, kKey), "");
}

TEST(NxproxyOpening, IsAlwaysAsLongAsItSays) {
  const Opening opening{.code = Code::kDenied,
                        .peer = *ParseAddress("[2001:db8::7]:5"),
                        .local = *ParseAddress("192.0.2.1:40000"),
                        .endpoint = 3,
                        .stream = 4};
  const std::string bytes = Encode(opening);

  EXPECT_THAT(bytes, SizeIs(kOpeningBytes));
  EXPECT_EQ(DecodeOpening(bytes), opening);
  EXPECT_EQ(DecodeOpening(bytes.substr(1)), std::nullopt);
}

TEST(NxproxyAddress, TextAndBytesAgree) {
  for (const char* text : {"192.0.2.1:80", "[2001:db8::1]:65535", "[::1]:1"}) {
    EXPECT_EQ(ToText(ParseAddress(text).value()), text);
    sockaddr_storage raw;
    ToSocket(*ParseAddress(text), raw);
    EXPECT_EQ(FromSocket(reinterpret_cast<sockaddr*>(&raw)), ParseAddress(text));
  }
  EXPECT_EQ(ToText(ParseAddress("[::ffff:192.0.2.1]:80").value()), "192.0.2.1:80");
  for (const char* text :
       {"", ":80", "192.0.2.1", "192.0.2.1:0", "192.0.2.1:65536", "::1:80", "[::1:80", "h:80 "}) {
    EXPECT_EQ(ParseAddress(text), std::nullopt) << text;
  }
  EXPECT_EQ(ParseHostPort("a-head:7512").value().host, "a-head");
}

}  // namespace
}  // namespace sekisho::nxproxy::wire
