// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "common/refusal.h"
#include "jobmanager/world.h"

namespace sekisho::jobmanager {
namespace {

using absl::StatusCode;

// Two parts of two ranks, each on a node of its own, that its user holds.
class HeldWorldTest : public testing::Test {
 protected:
  HeldWorldTest() {
    for (int part = 0; part < 2; ++part) {
      world_.OnSubmitted(part, "job" + std::to_string(part));
    }
  }
  static proto::Report Ready(int ranks) {
    proto::Report report;
    report.mutable_ready()->add_placement()->set_processes(ranks);
    return report;
  }
  static proto::Report Cancelled() {
    proto::Report report;
    report.mutable_ended()->set_state(proto::CANCELLED);
    report.mutable_ended()->set_reason("cancelled");
    return report;
  }
  World::Effects AllReady() {
    World::Effects last;
    for (int part = 0; part < world_.View().part_size(); ++part) {
      world_.OnSubmitted(part, "job" + std::to_string(part));
      last = world_.OnReport(part, Ready(world_.View().part(part).count()));
    }
    return last;
  }
  World world_{"world-1", {{"siteA", 2}, {"siteB", 2}}, {}, World::Hold::kHeld};
};

TEST_F(HeldWorldTest, WaitsForItsUser) {
  EXPECT_FALSE(AllReady().is_release_due);

  EXPECT_TRUE(world_.EndHold(false)->is_release_due);
}

TEST_F(HeldWorldTest, IsReleasedOnceAllStandReadyIfItsUserAskedEarlier) {
  EXPECT_FALSE(world_.EndHold(false)->is_release_due);

  EXPECT_TRUE(AllReady().is_release_due);
}

TEST_F(HeldWorldTest, RefusesAReleaseAtOnceNamingThePartThatIsNotReady) {
  world_.OnReport(0, Ready(2));
  proto::Report waiting;
  waiting.mutable_waiting()->set_reason("waits for 2 processors");
  world_.OnReport(1, waiting);

  const auto refused = world_.EndHold(true);

  EXPECT_EQ(Message(refused.status()),
            "part 1 at siteB does not stand ready: waits for 2 processors");
  EXPECT_TRUE(world_.View().is_held());
  world_.OnReport(1, Ready(2));
  EXPECT_TRUE(world_.EndHold(true)->is_release_due);
}

TEST_F(HeldWorldTest, APartThatIsAddedHasTheLastRanks) {
  ASSERT_TRUE(world_.Add({"siteC", 3}).ok());
  AllReady();
  ASSERT_TRUE(world_.EndHold(false).ok());

  const World::Effects released = world_.Release();

  ASSERT_EQ(released.orders.size(), 3u);
  EXPECT_EQ(released.orders[2].second.release().first_rank(), 4);
  EXPECT_EQ(released.orders[0].second.release().ranks(), 7);
}

TEST_F(HeldWorldTest, APartThatReplacesAnotherHasItsPlace) {
  const auto replaced = world_.Add({"siteC", 3, proto::Charter::STRICT_BARRIER, 0});
  ASSERT_EQ(replaced->orders.size(), 1u);
  EXPECT_EQ(replaced->orders[0].second.cancel().reason(), "its user replaced it by part 2");
  world_.OnReport(0, Cancelled());
  world_.OnSubmitted(2, "job2");
  world_.OnReport(1, Ready(2));
  world_.OnReport(2, Ready(3));
  ASSERT_TRUE(world_.EndHold(false).ok());

  const World::Effects released = world_.Release();

  ASSERT_EQ(released.orders.size(), 2u);
  EXPECT_EQ(released.orders[0].second.release().first_rank(), 3);  // siteB's
  EXPECT_EQ(released.orders[1].second.release().first_rank(), 0);
  EXPECT_EQ(released.orders[1].second.release().process_mapping(), "(vector,(0,1,3),(1,1,2))");
}

TEST_F(HeldWorldTest, APartThatIsDroppedIsCancelledAndItsEndIsNothingToTheOthers) {
  AllReady();

  const auto dropped = world_.Drop(1);

  ASSERT_EQ(dropped->orders.size(), 1u);
  EXPECT_EQ(dropped->orders[0].second.cancel().reason(), "its user dropped it");
  EXPECT_TRUE(world_.OnReport(1, Cancelled()).orders.empty());
  EXPECT_TRUE(world_.EndHold(true)->is_release_due);
  EXPECT_EQ(world_.Release().orders[0].second.release().ranks(), 2);
}

TEST_F(HeldWorldTest, APartThatIsDroppedBeforeItsSiteHasItIsCancelledOnceItHas) {
  ASSERT_TRUE(world_.Add({"siteC", 3}).ok());
  EXPECT_TRUE(world_.Drop(2)->orders.empty());

  world_.OnSubmitted(2, "job2");

  EXPECT_TRUE(world_.OnConnected(2).orders[0].second.has_cancel());
}

TEST_F(HeldWorldTest, ShowsAndSaysTheLabelOfAPart) {
  World world("world-1", {{"siteA", 2}, {.site = "siteB", .count = 2, .label = "back"}}, {}, World::Hold::kHeld);
  EXPECT_EQ(world.View().part(0).label(), "");
  EXPECT_EQ(world.View().part(1).label(), "back");
  world.OnReport(0, Ready(2));
  EXPECT_EQ(Message(world.EndHold(true).status()),
            "part 1 (back) at siteB does not stand ready: its gatekeeper has not answered yet");

  ASSERT_TRUE(world.Add({.site = "siteC", .count = 2, .replaces = 1, .label = "back"}).ok());

  EXPECT_EQ(world.View().part(1).reason(), "its user replaced it by part 2 (back)");
  EXPECT_EQ(world.View().part(2).label(), "back");
}

TEST_F(HeldWorldTest, KeepsItsLastPart) {
  ASSERT_TRUE(world_.Drop(0).ok());

  EXPECT_EQ(Message(world_.Drop(1).status()), "it is the last part of world-1");
  EXPECT_EQ(world_.Drop(0).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(world_.Drop(7).status().code(), StatusCode::kNotFound);
  EXPECT_EQ(world_.Add({"siteC", 1, proto::Charter::STRICT_BARRIER, 9}).status().code(),
            StatusCode::kNotFound);
}

TEST_F(HeldWorldTest, IsFrozenFromItsUsersReleaseOn) {
  ASSERT_TRUE(world_.EndHold(false).ok());
  EXPECT_NE(Message(world_.Drop(1).status()).find("the release of world-1 has been asked for"),
            std::string::npos);
  AllReady();
  world_.Release();

  EXPECT_EQ(Message(world_.Add({"siteC", 1}).status()),
            "the ranks of world-1 have been released: its parts are frozen");
  EXPECT_FALSE(world_.EndHold(false).ok());
}

TEST_F(HeldWorldTest, EndsIfItsUserDoesNotReleaseItInTime) {
  AllReady();

  const World::Effects effects = world_.OnLate(60);

  EXPECT_EQ(effects.orders[0].second.cancel().reason(), "its user has not released it within 60 s");
  EXPECT_EQ(world_.Drop(1).status().code(), StatusCode::kFailedPrecondition);
}

TEST_F(HeldWorldTest, AStrictPartThatFailsEndsItAlsoWhileItIsHeld) {
  EXPECT_EQ(world_.OnReport(1, Cancelled()).orders.size(), 1u);
}

TEST_F(HeldWorldTest, APartThatFailedMayBeReplacedIfItIsLoose) {
  World world("world-1", {{"siteA", 2}, {"siteB", 2, proto::Charter::LOOSE_BARRIER}}, {},
              World::Hold::kHeld);
  world.OnSubmitted(1, "job1");
  world.OnReport(1, Cancelled());

  ASSERT_TRUE(world.Add({"siteC", 2, proto::Charter::STRICT_BARRIER, 1}).ok());

  EXPECT_EQ(world.View().part(1).state(), proto::CoallocReply::DROPPED);
  EXPECT_EQ(world.View().part(2).first_rank(), 2);
}

TEST_F(HeldWorldTest, AfterACrashALeaderKnowsItsEdits) {
  World world("world-1",
              {{"siteA", 2}, {"siteB", 2}, {"siteC", 3, proto::Charter::STRICT_BARRIER, 0}}, {0},
              World::Hold::kOver);
  world.OnSubmitted(0, "job0");
  world.OnReport(0, Cancelled());
  world.OnSubmitted(1, "job1");
  world.OnReport(1, Ready(2));
  world.OnSubmitted(2, "job2");

  EXPECT_TRUE(world.OnReport(2, Ready(3)).is_release_due);
  EXPECT_EQ(world.View().part(1).first_rank(), 3);
}

TEST(World, IsNotEditedUnlessItWasHeld) {
  World world("world-1", {{"siteA", 2}, {"siteB", 2}});

  EXPECT_EQ(Message(world.Drop(1).status()),
            "world-1 was not begun with --hold: its parts cannot be edited");
}

TEST_F(HeldWorldTest, IsCancelledByItsUser) {
  const World::Effects effects = world_.Cancel();

  EXPECT_EQ(effects.orders.size(), 2u);
  world_.OnReport(0, Cancelled());
  EXPECT_EQ(world_.OnReport(1, Cancelled()).updates[0].ended().state(), proto::CANCELLED);
}

}  // namespace
}  // namespace sekisho::jobmanager
