// SPDX-License-Identifier: Apache-2.0
#include "common/job_state.h"

#include <gtest/gtest.h>

namespace sekisho {
namespace {

using proto::JobEvent;
using proto::JobStatus;

JobEvent Event(void (*fill)(JobEvent&)) {
  JobEvent event;
  event.set_job_id("abc");
  event.set_time_ms(5);
  fill(event);
  return event;
}
JobEvent Submitted() {
  return Event([](JobEvent& e) { e.mutable_submitted()->set_subject("/CN=a"); });
}
JobEvent Queued() { return Event([](JobEvent& e) { e.mutable_queued(); }); }
JobEvent Waiting() { return Event([](JobEvent& e) { e.mutable_waiting()->set_reason("full"); }); }
JobEvent Started() { return Event([](JobEvent& e) { e.mutable_task_started()->set_node("n1"); }); }
JobEvent Ended(proto::JobState state) {
  auto event = Event([](JobEvent& e) { e.mutable_ended(); });
  event.mutable_ended()->set_state(state);
  return event;
}
JobEvent Exited(int task, int code) {
  auto event = Event([](JobEvent& e) { e.mutable_task_exited(); });
  event.mutable_task_exited()->set_task(task);
  event.mutable_task_exited()->mutable_exit()->set_code(code);
  return event;
}

JobStatus FoldAll(std::initializer_list<JobEvent> events) {
  JobStatus status;
  for (const auto& event : events) {
    EXPECT_TRUE(Fold(event, status).ok()) << event.ShortDebugString();
  }
  return status;
}

TEST(JobState, FollowsAJobFromSubmissionToItsEnd) {
  EXPECT_EQ(FoldAll({Submitted()}).state(), proto::UNSUBMITTED);
  EXPECT_EQ(FoldAll({Submitted(), Queued()}).state(), proto::PENDING);
  EXPECT_EQ(FoldAll({Submitted(), Queued(), Started()}).state(), proto::ACTIVE);
  EXPECT_EQ(FoldAll({Submitted(), Queued(), Started(), Ended(proto::DONE)}).state(), proto::DONE);
}

TEST(JobState, AWaitingJobSaysWhyUntilItStarts) {
  EXPECT_EQ(FoldAll({Submitted(), Queued(), Waiting()}).reason(), "full");
  EXPECT_EQ(FoldAll({Submitted(), Queued(), Waiting(), Started()}).reason(), "");
}

TEST(JobState, ARedirectionIsOfTheStreamsThatItNames) {
  const auto to_out = Event([](JobEvent& e) { e.mutable_redirected()->mutable_standard_output()->add_destination("https://a"); });
  const auto to_err = Event([](JobEvent& e) { e.mutable_redirected()->mutable_standard_error()->set_position(7); });
  const auto to_null = Event([](JobEvent& e) { e.mutable_redirected()->mutable_standard_output(); });

  const JobStatus both = FoldAll({Submitted(), Queued(), Started(), to_out, to_err});
  EXPECT_EQ(both.standard_output().destination(0), "https://a");
  EXPECT_EQ(both.standard_error().position(), 7u);
  EXPECT_EQ(both.state(), proto::ACTIVE);
  EXPECT_FALSE(FoldAll({Submitted(), Queued(), to_out}).has_standard_error());
  EXPECT_EQ(FoldAll({Submitted(), Queued(), to_out, to_null}).standard_output().destination_size(), 0);
}

TEST(JobState, NothingFollowsTheEnd) {
  auto status = FoldAll({Submitted(), Ended(proto::CANCELLED)});
  const auto before = status.SerializeAsString();

  EXPECT_EQ(Fold(Started(), status).code(), absl::StatusCode::kFailedPrecondition);

  EXPECT_EQ(status.SerializeAsString(), before);
}

TEST(JobState, AJobEndsOnlyInAFinalState) {
  auto status = FoldAll({Submitted()});

  EXPECT_FALSE(Fold(Ended(proto::ACTIVE), status).ok());
}

TEST(JobState, TheFirstBadTaskByNumberGivesTheExit) {
  const auto status = FoldAll({Submitted(), Queued(), Exited(2, 9), Exited(0, 0), Exited(1, 7)});

  EXPECT_EQ(JobExit(status).code(), 7);
}

TEST(JobState, CancelledIsFailedToGram) { EXPECT_EQ(GramState(proto::CANCELLED), 4); }

TEST(JobId, DependsOnEveryPartAndOnNothingElse) {
  const auto id = JobIdFor("siteA", "/CN=a", "r1");

  EXPECT_TRUE(IsJobId(id)) << id;
  EXPECT_EQ(id, JobIdFor("siteA", "/CN=a", "r1"));
  EXPECT_NE(id, JobIdFor("siteB", "/CN=a", "r1"));
  EXPECT_NE(id, JobIdFor("siteA", "/CN=b", "r1"));
  EXPECT_NE(id, JobIdFor("siteA", "/CN=a", "r2"));
  EXPECT_NE(JobIdFor("a", "bc", ""), JobIdFor("ab", "c", ""));
}

TEST(JobId, RefusesWhatCouldBeAPath) {
  EXPECT_FALSE(IsJobId("../../etc/pas"));
  EXPECT_FALSE(IsJobId(""));
}

}  // namespace
}  // namespace sekisho
