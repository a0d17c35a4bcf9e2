// SPDX-License-Identifier: Apache-2.0
#include "allocator/near.h"

#include <algorithm>
#include <random>

#include <gmock/gmock.h>

#include "allocator/plan.h"

namespace sekisho::allocator {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;

// n1 n2 at s1, n3 n4 n5 at s2, both at s0, which n6 is at too; n7 is not on it.
constexpr char kTree[] =
    "n1 s1 20\nn2 s1 20\nn3 s2 20\nn4 s2 20\nn5 s2 20\ns1 s0 3\ns2 s0 3\nn6 s0 20\n";

class NearPolicy : public ::testing::Test {
 protected:
  NearPolicy() {
    inventory_ = *ParseInventory(
        R"({"resource": [{"name": "A", "procs": 2, "nodes": ["n1","n3","n7","n2","n4","n6","n5"]}]})",
        "F");
    tree_ = *topology::ParseTree(kTree, "T");
    for (int i = 1; i <= 7; ++i) {
      proto::NodeState& node = *request_.add_node();
      node.set_name("n" + std::to_string(i));
      node.set_is_up(true);
    }
  }
  void Ask(int processes, int hosts = 0) {
    proto::Demand& demand = *request_.add_pending();
    demand.set_job_id("j" + std::to_string(request_.pending_size()));
    demand.set_processes(processes);
    demand.set_host_count(hosts);
  }
  void Run(const std::string& node, int processes) {
    proto::Lease& lease = *request_.add_running();
    lease.set_resource("A");
    proto::Placement& placement = *lease.add_placement();
    placement.set_node(node);
    placement.set_processes(processes);
  }
  std::vector<std::vector<std::string>> Decide() {
    const Nearness nearness = FindNearness(inventory_, tree_);
    std::vector<std::vector<std::string>> nodes;
    const proto::DecideReply reply =
        allocator::Decide(inventory_, *FindPolicy("near"), request_, nearness);
    for (const proto::Decision& decision : reply.decision()) {
      nodes.emplace_back();
      for (const proto::Placement& placement : decision.start().placement()) {
        nodes.back().push_back(placement.node());
      }
    }
    return nodes;
  }

  Inventory inventory_;
  topology::NamedTree tree_;
  proto::DecideRequest request_;
};

TEST_F(NearPolicy, TakesTheSmallestSubtreeInWhichTheJobFits) {
  Ask(4);
  EXPECT_THAT(Decide(), ElementsAre(UnorderedElementsAre("n1", "n2")));
}

TEST_F(NearPolicy, TakesALargerSubtreeWhereASmallerIsTooSmall) {
  Ask(6);
  EXPECT_THAT(Decide(), ElementsAre(UnorderedElementsAre("n3", "n4", "n5")));
}

TEST_F(NearPolicy, LeavesWholeSubtreesToThoseWhoComeLater) {
  Run("n3", 1);
  Ask(4);
  Ask(5);
  EXPECT_THAT(Decide(), ElementsAre(UnorderedElementsAre("n1", "n2"),
                                    UnorderedElementsAre("n3", "n4", "n5")));
}

TEST_F(NearPolicy, SpreadsOverHostsOfOneSubtree) {
  Ask(3, 3);
  EXPECT_THAT(Decide(), ElementsAre(UnorderedElementsAre("n3", "n4", "n5")));
}

TEST_F(NearPolicy, UsesNodesThatTheTreeDoesNotKnowLast) {
  Ask(14);
  EXPECT_EQ(Decide()[0].size(), 7u);
  request_.clear_pending();
  Ask(12);
  EXPECT_THAT(Decide()[0], ::testing::Not(::testing::Contains("n7")));
}

TEST_F(NearPolicy, DoesWithoutATree) {
  tree_ = {};
  Ask(4);
  EXPECT_THAT(Decide(), ElementsAre(ElementsAre("n1", "n3")));
}

// Whatever runs: a job that fits one switch's nodes gets nodes of one switch.
TEST_F(NearPolicy, NeverSpansSwitchesWhereOneHasRoom) {
  std::mt19937 random(7);
  for (int round = 0; round < 300; ++round) {
    request_.clear_running();
    request_.clear_pending();
    std::vector<int> free(8, 2);
    for (int node = 1; node <= 7; ++node) {
      if (const int busy = static_cast<int>(random() % 3); busy > 0) {
        Run("n" + std::to_string(node), busy);
        free[node] -= busy;
      }
    }
    const int wanted = 1 + static_cast<int>(random() % 6);
    Ask(wanted);
    const bool fits = free[1] + free[2] >= wanted || free[3] + free[4] + free[5] >= wanted ||
                      *std::max_element(free.begin() + 1, free.end()) >= wanted;
    if (!fits) {
      continue;
    }

    const auto nodes = Decide()[0];

    const auto side = [](const std::string& node) {
      return node <= "n2" ? 1 : node <= "n5" ? 2 : node == "n6" ? 3 : 4;
    };
    for (const std::string& node : nodes) {
      EXPECT_EQ(side(node), side(nodes[0])) << "round " << round << ", " << wanted << " processes";
    }
    EXPECT_FALSE(nodes.empty());
  }
}

}  // namespace
}  // namespace sekisho::allocator
