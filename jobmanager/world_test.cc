// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/world.h"

#include <functional>

#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::jobmanager {
namespace {

// Two ranks on two nodes at siteA, two on one node at siteB.
class WorldTest : public testing::Test {
 protected:
  WorldTest() {
    world_.OnSubmitted(0, "joba");
    world_.OnSubmitted(1, "jobb");
  }
  static proto::Report Ready(std::vector<int> processes) {
    proto::Report report;
    report.mutable_ready()->set_adds_own(true);
    for (const int count : processes) {
      report.mutable_ready()->add_placement()->set_processes(count);
    }
    return report;
  }
  static proto::Report Fence(const std::string& id, const std::string& data) {
    proto::Report report;
    report.mutable_fence()->set_id(id);
    report.mutable_fence()->set_data(data);
    return report;
  }
  static proto::Report Ended(proto::JobState state, const std::string& reason = "") {
    proto::Report report;
    report.mutable_ended()->set_state(state);
    report.mutable_ended()->set_reason(reason);
    return report;
  }
  static proto::Report Failed(int rank, int signal) {
    proto::Report report;
    report.mutable_failed()->set_rank(rank);
    report.mutable_failed()->set_node("b-n1");
    report.mutable_failed()->mutable_exit()->set_signal(signal);
    return report;
  }
  void Run() {
    world_.OnReport(0, Ready({1, 1}));
    world_.OnReport(1, Ready({2}));
    world_.Release();
  }
  World world_{"world-1", {{"siteA", 2}, {"siteB", 2}}};
};

TEST(ProcessMapping, JoinsNodesWithAsManyRanks) {
  EXPECT_EQ(ProcessMapping({0, 0, 1, 1, 2}), "(vector,(0,2,2),(2,1,1))");
  EXPECT_EQ(ProcessMapping({0}), "(vector,(0,1,1))");
  EXPECT_EQ(ProcessMapping({2, 0, 3, 1}), "(vector,(2,1,1),(0,1,1),(3,1,1),(1,1,1))");
  EXPECT_EQ(ProcessMapping({1, 0, 1, 0, 1, 1}), "(vector,(1,1,1),(0,2,1),(0,1,1),(1,1,2))");
}

TEST_F(WorldTest, IsReleasedOnceAllPartsStandReady) {
  EXPECT_FALSE(world_.OnReport(0, Ready({1, 1})).is_release_due);
  EXPECT_TRUE(world_.OnReport(1, Ready({2})).is_release_due);

  const World::Effects effects = world_.Release();

  ASSERT_EQ(effects.orders.size(), 2u);
  EXPECT_EQ(effects.orders[1].second.job_id(), "jobb");
  EXPECT_EQ(effects.orders[1].second.release().process_mapping(), "(vector,(0,2,1),(2,1,2))");
  EXPECT_TRUE(effects.updates[0].has_released());
}

TEST_F(WorldTest, CountsNoNodeThatHasNoRank) {
  world_.OnReport(0, Ready({1, 0, 1}));
  EXPECT_TRUE(world_.OnReport(1, Ready({2})).is_release_due);

  EXPECT_EQ(world_.Release().orders[1].second.release().process_mapping(), "(vector,(0,2,1),(2,1,2))");
}

TEST_F(WorldTest, TellsWhichRanksShareANodeWhateverTheirOrder) {
  World world("world-1", {{.site = "siteA", .count = 2, .ranks = {3, 0}}, {.site = "siteB", .count = 2, .ranks = {1, 2}}});
  world.OnSubmitted(0, "joba");
  world.OnSubmitted(1, "jobb");
  world.OnReport(0, Ready({1, 1}));
  EXPECT_TRUE(world.OnReport(1, Ready({2})).is_release_due);

  EXPECT_EQ(world.Release().orders[0].second.release().process_mapping(),
            "(vector,(1,1,1),(2,1,2),(0,1,1))");
}

TEST_F(WorldTest, WithAnOrderThatPmiCannotSayIsNotReleased) {
  std::vector<int> odd, even;
  for (int rank = 0; rank < 400; ++rank) {
    (rank % 2 == 0 ? even : odd).push_back(rank);
  }
  World world("world-1", {{.site = "siteA", .count = 200, .ranks = odd}, {.site = "siteB", .count = 200, .ranks = even}});
  world.OnSubmitted(0, "joba");
  world.OnSubmitted(1, "jobb");
  world.OnReport(0, Ready({200}));

  const World::Effects effects = world.OnReport(1, Ready({200}));

  EXPECT_FALSE(effects.is_release_due);
  ASSERT_EQ(effects.orders.size(), 2u);
  EXPECT_TRUE(effects.orders[0].second.has_cancel());
}

TEST_F(WorldTest, IsReleasedAgainForAPartThatMissedIt) {
  Run();

  EXPECT_TRUE(world_.OnConnected(1).orders[0].second.has_release());
}

TEST(World, ACollectiveCostsAnOrderAPartHoweverManyRanksThatHas) {
  for (const int ranks : {2, 200}) {
    World world("world-1", {{"siteA", ranks}, {"siteB", ranks}, {"siteC", ranks}});
    for (int part = 0; part < 3; ++part) {
      world.OnSubmitted(part, "job");
      proto::Report ready;
      ready.mutable_ready()->set_adds_own(true);
      for (int node = 0; node < ranks; ++node) {
        ready.mutable_ready()->add_placement()->set_processes(1);
      }
      world.OnReport(part, ready);
    }
    EXPECT_EQ(world.Release().orders.size(), 3u);
    size_t orders = 0;
    for (int part = 0; part < 3; ++part) {
      proto::Report given;
      given.mutable_fence()->set_id("pmi 0");
      given.mutable_fence()->set_data("x");
      orders += world.OnReport(part, given).orders.size();
    }
    EXPECT_EQ(orders, 3u) << ranks << " ranks a part";
  }
}

TEST_F(WorldTest, JoinsWhatThePartsGive) {
  Run();

  const World::Effects early = world_.OnReport(1, Fence("pmi 0", "b\n"));
  const World::Effects late = world_.OnReport(0, Fence("pmi 0", "a\n"));

  ASSERT_EQ(early.orders.size(), 1u) << "part 0 waits for nobody else";
  EXPECT_EQ(early.orders[0].first, 0);
  EXPECT_EQ(early.orders[0].second.fence().data(), "b\n");
  ASSERT_EQ(late.orders.size(), 1u);
  EXPECT_EQ(late.orders[0].first, 1);
  EXPECT_EQ(late.orders[0].second.fence().id(), "pmi 0");
  EXPECT_EQ(late.orders[0].second.fence().data(), "a\n");
}

TEST_F(WorldTest, DifferentVersionsOfMpiAreToldOnce) {
  Run();
  const std::string here = "sekisho-mpi-0=MPICH Version:      4.0.2\n";
  EXPECT_TRUE(world_.OnReport(0, Fence("pmi 0", here)).updates.empty());

  const World::Effects effects = world_.OnReport(1, Fence("pmi 0", "a=b\nsekisho-mpi-2=MPICH Version: 4.1\n"));

  ASSERT_EQ(effects.updates.size(), 1u);
  EXPECT_EQ(effects.updates[0].warning().text(), "the sites run different versions of MPI: siteA MPICH 4.0.2, siteB MPICH 4.1");
  world_.OnReport(0, Fence("pmi 1", here));
  EXPECT_TRUE(world_.OnReport(1, Fence("pmi 1", "")).updates.empty());
}

TEST_F(WorldTest, OfTheSameVersionNothingIsTold) {
  Run();
  world_.OnReport(0, Fence("pmi 0", "sekisho-mpi-0=MPICH Version:      4.0.2\n"));

  EXPECT_TRUE(world_.OnReport(1, Fence("pmi 0", "sekisho-mpi-2=MPICH Version:      4.0.2\n")).updates.empty());
}

TEST_F(WorldTest, AnOlderPartIsToldTheWhole) {
  proto::Report old = Ready({1, 1});
  old.mutable_ready()->set_adds_own(false);
  world_.OnReport(0, old);
  world_.OnReport(1, Ready({2}));
  world_.Release();

  EXPECT_TRUE(world_.OnReport(1, Fence("pmi 0", "b\n")).orders.empty());
  const World::Effects effects = world_.OnReport(0, Fence("pmi 0", "a\n"));

  ASSERT_EQ(effects.orders.size(), 2u);
  EXPECT_EQ(effects.orders[0].second.fence().data(), "a\nb\n");
  EXPECT_EQ(effects.orders[1].second.fence().data(), "a\n");
}

TEST_F(WorldTest, APartThatIsThereAgainIsToldAgainWhatTheOthersGave) {
  Run();
  world_.OnReport(0, Fence("pmi 0", "a\n"));
  EXPECT_TRUE(world_.OnReport(0, Fence("pmi 0", "a\n")).orders.empty()) << "it has been told";

  world_.OnConnected(1);

  const World::Effects again = world_.OnReport(1, Fence("pmi 0", "b\n"));
  ASSERT_EQ(again.orders.size(), 2u);
  EXPECT_EQ(again.orders[0].second.fence().data(), "b\n");
  EXPECT_EQ(again.orders[1].second.fence().data(), "a\n");
}

TEST_F(WorldTest, OfThreePartsEachIsToldOnceTheOtherTwoHaveGiven) {
  World three("world-1", {{"siteA", 1}, {"siteB", 1}, {"siteC", 1}});
  for (int part = 0; part < 3; ++part) {
    three.OnSubmitted(part, "job");
    three.OnReport(part, Ready({1}));
  }
  three.Release();

  EXPECT_TRUE(three.OnReport(2, Fence("pmi 0", "c")).orders.empty());
  const World::Effects two = three.OnReport(0, Fence("pmi 0", "a"));
  ASSERT_EQ(two.orders.size(), 1u);
  EXPECT_EQ(two.orders[0].first, 1);
  EXPECT_EQ(two.orders[0].second.fence().data(), "ac");
  EXPECT_EQ(three.OnReport(1, Fence("pmi 0", "b")).orders.size(), 2u);
}

TEST_F(WorldTest, EndsWhenAllPartsHave) {
  Run();
  EXPECT_TRUE(world_.OnReport(0, Ended(proto::DONE)).updates.empty());

  EXPECT_EQ(world_.OnReport(1, Ended(proto::DONE)).updates[0].ended().state(), proto::DONE);
  EXPECT_TRUE(world_.has_ended());
}

TEST_F(WorldTest, ARankThatDiesEndsTheOthersAndIsNamed) {
  Run();

  const World::Effects effects = world_.OnReport(1, Failed(3, 9));

  ASSERT_EQ(effects.orders.size(), 1u);
  EXPECT_EQ(effects.orders[0].first, 0);
  EXPECT_EQ(effects.orders[0].second.cancel().reason(),
            "rank 3 on b-n1 at siteB was killed by signal 9");
  world_.OnReport(1, Ended(proto::FAILED, "task 1 was killed"));
  world_.OnReport(0, Ended(proto::CANCELLED));
  EXPECT_EQ(world_.end().reason(), "rank 3 on b-n1 at siteB was killed by signal 9");
  EXPECT_EQ(world_.end().exit().signal(), 9);
}

TEST_F(WorldTest, APartThatIsRefusedEndsTheOthersBeforeAnyIsReleased) {
  World world("world-1", {{"siteA", 2}, {"siteB", 2}});
  world.OnSubmitted(0, "joba");
  world.OnReport(0, Ready({2}));

  const World::Effects effects = world.OnRefused(
      1, Refuse(absl::StatusCode::kNotFound, 5, "executable x: not there", "stage it"));

  ASSERT_EQ(effects.orders.size(), 1u);
  EXPECT_TRUE(effects.orders[0].second.has_cancel());
  EXPECT_TRUE(world.Release().orders.empty());
  EXPECT_TRUE(world.OnReport(0, Ended(proto::CANCELLED)).updates[0].has_ended());
  EXPECT_EQ(world.end().reason(), "part 1 at siteB was refused: executable x: not there");
  EXPECT_EQ(world.end().gram_code(), 5);
}

TEST_F(WorldTest, APartIsNamedByItsLabelToo) {
  const std::vector<World::Part> parts = {{"siteA", 2}, {.site = "siteB", .count = 2, .label = "back"}};
  World late("world-1", parts);
  World refused("world-1", parts);
  World ended("world-1", parts);
  for (World* world : {&late, &refused, &ended}) {
    world->OnSubmitted(0, "joba");
    world->OnReport(0, Ready({2}));
  }
  const auto told = [](const World::Effects& effects) { return effects.orders.at(0).second.cancel().reason(); };

  EXPECT_EQ(told(late.OnLate(300)),
            "part 1 (back) at siteB does not stand ready within 300 s: its gatekeeper has not answered yet");
  EXPECT_EQ(told(refused.OnRefused(1, absl::PermissionDeniedError("not here"))), "part 1 (back) at siteB was refused: not here");
  EXPECT_EQ(told(ended.OnReport(1, Ended(proto::FAILED, "no room"))), "part 1 (back) at siteB ended: no room");
}

TEST_F(WorldTest, APartThatIsLateEndsAll) {
  world_.OnReport(0, Ready({1, 1}));
  proto::Report waiting;
  waiting.mutable_waiting()->set_reason("waits for 2 more processors");
  world_.OnReport(1, waiting);

  const World::Effects effects = world_.OnLate(300);

  EXPECT_EQ(effects.orders.size(), 2u);
  EXPECT_EQ(effects.orders[0].second.cancel().reason(),
            "part 1 at siteB does not stand ready within 300 s: waits for 2 more processors");
}

TEST_F(WorldTest, APartThatIsLateSaysHowFarItHasCome) {
  const auto why_of = [](World world, const std::function<void(World&)>& befalls) {
    world.OnSubmitted(0, "joba");
    world.OnReport(0, Ready({2}));
    befalls(world);
    return world.OnLate(300).orders[0].second.cancel().reason();
  };
  const World fresh("world-1", {{"siteA", 2}, {"siteB", 2}});
  const std::string late = "part 1 at siteB does not stand ready within 300 s: ";

  EXPECT_EQ(why_of(fresh, [](World&) {}), late + "its gatekeeper has not answered yet");
  EXPECT_EQ(why_of(fresh, [](World& world) { world.OnTrouble(1, "the pinhole is closed"); }),
            late + "the pinhole is closed");
  EXPECT_EQ(why_of(fresh,
                   [](World& world) {
                     world.OnTrouble(1, "the pinhole is closed");
                     world.OnSubmitted(1, "jobb");
                   }),
            late + "its queue server has it, and its nodes have not made all of its ranks yet");
}

TEST_F(WorldTest, ASiteThatFallsSilentEndsTheOthersAndIsToldLater) {
  Run();

  EXPECT_EQ(world_.OnLost(1, 15, "the line is dead").orders[0].second.cancel().reason(), "no word from siteB for 15 s: the line is dead");
  EXPECT_TRUE(world_.OnReport(0, Ended(proto::CANCELLED)).updates[0].has_ended());

  EXPECT_EQ(world_.end().reason(), "no word from siteB for 15 s: the line is dead");
  EXPECT_TRUE(world_.OnConnected(1).orders[0].second.has_cancel());
}

TEST_F(WorldTest, CancelsAPartThatWasOutOfReachWhenItFailed) {
  Run();
  world_.OnReport(1, Failed(2, 11));

  EXPECT_TRUE(world_.OnConnected(0).orders[0].second.has_cancel());
}

// Three parts of two ranks each, on a node of its own; the second's start type is the test's.
class StartTypeTest : public WorldTest {
 protected:
  StartTypeTest() {
    for (World* world : {&loose_, &alone_}) {
      for (int part = 0; part < 3; ++part) {
        world->OnSubmitted(part, "job" + std::to_string(part));
      }
    }
  }
  static std::vector<World::Part> Parts(World::StartType second) {
    return {{"siteA", 2}, {"siteB", 2, second}, {"siteC", 2}};
  }
  World loose_{"world-1", Parts(proto::Charter::LOOSE_BARRIER)};
  World alone_{"world-1", Parts(proto::Charter::NO_BARRIER)};
};

TEST_F(StartTypeTest, ALoosePartThatFailsIsDroppedAndTheOthersAreNumberedWithoutIt) {
  loose_.OnReport(0, Ready({2}));
  loose_.OnReport(2, Ready({2}));

  const World::Effects effects = loose_.OnReport(1, Ended(proto::FAILED, "executable x: not there"));

  EXPECT_EQ(effects.updates[0].dropped().reason(), "part 1 at siteB ended: executable x: not there");
  EXPECT_TRUE(effects.is_release_due);
  const World::Effects released = loose_.Release();
  ASSERT_EQ(released.orders.size(), 2u);
  EXPECT_EQ(released.orders[1].first, 2);
  EXPECT_EQ(released.orders[1].second.release().first_rank(), 2);
  EXPECT_EQ(released.orders[1].second.release().ranks(), 4);
  EXPECT_EQ(released.orders[1].second.release().process_mapping(), "(vector,(0,2,2))");
  EXPECT_EQ(released.updates[0].released().first_rank(1), -1);
}

TEST_F(StartTypeTest, ALoosePartThatIsLateIsCancelledAndTheOthersRun) {
  loose_.OnReport(0, Ready({2}));
  loose_.OnReport(2, Ready({2}));

  const World::Effects effects = loose_.OnLate(60);

  ASSERT_EQ(effects.orders.size(), 1u);
  EXPECT_EQ(effects.orders[0].first, 1);
  EXPECT_EQ(effects.orders[0].second.cancel().reason(),
            "part 1 at siteB does not stand ready within 60 s: "
            "its queue server has it, and its nodes have not made all of its ranks yet");
  EXPECT_TRUE(effects.is_release_due);
}

TEST_F(StartTypeTest, AStrictPartThatIsRefusedEndsALooseOneToo) {
  loose_.OnReport(1, Ready({2}));

  const World::Effects effects = loose_.OnRefused(2, absl::PermissionDeniedError("not here"));

  EXPECT_EQ(effects.orders.size(), 2u);
  EXPECT_TRUE(effects.orders[1].second.has_cancel());
}

TEST_F(StartTypeTest, ALoosePartThatFailsAfterTheReleaseEndsAll) {
  for (int part = 0; part < 3; ++part) {
    loose_.OnReport(part, Ready({2}));
  }
  loose_.Release();

  EXPECT_EQ(loose_.OnReport(1, Failed(2, 9)).orders.size(), 2u);
}

TEST_F(StartTypeTest, AfterACrashALeaderKnowsWhatWasDropped) {
  World world("world-1", Parts(proto::Charter::LOOSE_BARRIER), {1});
  world.Release();
  for (int part = 0; part < 3; ++part) {
    world.OnSubmitted(part, "job" + std::to_string(part));
  }
  world.OnReport(0, Ready({2}));

  const World::Effects effects = world.OnReport(2, Ready({2}));

  ASSERT_EQ(effects.orders.size(), 3u);
  EXPECT_TRUE(effects.orders[0].second.has_release());
  EXPECT_TRUE(effects.orders[1].second.has_cancel());
  EXPECT_EQ(effects.orders[2].second.release().ranks(), 4);
}

TEST_F(StartTypeTest, APartWithoutBarrierIsAWorldOfItsOwnAndRunsAtOnce) {
  const World::Effects effects = alone_.OnReport(1, Ready({1, 1}));

  ASSERT_EQ(effects.orders.size(), 1u);
  EXPECT_EQ(effects.orders[0].second.release().ranks(), 2);
  EXPECT_EQ(effects.orders[0].second.release().process_mapping(), "(vector,(0,2,1))");
  EXPECT_EQ(alone_.OnReport(1, Fence("pmi 0", "b\n")).orders[0].second.fence().id(), "pmi 0");
  alone_.OnReport(0, Ready({2}));
  EXPECT_TRUE(alone_.OnReport(2, Ready({2})).is_release_due);
  const World::Effects released = alone_.Release();
  EXPECT_EQ(released.orders[2].second.release().ranks(), 4);
  EXPECT_EQ(released.orders[2].second.release().first_rank(), 2);
}

TEST_F(StartTypeTest, WhatBefallsAPartWithoutBarrierIsToldAndNothingToTheOthers) {
  alone_.OnReport(1, Ready({2}));

  const World::Effects effects = alone_.OnReport(1, Failed(0, 9));

  EXPECT_TRUE(effects.orders.empty());
  EXPECT_EQ(effects.updates[0].dropped().part(), 1);
  alone_.OnReport(1, Ended(proto::FAILED));
  alone_.OnReport(0, Ready({2}));
  EXPECT_TRUE(alone_.OnReport(2, Ready({2})).is_release_due);
  alone_.Release();
  alone_.OnReport(0, Ended(proto::DONE));
  EXPECT_EQ(alone_.OnReport(2, Ended(proto::DONE)).updates[0].ended().state(), proto::DONE);
}

// Three parts, of which the second is no part of the one MPI_COMM_WORLD.
class IndependentTest : public WorldTest {
 protected:
  IndependentTest() {
    for (int part = 0; part < 3; ++part) {
      parts_.OnSubmitted(part, "job" + std::to_string(part));
    }
  }
  World::Effects StandReady() {
    parts_.OnReport(0, Ready({2}));
    parts_.OnReport(2, Ready({2}));
    return parts_.OnReport(1, Ready({1}));
  }
  World parts_{"world-1", {{"siteA", 2}, {.site = "siteB", .count = 1, .is_independent = true}, {"siteC", 2}}};
};

TEST_F(IndependentTest, IsAwaitedAndReleasedWithTheOthersAndIsAWorldOfItsOwn) {
  EXPECT_FALSE(parts_.OnReport(0, Ready({2})).is_release_due);
  EXPECT_FALSE(parts_.OnReport(2, Ready({2})).is_release_due);
  const World::Effects ready = parts_.OnReport(1, Ready({1}));
  EXPECT_TRUE(ready.orders.empty());
  EXPECT_TRUE(ready.is_release_due);

  const World::Effects released = parts_.Release();

  ASSERT_EQ(released.orders.size(), 3u);
  EXPECT_EQ(released.orders[0].second.release().ranks(), 4);
  EXPECT_EQ(released.orders[1].second.release().ranks(), 1);
  EXPECT_EQ(released.orders[1].second.release().first_rank(), 0);
  EXPECT_EQ(released.orders[2].second.release().first_rank(), 2);
  EXPECT_EQ(released.updates[0].released().first_rank(1), -1);
  EXPECT_EQ(parts_.OnReport(1, Fence("pmi 0", "b\n")).orders.size(), 1u) << "its collectives are its own";
}

TEST_F(IndependentTest, ThatFailsBeforeTheReleaseEndsAllAsItsStartTypeSays) {
  parts_.OnReport(0, Ready({2}));

  EXPECT_EQ(parts_.OnReport(1, Ended(proto::FAILED, "executable x: not there")).orders.size(), 2u);
}

TEST_F(IndependentTest, ThatFailsAfterTheReleaseOrIsLostIsNothingToTheOthers) {
  StandReady();
  parts_.Release();
  World lost = parts_;

  const World::Effects failed = parts_.OnReport(1, Failed(0, 9));
  const World::Effects silent = lost.OnLost(1, 10, "");

  for (const World::Effects* effects : {&failed, &silent}) {
    EXPECT_TRUE(effects->orders.empty());
    ASSERT_EQ(effects->updates.size(), 1u);
    EXPECT_EQ(effects->updates[0].dropped().part(), 1);
  }
  parts_.OnReport(1, Ended(proto::FAILED));
  parts_.OnReport(0, Ended(proto::DONE));
  EXPECT_TRUE(parts_.OnReport(2, Ended(proto::DONE)).updates[0].has_ended());
  EXPECT_EQ(parts_.end().state(), proto::DONE);
}

TEST_F(IndependentTest, IsEndedIfTheOthersFail) {
  StandReady();
  parts_.Release();

  EXPECT_EQ(parts_.OnReport(0, Failed(0, 9)).orders.size(), 2u);
}

TEST_F(StartTypeTest, NothingIsLeftToRunOnceEveryPartWasDropped) {
  World world("world-1", {{"siteA", 2, proto::Charter::LOOSE_BARRIER}});
  world.OnSubmitted(0, "joba");

  EXPECT_EQ(world.OnReport(0, Ended(proto::FAILED, "no room")).updates[1].ended().reason(),
            "part 0 at siteA ended: no room");
}

}  // namespace
}  // namespace sekisho::jobmanager
