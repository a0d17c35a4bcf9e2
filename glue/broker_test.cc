// SPDX-License-Identifier: Apache-2.0
#include "glue/broker.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "glue/test_offers.h"

namespace sekisho::glue {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

std::vector<std::string> Order(const Choice& choice) {
  std::vector<std::string> sites;
  for (const Candidate& candidate : choice.candidates) {
    sites.push_back(candidate.offer->site);
  }
  return sites;
}

Choice ChooseNow(const std::vector<Offer>& offers, const Demand& demand, const std::string& where = "") {
  return Choose(offers, demand, where.empty() ? Where() : *Where::Parse(where), kTestNow);
}

// The one reason why no site is left.
std::string Reason(const std::vector<Offer>& offers, const Demand& demand, const std::string& where = "") {
  const Choice choice = ChooseNow(offers, demand, where);
  EXPECT_THAT(choice.candidates, IsEmpty());
  EXPECT_EQ(choice.rejections.size(), 1u);
  return choice.rejections.empty() ? "" : choice.rejections[0].attribute + ": " + choice.rejections[0].wanted + " / " +
                                              choice.rejections[0].published;
}

TEST(Broker, TheIdleSiteComesBeforeTheBusyOneEvenIfThatIsFaster) {
  const std::vector<Offer> offers = {TestOffer("siteA", 0, 16, 3000), TestOffer("siteB", 4, 4, 2000)};
  Demand demand;
  demand.processes = 4;

  EXPECT_THAT(Order(ChooseNow(offers, demand)), ElementsAre("siteB", "siteA"));
}

TEST(Broker, AmongIdleSitesTheFasterClockDecides) {
  const std::vector<Offer> offers = {TestOffer("siteA", 8, 8, 2000), TestOffer("siteB", 8, 8, 3000)};

  EXPECT_THAT(Order(ChooseNow(offers, {})), ElementsAre("siteB", "siteA"));
}

TEST(Broker, ANearSiteComesBeforeOneThatIsAlikeAndFar) {
  const std::vector<Offer> offers = {TestOffer("siteA", 8, 8, 2000), TestOffer("siteB", 8, 8, 2000)};
  const Distance distance = [](const Offer& offer) { return offer.site == "siteB" ? 1.0 : 100.0; };

  EXPECT_THAT(Order(Choose(offers, {}, Where(), kTestNow, distance)), ElementsAre("siteB", "siteA"));
}

TEST(Broker, DistancesAreWhatEitherEndPublishes) {
  std::vector<Offer> offers = {TestOffer("siteA", 8, 8, 2000), TestOffer("siteB", 8, 8, 2000),
                               TestOffer("siteC", 8, 8, 2000), TestOffer("siteD", 8, 8, 2000)};
  offers[0].links = {{"siteB", 8.5, 940.0}};
  offers[2].links = {{"siteA", 2.0, {}}, {"siteB", 1.0, {}}};

  const Distance distance = DistanceFrom("siteA", offers);

  EXPECT_EQ(distance(offers[0]), 0);
  EXPECT_EQ(distance(offers[1]), 8.5);
  EXPECT_EQ(distance(offers[2]), 2.0);
  EXPECT_FALSE(distance(offers[3]).has_value());
  EXPECT_FALSE(DistanceFrom("", offers));
}

TEST(Broker, TheSameOffersGiveTheSameOrder) {
  const std::vector<Offer> offers = {TestOffer("siteA", 8, 8, 2000), TestOffer("siteB", 8, 8, 2000)};

  EXPECT_THAT(Order(ChooseNow(offers, {})), ElementsAre("siteA", "siteB"));
}

TEST(Broker, EachRefusalNamesTheAttributeAndBothValues) {
  const std::vector<Offer> one = {TestOffer("siteA", 8, 16, 2000)};
  Demand demand;

  demand.processes = 32;
  EXPECT_EQ(Reason(one, demand), "slotsperjob: >= 32 / 16");
  demand = {};
  demand.conditions = {{"arch", "=", {"aarch64"}}};
  EXPECT_EQ(Reason(one, demand), "arch: = aarch64 / amd64");
  demand = {};
  demand.memory_mb = 16384;
  EXPECT_EQ(Reason(one, demand), "memory: >= 16384 a process / 8192");
  demand = {};
  demand.wall_time_s = 7200;
  EXPECT_EQ(Reason(one, demand), "walltime: >= 7200 s / 3600 s");
  demand = {};
  demand.queue = "night";
  EXPECT_EQ(Reason(one, demand), "queue: night / -");
  demand = {};
  demand.needs_mpi = true;
  demand.mpi = "openmpi";
  EXPECT_EQ(Reason(one, demand), "mpi: openmpi / mpich");
  EXPECT_EQ(Reason(one, {}, "in"), "where: in / false");
  EXPECT_EQ(Reason(one, {}, "freeslots >= 9"), "where: freeslots >= 9 / 8");
}

TEST(Broker, ASiteThatNobodyRenewsIsNoCandidate) {
  std::vector<Offer> offers = {TestOffer("siteA", 8, 16, 2000)};
  offers[0].created_s = kTestNow - 121;

  EXPECT_EQ(Reason(offers, {}), "age: <= 120 s / 121 s");
}

TEST(Broker, ASiteWhoseInsideDoesNotAnswerIsNoCandidate) {
  std::vector<Offer> offers = {TestOffer("siteA", 8, 16, 2000)};
  offers[0].health = "critical";
  offers[0].serving_state = "closed";

  EXPECT_THAT(Reason(offers, {}), HasSubstr("health: ok, and open / critical, closed"));
}

TEST(Broker, AccessIsJudgedByTheRulesItUnderstands) {
  std::vector<Offer> offers = {TestOffer("siteA", 8, 16, 2000)};
  Demand demand;
  demand.subject = "/O=Lab/CN=Carol";
  offers[0].has_policy = true;
  offers[0].access = {"dn:/O=Lab/CN=Alice"};
  EXPECT_EQ(Reason(offers, demand), "access: /O=Lab/CN=Carol / dn:/O=Lab/CN=Alice");

  offers[0].access = {"dn:/O=Lab/*"};
  EXPECT_THAT(Order(ChooseNow(offers, demand)), ElementsAre("siteA"));
  offers[0].access = {"VO:physics"};
  EXPECT_THAT(Order(ChooseNow(offers, demand)), ElementsAre("siteA"));
}

TEST(Broker, TheExplanationHasEveryTermAndEveryRefusal) {
  const std::vector<Offer> offers = {TestOffer("siteA", 0, 16, 3000), TestOffer("siteB", 4, 4, 2000)};
  Demand demand;
  demand.processes = 8;

  const std::string text = Explain(ChooseNow(offers, demand));

  EXPECT_THAT(text, HasSubstr("siteA (jobmanager-agent): score"));
  EXPECT_THAT(text, HasSubstr("freeslots: 0 free, 8 wanted"));
  EXPECT_THAT(text, HasSubstr("siteB (jobmanager-agent): no: slotsperjob: wanted >= 8, published 4"));
}

TEST(Pattern, AStarStandsForAnyText) {
  EXPECT_TRUE(MatchesPattern("/O=Lab/*", "/O=Lab/CN=x"));
  EXPECT_TRUE(MatchesPattern("*CN=*x", "/O=Lab/CN=yyx"));
  EXPECT_FALSE(MatchesPattern("/O=Lab", "/O=Lab/CN=x"));
  EXPECT_FALSE(MatchesPattern("*y", "/O=Lab/CN=x"));
  EXPECT_TRUE(MatchesPattern("**", ""));
}

}  // namespace
}  // namespace sekisho::glue
