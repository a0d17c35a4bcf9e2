// SPDX-License-Identifier: Apache-2.0
#include "agent/task/start.h"

#include <gtest/gtest.h>

namespace sekisho::agent::task {
namespace {

TEST(Start, FailureSurvivesThePipe) {
  EXPECT_FALSE(DecodeFailure("").has());
  EXPECT_EQ(DecodeFailure("5\nexecutable x: gone").gram_code, 5);
  EXPECT_EQ(DecodeFailure("5\nexecutable x: gone").reason, "executable x: gone");
  EXPECT_EQ(DecodeFailure("garbage").gram_code, kExecutionFailed);
}

TEST(Start, ProgramsWithoutASlashAreFoundOnThePath) {
  EXPECT_EQ(FindProgram("/no/such", "/bin"), "/no/such");
  EXPECT_EQ(FindProgram("sh", "/no/such::/bin"), "/bin/sh");
  EXPECT_EQ(FindProgram("sekisho-no-such-program", "/usr/bin:/bin"), "sekisho-no-such-program");
  EXPECT_EQ(FindProgram("sh", ""), "sh");
}

}  // namespace
}  // namespace sekisho::agent::task
