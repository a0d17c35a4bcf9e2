// SPDX-License-Identifier: Apache-2.0
#include "qserver/slurm_words.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::qserver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

const SlurmSettings kSettings = {.commands = "/usr/bin",
                                 .conf = "/etc/slurm/slurm.conf",
                                 .pilot = "/opt/o'brien/sekisho-pilot",
                                 .server = "head:7513",
                                 .ca_directory = "/etc/grid-security/certificates",
                                 .subject = ""};

EngineRequest Request() {
  EngineRequest request;
  request.job_id = "36nh3bj7yl7lt";
  request.account = "alice";
  request.token = "c0ffee";
  request.processes = 4;
  return request;
}

TEST(SlurmWords, SayWhatTheJobNeeds) {
  EngineRequest request = Request();
  request.hosts = 2;
  request.wall_time_s = 61;
  request.memory_mb = 100;
  request.is_exclusive = true;
  request.partition = "short";
  request.project = "p-1";

  const auto words = SubmitWords(request, kSettings, false);

  EXPECT_EQ(words[0], "/usr/bin/sbatch");
  for (const char* word : {"--job-name=sekisho-36nh3bj7yl7lt", "--ntasks=4", "--nodes=2", "--time=3",
                           "--mem=100M", "--exclusive", "--partition=short", "--account=p-1",
                           "--no-requeue"}) {
    EXPECT_THAT(words, Contains(word));
  }
  EXPECT_THAT(words, Not(Contains("--test-only")));
  EXPECT_THAT(SubmitWords(request, kSettings, true), Contains("--test-only"));
}

TEST(SlurmWords, RefuseNamesThatCouldMeanMore) {
  for (const std::string& name : std::vector<std::string>{"a b", "p=q", "x\ny", "x,y", "$(id)", std::string(65, 'a')}) {
    EngineRequest request = Request();
    request.partition = name;
    EXPECT_EQ(GramCode(CheckNames(request)), 37) << name;
    request = Request();
    request.project = name;
    EXPECT_EQ(GramCode(CheckNames(request)), 38) << name;
  }
  EXPECT_TRUE(CheckNames(Request()).ok());
}

TEST(SlurmWords, TheScriptIsOursAndQuotesWhatIsNot) {
  const std::string script = BatchScript(Request(), kSettings);

  EXPECT_TRUE(script.starts_with("#!/bin/sh\n"));
  EXPECT_THAT(script, Not(HasSubstr("#SBATCH")));
  EXPECT_THAT(script, HasSubstr("SEKISHO_PILOT_TOKEN='c0ffee'\n"));
  EXPECT_THAT(script, HasSubstr("'/opt/o'\\''brien/sekisho-pilot' --job '36nh3bj7yl7lt' --server 'head:7513'"));
}

TEST(SlurmWords, TheScriptSaysHowManyProcessesATaskMayHaveIfTheSiteDoes) {
  SlurmSettings settings = kSettings;
  EXPECT_THAT(BatchScript(Request(), settings), Not(HasSubstr("--process-limit")));

  settings.process_limit = 200;

  EXPECT_THAT(BatchScript(Request(), settings), HasSubstr(" --process-limit 200\n"));
}

TEST(SlurmWords, AHostWhosePilotIsGivenUpEndsTheJobOfAll) {
  EXPECT_THAT(BatchScript(Request(), kSettings), HasSubstr(" --kill-on-bad-exit=1 "));
}

TEST(SlurmWords, TheEnvironmentIsNotOurs) {
  EXPECT_THAT(SlurmEnvironment(kSettings),
              ElementsAre("PATH=/usr/bin:/bin", "LC_ALL=C", "SLURM_CONF=/etc/slurm/slurm.conf"));
}

TEST(SlurmWords, ReadAListing) {
  const auto jobs = ParseQueue("17|PENDING|Resources\n18|RUNNING|None\n19|TIMEOUT|TimeLimit\nrubbish\n|\n");

  ASSERT_EQ(jobs.size(), 3u);
  EXPECT_EQ(jobs.at("17"), (EngineState{false, true, "PENDING", "Resources"}));
  EXPECT_EQ(jobs.at("18"), (EngineState{false, false, "RUNNING", "None"}));
  EXPECT_EQ(jobs.at("19"), (EngineState{true, false, "TIMEOUT", "TimeLimit"}));
}

TEST(SlurmWords, ReadAJobNumber) {
  EXPECT_EQ(*ParseJobNumber("17\n"), "17");
  EXPECT_EQ(*ParseJobNumber("17;cluster\n"), "17");
  EXPECT_TRUE(absl::IsUnavailable(ParseJobNumber("").status()));
  EXPECT_TRUE(absl::IsUnavailable(ParseJobNumber("Submitted batch job 17").status()));
}

TEST(SlurmWords, TellARefusalFromATrouble) {
  const absl::Status refused = SubmitRefusal(
      "sbatch: error: invalid partition specified: no\n"
      "sbatch: error: Batch job submission failed: Invalid partition name specified\n", 1);
  EXPECT_EQ(Message(refused), "Slurm refuses it: Invalid partition name specified");
  EXPECT_FALSE(absl::IsUnavailable(refused));

  EXPECT_TRUE(absl::IsUnavailable(SubmitRefusal(
      "sbatch: error: Batch job submission failed: Unable to contact slurm controller (connect failure)\n", 1)));
  EXPECT_TRUE(absl::IsUnavailable(SubmitRefusal(
      "sbatch: error: Slurm controller not responding, sleeping and retrying\n", 137)));
  EXPECT_TRUE(absl::IsUnavailable(SubmitRefusal("", 137)));
}

}  // namespace
}  // namespace sekisho::qserver
