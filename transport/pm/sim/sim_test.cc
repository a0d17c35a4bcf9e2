// SPDX-License-Identifier: Apache-2.0
// Seeded runs of the protocol core.  PM_SIM_FIRST, PM_SIM_SEEDS, PM_SIM_NODES choose other runs
// than the short ones of the test suite; a failing seed prints the line that repeats it.
#include <cstdlib>
#include <iostream>
#include <string>

#include <gtest/gtest.h>

#include "transport/pm/sim/world.h"

namespace sekisho::pm::sim {
namespace {

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

void RunSeeds(const Plan& plan, std::uint64_t seeds, const char* name) {
  const std::uint64_t first = Setting("PM_SIM_FIRST", 1);
  const std::uint64_t count = Setting("PM_SIM_SEEDS", seeds);
  std::uint64_t events = 0, delivered = 0, flushes = 0;
  for (std::uint64_t seed = first; seed < first + count; ++seed) {
    Plan run = plan;
    run.nodes = static_cast<std::uint32_t>(Setting("PM_SIM_NODES", plan.nodes));
    run.thorough = Setting("PM_SIM_THOROUGH", 0) != 0;
    World world(run, seed);
    std::string failure = world.Run();
    if (!failure.empty()) {
      run.thorough = true;  // says which event it was
      const std::string thorough = World(run, seed).Run();
      if (!thorough.empty()) failure = thorough;
    }
    events += world.events();
    delivered += world.delivered();
    flushes += world.flushes();
    ASSERT_EQ(failure, "") << "replay: PM_SIM_FIRST=" << seed
                           << " PM_SIM_SEEDS=1 PM_SIM_NODES=" << run.nodes
                           << " pm_sim_test --gtest_filter=" << name;
    if (count == 1) {
      const Counters sum = world.Sum();
      std::cout << "events " << events << " out " << sum.datagrams_out << " retransmitted "
                << sum.retransmitted << " by gap " << sum.lost_by_gap << " by time-out "
                << sum.lost_by_timeout << " probes " << sum.probes << " time-outs " << sum.timeouts
                << " spurious " << sum.spurious << " only acks " << sum.acks_only << "\n";
    }
  }
  std::cout << count << " seeds, " << events << " events, " << delivered << " messages, " << flushes
            << " times the job was stopped\n";
}

TEST(Simulation, AGoodNetworkDeliversEverything) {
  Plan plan;
  plan.faults = plan.kills = plan.clocks = plan.stops = false;
  RunSeeds(plan, 5, "Simulation.AGoodNetworkDeliversEverything");
}

TEST(Simulation, LossReorderingAndStopsChangeNothing) {
  Plan plan;
  plan.kills = plan.clocks = false;
  RunSeeds(plan, 12, "Simulation.LossReorderingAndStopsChangeNothing");
}

TEST(Simulation, EveryFaultAtOnceChangesNothing) {
  RunSeeds(Plan(), 12, "Simulation.EveryFaultAtOnceChangesNothing");
}

TEST(Simulation, SixteenNodesSurviveEveryFault) {
  Plan plan;
  plan.nodes = 16;
  plan.messages = 150;
  RunSeeds(plan, 2, "Simulation.SixteenNodesSurviveEveryFault");
}

// Whatever they run into by now.
TEST(Simulation, SeedsThatFailedOncePass) {
  Plan plan;
  plan.messages = 150;
  for (const std::uint64_t seed :
       {103143, 910173, 911453, 920195, 930595, 933718, 2402460, 2502696}) {
    EXPECT_EQ(World(plan, seed).Run(), "") << seed;
  }
  plan.nodes = 16;
  for (const std::uint64_t seed : {1001, 1244, 1689, 2246, 2200614}) {
    EXPECT_EQ(World(plan, seed).Run(), "") << seed;
  }
}

}  // namespace
}  // namespace sekisho::pm::sim
