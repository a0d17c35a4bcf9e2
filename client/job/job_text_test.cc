// SPDX-License-Identifier: Apache-2.0
#include "client/job/job_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

proto::JobStatus Job(proto::JobState state) {
  proto::JobStatus job;
  job.set_site("siteA");
  job.set_job_id("abc");
  job.set_state(state);
  return job;
}

TEST(JobText, ARunningJobHasNoExitCodeYet) {
  const auto json = ToJson(Job(proto::ACTIVE));

  EXPECT_EQ(json["state"], "ACTIVE");
  EXPECT_EQ(json["state_code"], 2);
  EXPECT_TRUE(json["exit_code"].is_null());
  EXPECT_TRUE(json["signal"].is_null());
}

TEST(JobText, AJobThatCouldNotStartHasNoExitCode) {
  EXPECT_TRUE(ToJson(Job(proto::FAILED))["exit_code"].is_null());
  EXPECT_EQ(ToJson(Job(proto::DONE))["exit_code"], 0);
}

TEST(JobText, AKilledJobHasASignalAndNoExitCode) {
  auto job = Job(proto::FAILED);
  job.mutable_exit()->set_signal(9);

  EXPECT_EQ(ToJson(job)["signal"], 9);
  EXPECT_TRUE(ToJson(job)["exit_code"].is_null());
}

TEST(JobText, CancelledHasItsOwnNameAndGramsNumber) {
  EXPECT_EQ(ToJson(Job(proto::CANCELLED))["state"], "CANCELLED");
  EXPECT_EQ(ToJson(Job(proto::CANCELLED))["state_code"], 4);
}

TEST(JobText, StatusSaysWhyAJobWaits) {
  auto job = Job(proto::PENDING);
  job.set_reason("2 jobs ahead");

  EXPECT_THAT(Describe(job, 0), HasSubstr("waits      2 jobs ahead"));
}

TEST(JobText, TheTableNamesEachNodeOnce) {
  auto job = Job(proto::ACTIVE);
  job.add_placement()->set_node("n1");
  job.add_placement()->set_node("n1");

  EXPECT_THAT(Table({job}, 0), HasSubstr(" n1 "));
  EXPECT_THAT(Table({job}, 0), Not(HasSubstr("n1,n1")));
}

TEST(JobText, AgesAreReadable) {
  EXPECT_EQ(Age(-5), "0 s");
  EXPECT_EQ(Age(119'999), "119 s");
  EXPECT_EQ(Age(3600'000), "60 min");
  EXPECT_EQ(Age(49 * 3600'000LL), "2 d");
}

}  // namespace
}  // namespace sekisho::client
