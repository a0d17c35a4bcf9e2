// SPDX-License-Identifier: Apache-2.0
// Random sites and queues: what must hold of every plan.
#include <map>
#include <random>
#include <set>

#include <gtest/gtest.h>

#include "allocator/match.h"
#include "allocator/plan.h"

namespace sekisho::allocator {
namespace {

int Pick(std::mt19937& random, int from, int to) {
  return std::uniform_int_distribution<int>(from, to)(random);
}

Inventory RandomInventory(std::mt19937& random) {
  Inventory inventory;
  const int resources = Pick(random, 1, 3);
  for (int r = 0; r < resources; ++r) {
    Resource resource;
    resource.name = std::string(1, char('A' + r));
    resource.processors_per_node = Pick(random, 1, 6);
    resource.clock_mhz = 100 * Pick(random, 1, 3);
    resource.memory_mb = 1000 * Pick(random, 1, 3);
    const int nodes = Pick(random, 1, 5);
    for (int n = 0; n < nodes; ++n) {
      resource.nodes.push_back(resource.name + std::to_string(n));
    }
    inventory.resources.push_back(resource);
  }
  return inventory;
}

proto::Demand RandomDemand(std::mt19937& random, int number) {
  proto::Demand demand;
  demand.set_job_id(std::to_string(number));
  demand.set_processes(Pick(random, 1, 10));
  demand.set_host_count(Pick(random, 0, 4) == 0 ? Pick(random, 1, 3) : 0);
  demand.set_wall_time_s(Pick(random, 1, 40));
  demand.set_exclusive(Pick(random, 0, 5) == 0);
  if (Pick(random, 0, 2) == 0) {
    proto::Demand::Condition& condition = *demand.add_condition();
    condition.set_attribute("memory");
    condition.set_op(Pick(random, 0, 1) == 0 ? ">=" : "<");
    condition.add_value(std::to_string(1000 * Pick(random, 1, 4)));
  }
  return demand;
}

void ExpectWithinCapacity(const Inventory& inventory, const std::vector<proto::Lease>& leases) {
  std::map<std::string, int> processors, jobs, busy;
  std::set<std::string> alone;
  for (const Resource& resource : inventory.resources) {
    for (const std::string& node : resource.nodes) {
      processors[node] = resource.processors_per_node;
    }
  }
  for (const proto::Lease& lease : leases) {
    for (const proto::Placement& placement : lease.placement()) {
      ASSERT_GT(placement.processes(), 0);
      busy[placement.node()] += placement.processes();
      ++jobs[placement.node()];
      if (lease.exclusive()) {
        alone.insert(placement.node());
      }
    }
  }
  for (const auto& [node, count] : busy) {
    ASSERT_LE(count, processors[node]) << node;
    ASSERT_TRUE(!alone.count(node) || jobs[node] == 1) << node;
  }
}

void ExpectAsAsked(const Inventory& inventory, const proto::Demand& demand,
                   const proto::Lease& lease) {
  int processes = 0;
  for (const proto::Placement& placement : lease.placement()) {
    processes += placement.processes();
  }
  ASSERT_EQ(processes, demand.processes());
  ASSERT_TRUE(demand.host_count() == 0 || lease.placement_size() == demand.host_count());
  for (const Resource& resource : inventory.resources) {
    if (resource.name == lease.resource()) {
      const NodeFacts facts{&resource.nodes[0], resource.architecture, resource.os,
                            resource.memory_mb};
      for (const proto::Demand::Condition& condition : demand.condition()) {
        ASSERT_EQ(Matches(resource, facts, condition), Match::kYes);
      }
    }
  }
}

// One site lives through virtual time; jobs run exactly to their limits.  When a job becomes the
// head of its resource, the time by which it starts if nothing passes it is found by asking the
// planner alone; it must not start later.
class Simulation {
 public:
  explicit Simulation(unsigned seed)
      : random_(seed),
        inventory_(RandomInventory(random_)),
        policy_(*FindPolicy(seed % 2 ? "paper" : "load")) {}

  void Run() {
    for (now_s_ = 0;
         now_s_ < 4000 && (now_s_ < 60 || !pending_.empty()) && !::testing::Test::HasFatalFailure();
         ++now_s_) {
      std::erase_if(running_,
                    [&](const proto::Lease& lease) { return lease.ends_ms() <= now_s_ * 1000; });
      while (now_s_ < 60 && Pick(random_, 0, 1) == 0) {
        pending_.push_back(RandomDemand(random_, ++jobs_));
      }
      Pass();
    }
    EXPECT_TRUE(pending_.empty()) << "a job was never started";
  }

 private:
  proto::DecideRequest Request(int64_t now_s, const std::vector<proto::Lease>& running) const {
    proto::DecideRequest request;
    request.set_now_ms(now_s * 1000);
    for (const Resource& resource : inventory_.resources) {
      for (const std::string& node : resource.nodes) {
        proto::NodeState& state = *request.add_node();
        state.set_name(node);
        state.set_is_up(true);
      }
    }
    for (const proto::Lease& lease : running) {
      *request.add_running() = lease;
    }
    return request;
  }

  void Pass() {
    proto::DecideRequest request = Request(now_s_, running_);
    for (const proto::Demand& demand : pending_) {
      *request.add_pending() = demand;
    }
    const proto::DecideReply reply = Decide(inventory_, policy_, request);
    ASSERT_EQ(reply.decision_size(), int(pending_.size()));

    std::vector<proto::Demand> left;
    std::set<std::string> headed;
    for (int i = 0; i < reply.decision_size(); ++i) {
      const proto::Decision& decision = reply.decision(i);
      if (decision.has_start()) {
        ExpectAsAsked(inventory_, pending_[i], decision.start());
        ASSERT_FALSE(promised_.count(decision.job_id()) && promised_[decision.job_id()] < now_s_)
            << "job " << decision.job_id() << " was delayed";
        running_.push_back(decision.start());
      } else if (decision.has_wait()) {
        pending_[i].set_resource(decision.wait().resource());
        left.push_back(pending_[i]);
        if (headed.insert(decision.wait().resource()).second &&
            !promised_.count(decision.job_id())) {
          Promise(pending_[i]);
        }
      }
    }
    ExpectWithinCapacity(inventory_, running_);
    pending_ = std::move(left);
  }

  // When the head would start if it were alone in the queue from now on.
  void Promise(const proto::Demand& demand) {
    std::vector<proto::Lease> running = running_;
    for (int64_t then = now_s_; then < now_s_ + 1000; ++then) {
      std::erase_if(running,
                    [&](const proto::Lease& lease) { return lease.ends_ms() <= then * 1000; });
      proto::DecideRequest request = Request(then, running);
      *request.add_pending() = demand;
      if (Decide(inventory_, policy_, request).decision(0).has_start()) {
        promised_[demand.job_id()] = then;
        return;
      }
    }
    FAIL() << "job " << demand.job_id() << " would never start";
  }

  std::mt19937 random_;
  Inventory inventory_;
  Policy policy_;
  int64_t now_s_ = 0;
  int jobs_ = 0;
  std::vector<proto::Demand> pending_;
  std::vector<proto::Lease> running_;
  std::map<std::string, int64_t> promised_;
};

TEST(Plan, NeverOverAllocatesNorDelaysAHeadNorBreaksACondition) {
  for (unsigned seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    Simulation(seed).Run();
    if (HasFailure()) {
      return;
    }
  }
}

}  // namespace
}  // namespace sekisho::allocator
