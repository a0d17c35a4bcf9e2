// SPDX-License-Identifier: Apache-2.0
#include "glue/offer.h"

#include <gtest/gtest.h>

namespace sekisho::glue {
namespace {

constexpr char kSite[] = "GLUE2DomainID=urn:ad:siteA,GLUE2GroupID=grid,o=glue";

Entry Make(const std::string& dn, Attributes attributes) { return {dn + "," + kSite, std::move(attributes)}; }

std::vector<Entry> OneSite() {
  return {
      {kSite, {{"objectClass", {"GLUE2AdminDomain"}}, {"GLUE2EntityName", {"siteA"}}}},
      Make("GLUE2EndpointID=e", {{"objectClass", {"GLUE2Endpoint", "GLUE2ComputingEndpoint"}},
                                 {"GLUE2EndpointURL", {"https://a-dmz:2119/x"}},
                                 {"GLUE2EndpointInterfaceName", {"org.sekisho.gatekeeper"}},
                                 {"GLUE2ComputingEndpointJobDescription", {"globus:rsl"}},
                                 {"GLUE2EntityCreationTime", {"1970-01-01T00:01:40Z"}},
                                 {"GLUE2EntityValidity", {"60"}}}),
      Make("GLUE2ShareID=s", {{"objectClass", {"GLUE2ComputingShare"}},
                              {"GLUE2EntityName", {"jobmanager-agent"}},
                              {"GLUE2ComputingShareFreeSlots", {"12"}},
                              {"GLUE2ComputingShareUsedSlots", {"-1"}},
                              {"GLUE2ComputingShareMaxWallTime", {"999999999"}},
                              {"GLUE2ComputingShareExecutionEnvironmentForeignKey", {"env", "gone"}}}),
      Make("GLUE2ResourceID=env", {{"objectClass", {"GLUE2ExecutionEnvironment"}},
                                   {"GLUE2ResourceID", {"env"}},
                                   {"GLUE2ExecutionEnvironmentConnectivityOut", {"TRUE"}},
                                   {"GLUE2ExecutionEnvironmentConnectivityIn", {"perhaps"}},
                                   {"GLUE2EntityOtherInfo", {"FreeSlots=8", "Tag=fast", "Tag=big"}}}),
  };
}

TEST(Offers, ASiteIsReadFromItsEntriesInAnyOrder) {
  std::vector<Entry> entries = OneSite();
  std::reverse(entries.begin(), entries.end());

  const std::vector<Offer> offers = ReadOffers(entries);

  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].site, "siteA");
  EXPECT_EQ(offers[0].contact, "a-dmz:2119");
  EXPECT_EQ(offers[0].created_s, 100);
  EXPECT_EQ(offers[0].shares[0].free_slots, 12);
  ASSERT_EQ(offers[0].Of(offers[0].shares[0]).size(), 1u);
  EXPECT_EQ(offers[0].environments[0].free_slots, 8);
  EXPECT_EQ(offers[0].environments[0].tags, (std::vector<std::string>{"fast", "big"}));
}

TEST(Offers, WhatIsNoNumberOrTruthIsNotSaid) {
  const std::vector<Offer> offers = ReadOffers(OneSite());

  EXPECT_FALSE(offers[0].shares[0].used_slots.has_value());
  EXPECT_FALSE(offers[0].shares[0].wall_time_max_s.has_value());
  EXPECT_FALSE(offers[0].environments[0].reached.has_value());
  EXPECT_TRUE(offers[0].environments[0].reaches_out.value());
}

TEST(Offers, OthersEndpointsAreNoContacts) {
  std::vector<Entry> entries = OneSite();
  entries[1].attributes["GLUE2EndpointInterfaceName"] = {"org.nordugrid.arcrest"};

  EXPECT_TRUE(ReadOffers(entries).empty());
}

TEST(Offers, NobodyCanCallHimselfAnother) {
  std::vector<Entry> entries = OneSite();
  for (Entry& entry : entries) {
    entry.attributes["GLUE2EntityName"] = {"siteB"};
    entry.dn.insert(entry.dn.find(kSite), "GLUE2DomainID=urn:ad:siteB,");
  }

  ASSERT_EQ(ReadOffers(entries).size(), 1u);
  EXPECT_EQ(ReadOffers(entries)[0].site, "siteA");
}

TEST(Offers, ControlCharactersDoNotReachATerminal) {
  std::vector<Entry> entries = OneSite();
  for (Entry& entry : entries) {
    entry.dn.replace(entry.dn.find("siteA"), 5, "site%1B[2J%0AA");
  }
  entries[2].attributes["GLUE2EntityName"] = {"a\x1b]0;b"};
  entries.push_back(entries[0]);
  entries.back().attributes = {{"objectClass", {"GLUE2AccessPolicy"}}, {"GLUE2PolicyRule", {"dn:\x1b[2J"}}};

  const Offer offer = ReadOffers(entries)[0];

  EXPECT_EQ(offer.site, "site?[2J?A");
  EXPECT_EQ(offer.shares[0].service, "a?]0;b");
  EXPECT_EQ(offer.access[0], "dn:?[2J");
}

TEST(Offers, TruthEndsWithItsValidity) {
  const Offer offer = ReadOffers(OneSite())[0];

  EXPECT_TRUE(offer.IsFresh(160));
  EXPECT_FALSE(offer.IsFresh(161));
}

TEST(Time, OnlyTheOneFormIsATime) {
  EXPECT_EQ(ParseTime("2026-11-22T06:00:00Z"), 1795327200);
  for (const char* text : {"", "2026-11-22", "2026-11-22T06:00:00", "2026-11-22T06:00:00Zx", "now"}) {
    EXPECT_FALSE(ParseTime(text).has_value()) << text;
  }
}

}  // namespace
}  // namespace sekisho::glue
