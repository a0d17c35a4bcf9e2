// SPDX-License-Identifier: Apache-2.0
#include "agent/pilot.h"

#include <map>

#include <gtest/gtest.h>

namespace sekisho::agent {
namespace {

Variable From(std::map<std::string, std::string> variables) {
  return [variables](const char* name) {
    const auto at = variables.find(name);
    return at == variables.end() ? std::string() : at->second;
  };
}

TEST(Pilot, CountsTheProcessesOfItsHost) {
  EXPECT_EQ(ProcessesOf("4", 0), 4);
  EXPECT_EQ(ProcessesOf("2(x3),1", 2), 2);
  EXPECT_EQ(ProcessesOf("2(x3),1", 3), 1);
  EXPECT_EQ(ProcessesOf("1,3(x2)", 2), 3);
}

TEST(Pilot, DoesNotGuessWhatItsVariablesDoNotSay) {
  EXPECT_EQ(ProcessesOf("2(x3),1", 4), 0);
  EXPECT_EQ(ProcessesOf("", 0), 0);
  EXPECT_EQ(ProcessesOf("2(x", 0), 0);
  EXPECT_EQ(ProcessesOf("-2", 0), 0);
  EXPECT_EQ(ProcessesOf("2;3", 1), 0);
}

TEST(Pilot, KnowsItsPartOfAJobOnSeveralHosts) {
  const auto pilot = ReadPilot("job", From({{"SEKISHO_PILOT_TOKEN", "secret"},
                                            {"SEKISHO_PILOT_PROCESSES", "2(x2)"},
                                            {"SLURM_JOB_ID", "17"},
                                            {"SLURM_JOB_NUM_NODES", "2"},
                                            {"SLURM_NODEID", "1"}}));

  ASSERT_TRUE(pilot.ok()) << pilot.status();
  EXPECT_EQ(pilot->engine_job(), "17");
  EXPECT_EQ(pilot->hosts(), 2);
  EXPECT_EQ(pilot->number(), 1);
  EXPECT_EQ(pilot->processes(), 2);
}

TEST(Pilot, IsNotStartedByHand) {
  EXPECT_FALSE(ReadPilot("job", From({})).ok());
  EXPECT_FALSE(ReadPilot("job", From({{"SEKISHO_PILOT_TOKEN", "secret"},
                                      {"SLURM_JOB_ID", "17"},
                                      {"SLURM_JOB_NUM_NODES", "2"},
                                      {"SEKISHO_PILOT_PROCESSES", "1(x2)"}}))
                   .ok());
}

TEST(Pilot, ComesWithAKeyOfItsOwn) {
  const auto credential = MadeUpCredential();

  ASSERT_TRUE(credential.ok());
  EXPECT_EQ(X509_check_private_key(credential->chain[0].get(), credential->key.get()), 1);
}

}  // namespace
}  // namespace sekisho::agent
