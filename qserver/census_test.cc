// SPDX-License-Identifier: Apache-2.0
#include "qserver/census.h"

#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

proto::JobStatus Job(int count, const std::string& queue = "", const std::string& service = "jobmanager") {
  proto::JobStatus job;
  job.set_count(count);
  job.set_queue(queue);
  job.set_service(service);
  job.set_submitted_ms(1'000);
  job.set_state(proto::PENDING);
  return job;
}

TEST(Census, OnlyJobsOfThoseWhoAgreedAreShownAndOnlyWhileTheyLive) {
  Census census({"/O=Lab/CN=Alice"});
  Census::Mark alices, bobs;
  proto::JobStatus job = Job(4, "night");
  job.set_job_id("one");
  job.set_subject("/O=Lab/CN=Alice");
  census.Count(job, false, 1'000, alices);
  proto::JobStatus other = Job(4);
  other.set_job_id("two");
  other.set_subject("/O=Lab/CN=Bob");
  census.Count(other, false, 1'000, bobs);

  ASSERT_EQ(census.activities().size(), 1u);
  const proto::ActivityState& shown = census.activities().at("one");
  EXPECT_EQ(shown.service(), "jobmanager-agent-night");
  EXPECT_EQ(shown.state(), proto::PENDING);
  EXPECT_EQ(shown.slots(), 4);
  job.set_state(proto::DONE);
  census.Count(job, false, 2'000, alices);
  EXPECT_TRUE(census.activities().empty());
}

TEST(Census, AJobIsCountedOnceWhateverHappensToIt) {
  Census census;
  Census::Mark mark;
  proto::JobStatus job = Job(4);

  census.Count(job, false, 1'000, mark);
  census.Count(job, false, 2'000, mark);
  const Census::Share& share = census.shares().at("jobmanager-agent");
  EXPECT_EQ(share.waiting, 1);
  EXPECT_EQ(share.slots_requested, 4);

  job.set_state(proto::ACTIVE);
  census.Count(job, true, 11'000, mark);
  EXPECT_EQ(share.waiting, 0);
  EXPECT_EQ(share.slots_requested, 0);
  EXPECT_EQ(share.running, 1);
  EXPECT_EQ(share.slots_used, 4);
  EXPECT_EQ(share.average_wait_ms, 10'000);

  job.set_state(proto::SUSPENDED);
  census.Count(job, true, 12'000, mark);
  EXPECT_EQ(share.running, 1);
  EXPECT_EQ(share.suspended, 1);

  job.set_state(proto::DONE);
  census.Count(job, false, 13'000, mark);
  EXPECT_EQ(share.running + share.suspended + share.waiting + share.slots_used, 0);
}

TEST(Census, QueuesAndBatchSystemsAreSharesOfTheirOwn) {
  EXPECT_EQ(Census::ServiceOf(Job(1, "night")), "jobmanager-agent-night");
  EXPECT_EQ(Census::ServiceOf(Job(1, "", "jobmanager-agent")), "jobmanager-agent");
  EXPECT_EQ(Census::ServiceOf(Job(1, "debug", "jobmanager-slurm-debug")), "jobmanager-slurm-debug");
}

}  // namespace
}  // namespace sekisho::qserver
