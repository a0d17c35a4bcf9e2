// SPDX-License-Identifier: Apache-2.0
#include "allocator/plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::allocator {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kNow = 1'000'000;

class PlanTest : public ::testing::Test {
 protected:
  PlanTest() {
    inventory_ = *ParseInventory(R"({"resource": [
      {"name": "A", "procs": 2, "nodes": ["a1", "a2"], "clock": 200, "architecture": "x86_64",
       "memory": 1000, "queues": ["long"]},
      {"name": "B", "procs": 4, "nodes": ["b1"], "clock": 100, "tags": ["gpu"]}]})",
                                 "F");
    request_.set_now_ms(kNow);
    for (const char* node : {"a1", "a2", "b1"}) {
      proto::NodeState& state = *request_.add_node();
      state.set_name(node);
      state.set_is_up(true);
    }
  }

  proto::Demand& Ask(const std::string& job, int processes, int64_t wall_time_s = 0) {
    proto::Demand& demand = *request_.add_pending();
    demand.set_job_id(job);
    demand.set_processes(processes);
    demand.set_wall_time_s(wall_time_s);
    return demand;
  }
  void Require(proto::Demand& demand, const char* attribute, const char* op, const char* value) {
    proto::Demand::Condition& condition = *demand.add_condition();
    condition.set_attribute(attribute);
    condition.set_op(op);
    condition.add_value(value);
  }
  void Run(const std::string& node, int processes, int64_t ends_ms) {
    proto::Lease& lease = *request_.add_running();
    lease.set_resource(node.substr(0, 1) == "a" ? "A" : "B");
    lease.set_ends_ms(ends_ms);
    proto::Placement& placement = *lease.add_placement();
    placement.set_node(node);
    placement.set_processes(processes);
  }
  std::vector<std::string> Decisions(const char* policy = "paper") {
    std::vector<std::string> lines;
    const proto::DecideReply reply = Decide(inventory_, *FindPolicy(policy), request_);
    for (const proto::Decision& decision : reply.decision()) {
      std::string line = decision.has_wait()
                             ? decision.wait().resource() + ": " + decision.wait().reason()
                         : decision.has_never() ? "never: " + decision.never().reason()
                                                : decision.start().resource();
      for (const proto::Placement& placement : decision.start().placement()) {
        line += " " + placement.node() + "*" + std::to_string(placement.processes());
      }
      lines.push_back(line);
    }
    return lines;
  }

  Inventory inventory_;
  proto::DecideRequest request_;
};

TEST_F(PlanTest, StartsAJobWhereThePolicySays) {
  Ask("j1", 2);
  Ask("j2", 3);

  EXPECT_THAT(Decisions(), ::testing::ElementsAre("A a1*2", "B b1*3"));
}

TEST_F(PlanTest, SaysCoarselyHowManyAreAhead) {
  Run("a1", 2, 0);
  Run("a2", 2, 0);
  for (int i = 0; i < 33; ++i) {
    Ask("j" + std::to_string(i), 1).set_resource("A");
  }

  const std::vector<std::string> lines = Decisions();

  EXPECT_THAT(lines[3], HasSubstr("; 3 jobs ahead"));
  EXPECT_THAT(lines[4], HasSubstr("; more than 3 jobs ahead"));
  EXPECT_EQ(lines[5], lines[10]);
  EXPECT_THAT(lines[11], HasSubstr("; more than 10 jobs ahead"));
  EXPECT_THAT(lines[32], HasSubstr("; more than 30 jobs ahead"));
}

TEST_F(PlanTest, StartsNothingOnADrainedNodeAndSaysSo) {
  request_.mutable_node(0)->set_is_drained(true);
  Ask("j1", 2);
  Ask("j2", 2).set_resource("A");

  EXPECT_THAT(Decisions(),
              ::testing::ElementsAre("A a2*2", "A: waits for 2 more processors on A; 1 of 2 nodes is drained"));
}

TEST_F(PlanTest, TellsWhatAJobWaitsFor) {
  Run("a1", 2, 0);
  Run("b1", 4, 0);
  Run("b1", 0, 0);
  Ask("j1", 4);
  Ask("j2", 4).set_resource("A");

  EXPECT_THAT(Decisions(),
              ::testing::ElementsAre("A: waits for 2 more processors on A",
                                     "A: waits for 2 more processors on A; 1 job ahead"));
}

TEST_F(PlanTest, KeepsAJobWhereItWasToldToWait) {
  Ask("j1", 2).set_resource("B");

  EXPECT_THAT(Decisions(), ::testing::ElementsAre("B b1*2"));
}

TEST_F(PlanTest, LetsAShortJobPassAHeadThatItCannotDelay) {
  Run("a1", 2, kNow + 100'000);
  Ask("head", 4, 1000).set_resource("A");
  Ask("short", 2, 100).set_resource("A");

  EXPECT_THAT(Decisions()[1], "A a2*2");
}

TEST_F(PlanTest, HoldsALongJobBackThatWouldDelayTheHead) {
  Run("a1", 2, kNow + 100'000);
  Ask("head", 4, 1000).set_resource("A");
  Ask("long", 2, 101).set_resource("A");

  EXPECT_THAT(Decisions()[1],
              HasSubstr("would fit on A now, but could delay job head; 1 job ahead"));
}

TEST_F(PlanTest, LetsALongJobUseWhatTheHeadLeaves) {
  Run("b1", 2, kNow + 100'000);
  Ask("head", 3).set_resource("B");
  Ask("long", 1).set_resource("B");
  Ask("longer", 1).set_resource("B");

  EXPECT_THAT(Decisions()[1], "B b1*1");
  EXPECT_THAT(Decisions()[2], HasSubstr("could delay job head"));
}

TEST_F(PlanTest, LetsOnlyJobsWithALimitPassAHeadWhoseStartNobodyKnows) {
  Run("b1", 2, 0);
  Ask("head", 3).set_resource("B");
  Ask("unlimited", 1).set_resource("B");
  Ask("limited", 1, 60).set_resource("B");

  EXPECT_THAT(Decisions()[1], HasSubstr("could delay job head"));
  EXPECT_THAT(Decisions()[2], "B b1*1");
}

TEST_F(PlanTest, RefusesWhatCanNeverRunAndSaysWhy) {
  Ask("j1", 5);
  Require(Ask("j2", 1), "arch", "=", "sparc");
  Require(Ask("j3", 3), "resource", "!=", "A");
  Ask("j4", 2).set_queue("short");
  Ask("j5", 4).set_host_count(3);
  Ask("j6", 1).set_host_count(2);
  Require(Ask("j7", 1), "memory", ">=", "lots");
  proto::Demand& j8 = Ask("j8", 1);
  Require(j8, "resource", "=", "A");
  Require(j8, "tags", "=", "gpu");

  const std::vector<std::string> lines = Decisions();
  EXPECT_EQ(lines[0], "never: asks for 5 processors, the largest resource A has 4");
  EXPECT_EQ(lines[1], "never: no resource has arch=sparc");
  EXPECT_EQ(lines[2], "B b1*3");
  EXPECT_EQ(lines[3], "never: no resource serves queue \"short\"; there are long");
  EXPECT_THAT(
      lines[4],
      HasSubstr("never: asks for 4 processes on 3 nodes; the largest resource A has 2 nodes of 2"));
  EXPECT_THAT(lines[5], HasSubstr("never: asks for 1 processes on 2 nodes"));
  EXPECT_THAT(lines[6], HasSubstr("never: memory>=lots: expected one number of megabytes"));
  EXPECT_EQ(lines[7], "never: no resource has all of resource=A, tags=gpu");
}

TEST_F(PlanTest, TakesTheAgentsWordWhereTheInventoryIsSilent) {
  request_.mutable_node(2)->set_memory_mb(4000);
  Require(Ask("j1", 1), "memory", ">=", "2000");

  EXPECT_THAT(Decisions(), ::testing::ElementsAre("B b1*1"));
}

TEST_F(PlanTest, WaitsForNodesThatAreDown) {
  request_.mutable_node()->DeleteSubrange(1, 1);  // a2 is not named
  Ask("j1", 4).set_resource("A");

  EXPECT_THAT(Decisions(),
              ::testing::ElementsAre("A: waits for 2 more processors on A; 1 of 2 nodes is down"));
}

TEST_F(PlanTest, FollowsTheLoadUnderTheLoadPolicy) {
  request_.mutable_node(0)->set_load(2);
  request_.mutable_node(1)->set_load(1);
  Ask("j1", 1);
  Ask("j2", 2).set_resource("A");

  EXPECT_THAT(Decisions("load"), ::testing::ElementsAre("B b1*1", "A a2*2"));
}

TEST_F(PlanTest, IgnoresLeasesOnNodesThatWereTakenOut) {
  Run("zz", 4, 0);
  Ask("j1", 4);

  EXPECT_THAT(Decisions(), ::testing::ElementsAre("A a1*2 a2*2"));
}

}  // namespace
}  // namespace sekisho::allocator
