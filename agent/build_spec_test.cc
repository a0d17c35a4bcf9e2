// SPDX-License-Identifier: Apache-2.0
#include "agent/build_spec.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::agent {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::Not;

const Account kAlice{"alice", 1001, 1001, {1001, 50}, "/home/alice", "/bin/bash"};
const NodeSettings kNode{.boot_id = "b",
                         .launch_socket = "/run/launch",
                         .grouping = task::Grouping::kV2,
                         .cgroup_parent = "/cg",
                         .process_limit = 10};

proto::ServerMessage::Start Minimal() {
  proto::ServerMessage::Start start;
  start.mutable_task()->set_job_id("j");
  start.mutable_task()->set_task(3);
  start.add_argument("/bin/true");
  return start;
}

TEST(BuildSpec, FillsInWhatTheAccountAndTheNodeKnow) {
  const auto spec = BuildSpec(Minimal(), kAlice, kNode, "/state/j/3");

  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->directory, "/home/alice");
  EXPECT_EQ(spec->uid, 1001U);
  EXPECT_EQ(spec->cgroup, "/cg/j.3");
  EXPECT_EQ(spec->grace_ms, 5000);
  EXPECT_EQ(spec->process_limit, 10);
  EXPECT_THAT(spec->environment,
              ElementsAre("HOME=/home/alice", "LOGNAME=alice", "PATH=/usr/local/bin:/usr/bin:/bin",
                          "SHELL=/bin/bash", "USER=alice"));
}

TEST(BuildSpec, WhatTheServerSaysWins) {
  auto start = Minimal();
  (*start.mutable_environment())["HOME"] = "/elsewhere";
  start.set_directory("/work");
  start.set_wall_limit_s(60);

  const auto spec = BuildSpec(start, kAlice, kNode, "/state/j/3");

  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(spec->environment, Contains("HOME=/elsewhere"));
  EXPECT_EQ(spec->directory, "/work");
  EXPECT_EQ(spec->wall_limit_ms, 60000);
}

TEST(BuildSpec, SmallFilesHaveAPlaceInArgumentsAndVariables) {
  auto start = Minimal();
  start.add_argument("-f=@FILES@/m@FILES@");
  (*start.mutable_environment())["M"] = "@FILES@";

  const auto spec = BuildSpec(start, kAlice, kNode, "/s");

  ASSERT_TRUE(spec.ok());
  EXPECT_EQ(spec->argument[1], "-f=/s/files/m/s/files");
  EXPECT_THAT(spec->environment, Contains("M=/s/files"));
}

TEST(BuildSpec, OnlyTasksWithATokenLearnOfTheLauncher) {
  auto start = Minimal();
  start.set_launch_token("t");

  const auto spec = BuildSpec(start, kAlice, kNode, "/s");

  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(spec->environment, Contains("SEKISHO_LAUNCH_SOCKET=/run/launch"));
  EXPECT_THAT(spec->environment, Contains("SEKISHO_LAUNCH_TOKEN=t"));
}

TEST(BuildSpec, TasksLearnWhereTheirJobsPmDaemonIsAskedFor) {
  NodeSettings node = kNode;
  node.pm_socket = "/run/pm";
  auto start = Minimal();
  (*start.mutable_environment())["PM_AGENT"] = "other:/run/pm";

  const auto spec = BuildSpec(start, kAlice, node, "/s");

  ASSERT_TRUE(spec.ok());
  EXPECT_THAT(spec->environment, Contains("PM_AGENT=j:/run/pm"));
}

TEST(BuildSpec, RanksMeetAsNodesOfPmWhereTheyMeetUnlessTheirJobSaysOtherwise) {
  auto start = Minimal();
  EXPECT_THAT(BuildSpec(start, kAlice, kNode, "/s")->environment, Not(Contains("PM_JOB_FILE=pmi")));

  start.mutable_rank()->set_ranks(2);
  EXPECT_THAT(BuildSpec(start, kAlice, kNode, "/s")->environment, Contains("PM_JOB_FILE=pmi"));

  (*start.mutable_environment())["PM_JOB_FILE"] = "/own";
  EXPECT_THAT(BuildSpec(start, kAlice, kNode, "/s")->environment, Contains("PM_JOB_FILE=/own"));
}

TEST(BuildSpec, RefusesRootWhateverItIsCalled) {
  Account toor = kAlice;
  toor.name = "toor";
  toor.uid = 0;

  const auto spec = BuildSpec(Minimal(), toor, kNode, "/s");

  EXPECT_EQ(spec.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(GramCodeOf(spec.status()), task::kInvalidUserName);
}

TEST(BuildSpec, NamesTheProgramThatMpirunWouldMiss) {
  auto start = Minimal();
  start.add_needed_program("/bin/true");
  EXPECT_TRUE(CheckPrograms(start).ok());
  start.add_needed_program("/no/sekisho-rsh");

  const absl::Status status = CheckPrograms(start);

  EXPECT_EQ(GramCodeOf(status), task::kNoMpirun);
  EXPECT_NE(Remedy(status), "");
  EXPECT_EQ(status.message(),
            "/no/sekisho-rsh, with which mpirun starts its ranks, cannot be executed: No such file or directory");
}

TEST(BuildSpec, RefusesNamesAndTextsThatCouldMeanMore) {
  const auto is_refused = [](auto change) {
    auto start = Minimal();
    change(start);
    return BuildSpec(start, kAlice, kNode, "/s").status().code() ==
           absl::StatusCode::kInvalidArgument;
  };

  EXPECT_TRUE(is_refused([](auto& s) { (*s.mutable_environment())["A=B"] = ""; }));
  EXPECT_TRUE(is_refused([](auto& s) { (*s.mutable_environment())[""] = "x"; }));
  EXPECT_TRUE(is_refused([](auto& s) { (*s.mutable_environment())["A"] = std::string(1, '\0'); }));
  EXPECT_TRUE(is_refused([](auto& s) { s.add_argument(std::string("a\0b", 3)); }));
  EXPECT_TRUE(is_refused([](auto& s) { (*s.mutable_file())["../x"] = ""; }));
  EXPECT_TRUE(is_refused([](auto& s) { s.set_directory(std::string("/\0", 2)); }));
}

}  // namespace
}  // namespace sekisho::agent
