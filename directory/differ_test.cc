// SPDX-License-Identifier: Apache-2.0
#include "directory/differ.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "directory/test_site.h"

namespace sekisho::directory {
namespace {

using glue::Change;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pair;
using ::testing::SizeIs;

constexpr DiffRules kRules = {.now_s = 1'795'000'000, .validity_s = 120, .renew_after_s = 40};

std::vector<glue::Entry> Wanted(int64_t free = 12) {
  proto::SiteState state = TestState();
  state.mutable_resource(0)->set_processors_free(free);
  return MakeEntries(TestProfile(), state, {.is_connected = true}, kTestBase);
}

DiffRules Later(int seconds) {
  DiffRules rules = kRules;
  rules.now_s += seconds;
  return rules;
}

std::vector<Change::Kind> Kinds(const std::vector<Change>& changes) {
  std::vector<Change::Kind> kinds;
  for (const Change& change : changes) {
    if (kinds.empty() || kinds.back() != change.kind) {
      kinds.push_back(change.kind);
    }
  }
  return kinds;
}

TEST(Differ, WhatIsThereIsNotWrittenAgain) {
  Published published;
  EXPECT_THAT(Diff(published, Wanted(), kRules), SizeIs(Wanted().size()));

  EXPECT_THAT(Diff(published, Wanted(), Later(39)), IsEmpty());
}

TEST(Differ, OnlyChangedAttributesAreWritten) {
  Published published;
  Diff(published, Wanted(12), kRules);

  const std::vector<Change> changes = Diff(published, Wanted(8), Later(5));

  std::map<std::string, std::vector<std::string>> names;  // by the first part of the name
  for (const Change& change : changes) {
    ASSERT_EQ(change.kind, Change::Kind::kModify);
    for (const auto& [name, values] : change.attributes) {
      names[(*glue::ParseDn(change.dn))[0].first].push_back(name);
    }
  }
  EXPECT_THAT(names, ElementsAre(
      Pair("glue2managerid", ElementsAre("GLUE2ComputingManagerSlotsUsedByGridJobs", "GLUE2EntityCreationTime")),
      Pair("glue2resourceid", ElementsAre("GLUE2EntityCreationTime", "GLUE2EntityOtherInfo")),
      Pair("glue2shareid", ElementsAre("GLUE2ComputingShareFreeSlots", "GLUE2EntityCreationTime"))));
}

TEST(Differ, WhatIsStillTrueIsRenewedInTime) {
  Published published;
  Diff(published, Wanted(), kRules);
  EXPECT_EQ(NextRenewal(published, kRules), kRules.now_s + 40);

  for (const Change& change : Diff(published, Wanted(), Later(40))) {
    EXPECT_EQ(change.kind, Change::Kind::kModify);
    EXPECT_THAT(change.attributes, ElementsAre(Pair("GLUE2EntityCreationTime", SizeIs(1))));
  }
  EXPECT_EQ(NextRenewal(published, kRules), kRules.now_s + 80);
}

TEST(Differ, AfterTheClockIsSetBackAllIsRenewedAtOnce) {
  DiffRules rules = kRules;
  rules.has_expiry = true;
  Published published;
  Diff(published, Wanted(), rules);
  rules.now_s -= 600;

  EXPECT_THAT(Kinds(Diff(published, Wanted(), rules)), Contains(Change::Kind::kRefresh));
  rules.now_s += 39;
  EXPECT_THAT(Diff(published, Wanted(), rules), IsEmpty());
}

TEST(Differ, AServerThatForgetsIsToldHowLongToKeep) {
  DiffRules rules = kRules;
  rules.has_expiry = true;
  Published published;

  const std::vector<Change> changes = Diff(published, Wanted(), rules);

  EXPECT_THAT(Kinds(changes), ElementsAre(Change::Kind::kAdd, Change::Kind::kRefresh));
  EXPECT_THAT(changes, SizeIs(2 * Wanted().size()));
  EXPECT_EQ(changes.back().ttl_s, 120);
}

TEST(Differ, WhatIsTooMuchGoesChildrenFirst) {
  Published published;
  Diff(published, Wanted(), kRules);

  const std::vector<Change> changes = Diff(published, {}, Later(1));

  size_t depth = 99;
  for (const Change& change : changes) {
    EXPECT_EQ(change.kind, Change::Kind::kDelete);
    EXPECT_LE(glue::ParseDn(change.dn)->size(), depth);
    depth = glue::ParseDn(change.dn)->size();
  }
  EXPECT_THAT(published, IsEmpty());
}

TEST(Differ, OfASilentSiteNothingIsRemovedAndTheInsideIsNotRenewed) {
  Published published;
  Diff(published, Wanted(), kRules);
  DiffRules rules = Later(50);
  rules.removes = false;
  const auto door = MakeEntries(TestProfile(), TestState(), {.is_connected = false, .info = "no answer"}, kTestBase);

  for (const Change& change : Diff(published, door, rules)) {
    EXPECT_EQ(change.kind, Change::Kind::kModify);
    EXPECT_EQ(change.dn.find("GLUE2ShareID"), std::string::npos) << change.dn;
  }
  EXPECT_THAT(published, SizeIs(Wanted().size()));
  EXPECT_EQ(NextRenewal(published, rules), rules.now_s + rules.renew_after_s) << "of what is left to age";
}

TEST(Differ, WhatHasAgedIsMadeAnewWhenTheSiteSpeaksAgain) {
  Published published;
  Diff(published, Wanted(), kRules);
  DiffRules silent = Later(130);
  silent.removes = false;
  const auto door = MakeEntries(TestProfile(), TestState(), {.is_connected = false}, kTestBase);
  Diff(published, door, silent);

  const std::vector<Change> changes = Diff(published, Wanted(), Later(140));

  EXPECT_EQ(std::count_if(changes.begin(), changes.end(), [](const Change& one) { return one.kind == Change::Kind::kAdd; }),
            static_cast<std::ptrdiff_t>(Wanted().size() - door.size()));
}

TEST(Differ, AnAttributeThatIsNoLongerSaidGoes) {
  Published published;
  Diff(published, Wanted(), kRules);
  std::vector<glue::Entry> wanted = Wanted();
  wanted[0].attributes.erase("GLUE2DomainDescription");

  const std::vector<Change> changes = Diff(published, wanted, Later(1));

  ASSERT_THAT(changes, SizeIs(1));
  EXPECT_THAT(changes[0].attributes.at("GLUE2DomainDescription"), IsEmpty());
}

TEST(Differ, WhatAServerSaysInAnotherOrderOrSpellingIsNoDifference) {
  Published published;
  Diff(published, Wanted(), kRules);
  Published read;
  for (auto& [name, known] : published) {
    for (auto& [attribute, values] : known.entry.attributes) {
      std::reverse(values.begin(), values.end());
    }
    known.entry.dn = "GLUE2" + known.entry.dn.substr(5);
    read[glue::CanonicalDn(known.entry.dn)] = known;
  }

  EXPECT_THAT(Diff(read, Wanted(), Later(1)), IsEmpty());
}

}  // namespace
}  // namespace sekisho::directory
