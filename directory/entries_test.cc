// SPDX-License-Identifier: Apache-2.0
#include "directory/entries.h"

#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "directory/test_site.h"
#include "glue/offer.h"

namespace sekisho::directory {
namespace {

using ::testing::ElementsAre;

std::vector<glue::Entry> Entries(const Profile& profile, const proto::SiteState& state) {
  return MakeEntries(profile, state, {.is_connected = true}, kTestBase);
}

const glue::Entry& Of(const std::vector<glue::Entry>& entries, const std::string& object_class) {
  for (const glue::Entry& entry : entries) {
    if (entry.Is(object_class)) {
      return entry;
    }
  }
  ADD_FAILURE() << "no " << object_class;
  return entries.front();
}

TEST(Entries, ASharesSlotsAreThoseOfTheNodesThatServeIt) {
  const auto entries = Entries(TestProfile(), TestState());

  const glue::Entry& share = Of(entries, "GLUE2ComputingShare");
  EXPECT_EQ(share.First("GLUE2ComputingShareFreeSlots"), "12");
  EXPECT_EQ(share.First("GLUE2ComputingShareUsedSlots"), "4");
  EXPECT_EQ(share.First("GLUE2ComputingShareMaxSlotsPerJob"), "16");
  EXPECT_EQ(share.First("GLUE2ComputingShareServingState"), "production");
}

TEST(Entries, TheTreeOfTheNodesIsAnExtensionOfTheService) {
  proto::SiteState state = TestState();
  state.set_network("n1 n2 20.5\n");

  const auto entries = Entries(TestProfile(), state);
  const glue::Entry& extension = Of(entries, "GLUE2Extension");

  EXPECT_EQ(extension.First("GLUE2ExtensionKey"), "org.sekisho.network");
  EXPECT_EQ(extension.First("GLUE2ExtensionValue"), "n1 n2 20.5\n");
  EXPECT_EQ(extension.First("GLUE2ExtensionEntityForeignKey"),
            Of(entries, "GLUE2ComputingService").First("GLUE2ServiceID"));
  for (const glue::Entry& entry : Entries(TestProfile(), TestState())) {
    EXPECT_FALSE(entry.Is("GLUE2Extension"));  // a site that keeps none
  }
}

TEST(Entries, AReaderGetsBackWhatTheSiteIs) {
  const auto offers = glue::ReadOffers(Entries(TestProfile(), TestState("night")));

  ASSERT_EQ(offers.size(), 1u);
  EXPECT_EQ(offers[0].site, "siteA");
  EXPECT_EQ(offers[0].contact, "a-dmz:2119");
  ASSERT_EQ(offers[0].shares.size(), 2u);
  EXPECT_EQ(offers[0].shares[1].queue, "night");
  ASSERT_EQ(offers[0].Of(offers[0].shares[1]).size(), 1u);
  EXPECT_EQ(offers[0].environments[0].platform, "amd64");
  EXPECT_EQ(offers[0].environments[0].free_slots, 12);
  EXPECT_TRUE(*offers[0].environments[0].reaches_out);
  EXPECT_FALSE(*offers[0].environments[0].reached);
  EXPECT_THAT(offers[0].mpi, ElementsAre("mpich"));
  ASSERT_EQ(offers[0].links.size(), 1u);
  EXPECT_EQ(offers[0].links[0].site, "site B");
  EXPECT_EQ(offers[0].links[0].rtt_ms, 8.5);
  EXPECT_FALSE(offers[0].links[0].bandwidth_mbps.has_value());
}

TEST(Entries, AReaderAsksForAllThatItReads) {
  std::vector<glue::Entry> entries = Entries(TestProfile(), TestState("night"));
  for (glue::Entry& entry : entries) {
    entry.attributes["GLUE2EntityCreationTime"] = {"2026-11-22T06:00:00Z"};
    entry.attributes["GLUE2EntityValidity"] = {"120"};
  }
  const auto offers = glue::ReadOffers(entries);
  const auto& asked = glue::OfferAttributes();
  for (glue::Entry& entry : entries) {
    std::erase_if(entry.attributes, [&](const auto& attribute) {
      return std::find(asked.begin(), asked.end(), attribute.first) == asked.end();
    });
  }

  EXPECT_EQ(glue::ReadOffers(entries), offers);
}

TEST(Entries, AJobWhoseUserAgreedHangsBelowTheEndpoint) {
  proto::SiteState state = TestState();
  for (const glue::Entry& entry : Entries(TestProfile(), state)) {
    EXPECT_EQ(entry.dn.find("Activit"), std::string::npos) << "without such a job";
  }
  proto::ActivityState& job = *state.add_activity();
  job.set_job_id("abcdefghij234");
  job.set_subject("/O=Lab/CN=Alice");
  job.set_service("jobmanager-agent");
  job.set_state(proto::SUSPENDED);
  job.set_slots(4);
  job.set_submitted_ms(1'795'000'000'000);
  job.set_started_ms(1'795'000'001'000);

  const auto entries = Entries(TestProfile(), state);

  const glue::Entry& activity = Of(entries, "GLUE2ComputingActivity");
  EXPECT_EQ(activity.First("GLUE2ActivityID"), "urn:ogf:ComputingActivity:a-dmz:siteA/abcdefghij234");
  EXPECT_THAT(activity.All("GLUE2ComputingActivityState"), ElementsAre("bes:running", "org.sekisho:suspended"));
  EXPECT_EQ(activity.First("GLUE2ComputingActivityOwner"), "/O=Lab/CN=Alice");
  EXPECT_EQ(activity.First("GLUE2ActivityShareForeignKey"), Of(entries, "GLUE2ComputingShare").First("GLUE2ShareID"));
}

TEST(Entries, OfASiteWhoseInsideIsSilentOnlyTheDoorIsPublished) {
  const auto entries = MakeEntries(TestProfile(), TestState(), {.is_connected = false, .info = "no answer"}, kTestBase);

  EXPECT_EQ(Of(entries, "GLUE2ComputingEndpoint").First("GLUE2EndpointHealthState"), "critical");
  EXPECT_EQ(Of(entries, "GLUE2ComputingEndpoint").First("GLUE2EndpointServingState"), "closed");
  for (const glue::Entry& entry : entries) {
    EXPECT_FALSE(entry.Is("GLUE2ComputingShare") || entry.Is("GLUE2ComputingManager")) << entry.dn;
  }
}

TEST(Entries, ASilentAllocatorIsAWarning) {
  proto::SiteState state = TestState();
  state.set_has_allocator(false);

  EXPECT_EQ(Of(Entries(TestProfile(), state), "GLUE2ComputingEndpoint").First("GLUE2EndpointHealthState"), "warning");
}

TEST(Entries, AParentComesBeforeItsChildren) {
  std::set<std::string> made = {glue::CanonicalDn(kTestBase)};
  for (const glue::Entry& entry : Entries(TestProfile(), TestState())) {
    auto names = *glue::ParseDn(entry.dn);
    names.erase(names.begin());
    EXPECT_TRUE(made.count(glue::ToDn(names))) << entry.dn;
    EXPECT_TRUE(made.insert(glue::CanonicalDn(entry.dn)).second) << "twice: " << entry.dn;
  }
}

TEST(Entries, NoNameOfASiteAQueueOrAResourceLeavesItsPlace) {
  for (const std::string nasty :
       {"a,o=glue", "a)(objectClass=*", "*", "a+b=c", "\"q\"", "b\\", " blank ", "#1", "a=b;c", "new\nline", "ä", "%41"}) {
    const auto entries = Entries(TestProfile(nasty), TestState(nasty, nasty));

    std::set<std::string> names;
    for (const glue::Entry& entry : entries) {
      const auto parts = glue::ParseDn(entry.dn);
      ASSERT_TRUE(parts.has_value()) << entry.dn;
      EXPECT_EQ(glue::ToDn({parts->end() - 2, parts->end()}), glue::CanonicalDn(kTestBase)) << entry.dn;
      EXPECT_EQ((*parts)[parts->size() - 3].first, "glue2domainid") << entry.dn;
      EXPECT_TRUE(names.insert(glue::ToDn(*parts)).second) << entry.dn;
    }
    const auto offers = glue::ReadOffers(entries);
    ASSERT_EQ(offers.size(), 1u) << nasty;
    EXPECT_EQ(offers[0].shares.size(), 2u) << nasty;
    EXPECT_EQ(offers[0].Of(offers[0].shares[1]).size(), 1u) << nasty;
  }
}

}  // namespace
}  // namespace sekisho::directory
