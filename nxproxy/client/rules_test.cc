// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/rules.h"

#include <string>

#include <gtest/gtest.h>

namespace sekisho::nxproxy::client {
namespace {

Address At(const char* text) { return wire::ParseAddress(text).value(); }

LocalPlace Place() {
  LocalPlace place;
  EXPECT_TRUE(ParsePlace(
      "nxproxy-1:1000:000102030405060708090a0b0c0d0e0f:203.0.113.5:7514,[2001:db8::5]:7514",
      place));
  return place;
}

TEST(Rules, OnlyPrivateAddressesAndTheRelaysOwnAreAskedFor) {
  const LocalPlace place = Place();
  const Rules rules;

  for (const char* yes : {"10.1.0.11:1024", "172.16.0.1:1", "172.31.255.255:1", "192.168.7.7:80",
                          "100.64.0.1:1", "[fd00::1]:80", "203.0.113.5:20001"}) {
    EXPECT_TRUE(MayBeRelayed(At(yes), place, rules)) << yes;
  }
  for (const char* no :
       {"127.0.0.1:80", "[::1]:80", "0.0.0.0:80", "172.32.0.1:1", "198.51.100.7:80", "11.0.0.1:1",
        "100.128.0.1:1", "[2001:db8::9]:80", "203.0.113.5:7514", "169.254.169.254:80"}) {
    EXPECT_FALSE(MayBeRelayed(At(no), place, rules)) << no;
  }
}

TEST(Rules, ListsAddAndTakeAway) {
  const LocalPlace place = Place();
  const Rules rules = {.relayed = "198.51.100.0/24,2001:db8:1::/48", .direct = "10.1.0.0/16"};

  EXPECT_TRUE(MayBeRelayed(At("198.51.100.7:80"), place, rules));
  EXPECT_TRUE(MayBeRelayed(At("[2001:db8:1::7]:80"), place, rules));
  EXPECT_FALSE(MayBeRelayed(At("10.1.0.11:1024"), place, rules));
  EXPECT_TRUE(MayBeRelayed(At("10.2.0.11:1024"), place, rules));
}

TEST(Rules, ARangeMatchesByItsBits) {
  EXPECT_TRUE(IsInList(At("10.7.0.1:1"), "10.0.0.0/13"));
  EXPECT_FALSE(IsInList(At("10.8.0.1:1"), "10.0.0.0/13"));
  EXPECT_TRUE(IsInList(At("192.0.2.7:1"), "198.51.100.1,192.0.2.7"));
  EXPECT_TRUE(IsInList(At("192.0.2.7:1"), "0.0.0.0/0"));
  EXPECT_FALSE(IsInList(At("[2001:db8::1]:1"), "0.0.0.0/0"));
  EXPECT_FALSE(IsInList(At("192.0.2.7:1"), nullptr));
}

TEST(Rules, AListThatCannotBeReadIsPointedAt) {
  EXPECT_EQ(ErrorInList("10.0.0.0/8,192.0.2.7"), nullptr);
  for (const char* list :
       {"10.0.0.0/33", "10.0.0", "host.example/8", "10.0.0.0/", "10.0.0.0/x", "::1/129"}) {
    EXPECT_EQ(ErrorInList(list), list);
  }
}

TEST(Rules, AKnockComesFromThePortersAddressOnly) {
  EXPECT_TRUE(MayBeKnock(At("127.83.75.1:40000"), At("127.0.0.1:80")));
  EXPECT_TRUE(MayBeKnock(At("127.83.75.1:40000"), At("10.1.0.11:80")));
  EXPECT_FALSE(MayBeKnock(At("127.0.0.1:40000"), At("127.0.0.1:80")));
  EXPECT_FALSE(MayBeKnock(At("10.1.0.11:40000"), At("10.1.0.11:80")));
  EXPECT_TRUE(MayBeKnock(At("[::1]:40000"), At("[::1]:80")));
  EXPECT_TRUE(MayBeKnock(At("[fd00::1]:40000"), At("[fd00::1]:80")));
  EXPECT_FALSE(MayBeKnock(At("[fd00::2]:40000"), At("[fd00::1]:80")));
}

TEST(Rules, AnInvitationLeadsOutsideOnly) {
  EXPECT_TRUE(MayBeDialled(At("198.51.100.7:40100"), ""));
  EXPECT_TRUE(MayBeDialled(At("[2001:db8::1]:40100"), ""));
  EXPECT_TRUE(MayBeDialled(At("10.9.2.2:40100"), "10.9.2.0/24"));
  for (const char* inside : {"10.9.2.2:80", "172.16.0.1:80", "[fd00::1]:80"}) {
    EXPECT_FALSE(MayBeDialled(At(inside), "")) << inside;
  }
  for (const char* trap : {"127.0.0.1:80", "[::1]:80", "169.254.169.254:80", "0.0.0.0:80", "[::]:80",
                           "224.0.0.1:80", "255.255.255.255:80", "[fe80::1]:80", "[ff02::1]:80"}) {
    EXPECT_FALSE(MayBeDialled(At(trap), "0.0.0.0/0,::/0")) << trap;
  }
}

TEST(Rules, WhereThePorterIsMayNameThePortOfReversedConnections) {
  const std::string place = "nx:1000:000102030405060708090a0b0c0d0e0f:203.0.113.5:7514";
  LocalPlace parsed;
  ASSERT_TRUE(ParsePlace(place.c_str(), parsed));
  EXPECT_EQ(parsed.reversed_port, 0);
  ASSERT_TRUE(ParsePlace((place + ",[2001:db8::5]:7514;40100").c_str(), parsed));
  EXPECT_EQ(parsed.relay_count, 2u);
  EXPECT_EQ(parsed.reversed_port, 40100);
  EXPECT_FALSE(ParsePlace((place + ";66000").c_str(), parsed));
}

TEST(Rules, LoopbackAndWildcardsAreKnownInBothFamilies) {
  EXPECT_TRUE(IsLoopback(At("127.9.9.9:1")));
  EXPECT_TRUE(IsLoopback(At("[::1]:1")));
  EXPECT_FALSE(IsLoopback(At("128.0.0.1:1")));
  EXPECT_TRUE(IsWildcard(At("0.0.0.0:1")));
  EXPECT_TRUE(IsWildcard(At("[::]:1")));
  EXPECT_FALSE(IsWildcard(At("[::1]:1")));
}

}  // namespace
}  // namespace sekisho::nxproxy::client
