// SPDX-License-Identifier: Apache-2.0
#include "client/site/exit_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

proto::JobStatus Job(proto::JobState state, int code, int signal) {
  proto::JobStatus job;
  job.set_state(state);
  job.mutable_exit()->set_code(code);
  job.mutable_exit()->set_signal(signal);
  return job;
}

TEST(ExitCode, IsTheProgramsOwnIfItEndedByItself) {
  EXPECT_EQ(ExitCodeOf(Job(proto::DONE, 0, 0)), 0);
  EXPECT_EQ(ExitCodeOf(Job(proto::DONE, 7, 0)), 7);
}

TEST(ExitCode, TellsAKilledProgramFromAJobThatNeverRan) {
  EXPECT_EQ(ExitCodeOf(Job(proto::FAILED, 0, 9)), 137);
  EXPECT_EQ(ExitCodeOf(Job(proto::FAILED, 0, 0)), kExitFailed);
  EXPECT_EQ(ExitCodeOf(Job(proto::CANCELLED, 0, 0)), kExitCancelled);
  EXPECT_EQ(ExitCodeOf(Job(proto::CANCELLED, 0, 9)), kExitCancelled);
  EXPECT_EQ(ExitCodeOf(Job(proto::UNKNOWN, 0, 0)), kExitUnknown);
}

TEST(ExitCode, OfAJobThatALimitEndedIsNotTheSignalThatItTook) {
  proto::JobStatus job = Job(proto::FAILED, 0, 15);
  job.set_gram_code(17);
  EXPECT_EQ(ExitCodeOf(job), kExitFailed);
}

TEST(ExitCode, TellsRefusalUsageAndUnknownApart) {
  EXPECT_EQ(ExitCodeOf(absl::UnauthenticatedError("")), kExitRefused);
  EXPECT_EQ(ExitCodeOf(absl::PermissionDeniedError("")), kExitRefused);
  EXPECT_EQ(ExitCodeOf(absl::InvalidArgumentError("")), kExitUsage);
  EXPECT_EQ(ExitCodeOf(absl::NotFoundError("")), kExitUnknown);
  EXPECT_EQ(ExitCodeOf(absl::UnavailableError("")), kExitFailed);
}

TEST(ErrorText, HasReasonNumberNameAndRemedy) {
  const auto error = Refuse(absl::StatusCode::kPermissionDenied, 7, "not mapped", "ask");

  EXPECT_EQ(ErrorText(error), "sekisho: not mapped (GRAM error 7, AUTHORIZATION)\n  -> ask\n");
}

TEST(ErrorText, AJobThatEndedByItselfNeedsNoWords) {
  EXPECT_EQ(EndText(Job(proto::DONE, 7, 0)), "");
}

}  // namespace
}  // namespace sekisho::client
