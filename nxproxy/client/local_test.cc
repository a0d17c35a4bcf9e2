// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/local.h"

#include <algorithm>
#include <cerrno>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

using testing::HasSubstr;

wire::Address At(const char* text) { return wire::ParseAddress(text).value(); }

TEST(LocalPlace, IsReadFromTheEnvironmentsText) {
  LocalPlace place;
  ASSERT_TRUE(ParsePlace(
      "nxproxy-1:1000:000102030405060708090a0b0c0d0e0f:203.0.113.5:7514,[2001:db8::5]:7514",
      place));

  EXPECT_STREQ(place.name, "nxproxy-1");
  EXPECT_EQ(place.uid, 1000u);
  EXPECT_EQ(place.key[15], 15);
  ASSERT_EQ(place.relay_count, 2u);
  EXPECT_EQ(place.relays[0], At("203.0.113.5:7514"));
  EXPECT_EQ(place.relays[1], At("[2001:db8::5]:7514"));
}

TEST(LocalPlace, RefusesWhatIsNotOne) {
  LocalPlace place;
  for (const char* text :
       {"", "a", "a:", "a:1", ":1:000102030405060708090a0b0c0d0e0f:1.2.3.4:5", "a:1:00:1.2.3.4:5",
        "a:1:000102030405060708090a0b0c0d0e0g:1.2.3.4:5", "a:1:000102030405060708090a0b0c0d0e0f",
        "a:1:000102030405060708090a0b0c0d0e0f:x:5",
        "a:1:000102030405060708090a0b0c0d0e0f:1.2.3.4:70000",
        "a::000102030405060708090a0b0c0d0e0f:1.2.3.4:5",
        "a:4294967296:000102030405060708090a0b0c0d0e0f:1.2.3.4:5",
        "a:-1:000102030405060708090a0b0c0d0e0f:1.2.3.4:5"}) {
    EXPECT_FALSE(ParsePlace(text, place)) << text;
  }
}

TEST(LocalPlace, OfAnOlderVersionWithoutAUserIsRefused) {
  LocalPlace place;
  for (const char* text : {"a:000102030405060708090a0b0c0d0e0f:1.2.3.4:5",
                           "a:00010203040506070809101112131415:1.2.3.4:5"}) {
    EXPECT_FALSE(ParsePlace(text, place)) << text;
  }
}

// What unshare(1) and container programs write, and what stands there without either.
constexpr char kWhole[] = "         0          0 4294967295\n";
constexpr char kAsRoot[] = "         0       1000          1\n";
constexpr char kContainer[] =
    "         0       1000          1\n         1     100000      65536\n";

TEST(IsSameUser, ComparesNumbersWhereThereIsNoUserNamespace) {
  EXPECT_TRUE(IsSameUser(1000, 1000, kWhole));
  EXPECT_FALSE(IsSameUser(1001, 1000, kWhole));
  EXPECT_FALSE(IsSameUser(0, 1000, kWhole));
  EXPECT_TRUE(IsSameUser(65534, 65534, kWhole));  // nobody, an account like others
}

TEST(IsSameUser, KnowsAPorterOutsideOfItsUserNamespace) {
  EXPECT_TRUE(IsSameUser(0, 1000, kAsRoot));
  EXPECT_TRUE(IsSameUser(0, 0, kAsRoot));  // one inside
  EXPECT_TRUE(IsSameUser(0, 1000, kContainer));
  EXPECT_TRUE(IsSameUser(10, 100009, kContainer));
}

TEST(IsSameUser, BelievesNobodyWhomTheNamespaceDoesNotTellFromOthers) {
  for (const char* uid_map : {kAsRoot, kContainer}) {
    for (const uid_t expected : {65534u, 1000u, 0u, 165533u}) {
      EXPECT_FALSE(IsSameUser(65534, expected, uid_map)) << expected << " in " << uid_map;
    }
  }
  EXPECT_FALSE(IsSameUser(1000, 1000, kAsRoot));
  EXPECT_FALSE(IsSameUser(1000, 1000, ""));
  EXPECT_FALSE(IsSameUser(1000, 1000, "         0          0 42949"));  // the end was not read
}

TEST(Ask, TellsWhoHasTakenThePortersNameNothing) {
  LocalPlace place;
  const std::string name = "nxproxy-test-" + std::to_string(getpid());
  std::copy(name.begin(), name.end(), place.name);
  place.uid = geteuid() + 1;
  std::fill(std::begin(place.key), std::end(place.key), uint8_t{7});
  sockaddr_storage address;
  const socklen_t length = AbstractAddress(place.name, address);
  const int listener = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(listener, reinterpret_cast<sockaddr*>(&address), length), 0);
  ASSERT_EQ(listen(listener, 1), 0);

  LocalRequest request;
  LocalReply reply;
  int fd = 0;
  ASSERT_TRUE(Ask(place, request, reply, fd));

  EXPECT_EQ(reply.answer, LocalAnswer::kRefused);
  EXPECT_EQ(reply.error, EACCES);
  EXPECT_THAT(std::string(reply.text),
              HasSubstr("expected uid " + std::to_string(place.uid) + ", uid " +
                        std::to_string(geteuid()) + " answered"));
  EXPECT_EQ(fd, -1);
  const int peer = accept(listener, nullptr, nullptr);
  char byte;
  EXPECT_EQ(recv(peer, &byte, 1, 0), 0);
  close(peer);
  close(listener);
}

}  // namespace
}  // namespace sekisho::nxproxy::client
