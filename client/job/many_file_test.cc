// SPDX-License-Identifier: Apache-2.0
#include "client/job/many_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Many, TakesARequestALine) {
  const auto jobs = ParseMany("# a comment\n&(executable=/bin/a)\n\n  &(executable=/bin/b)\r\n", "f");

  ASSERT_TRUE(jobs.ok()) << jobs.status();
  ASSERT_EQ(jobs->size(), 2u);
  EXPECT_EQ((*jobs)[0].rsl, "&(executable=/bin/a)");
  EXPECT_EQ((*jobs)[1].line, 4);
}

TEST(Many, NamesTheLineOfABadRequest) {
  const auto jobs = ParseMany("&(executable=/bin/a)\n&(executable=/bin/b)(count=many)\n", "jobs.rsl");

  ASSERT_FALSE(jobs.ok());
  EXPECT_THAT(std::string(jobs.status().message()), StartsWith("jobs.rsl:2: 1:"));
  EXPECT_THAT(std::string(jobs.status().message()), HasSubstr("count"));
}

TEST(Many, RefusesWhatHasToBeSubmittedAlone) {
  const auto committed = ParseMany("&(executable=/a)\n&(executable=/b)(two_phase=60)\n", "f");
  const auto bringing = ParseMany("&(executable=/a)(file_stage_in=(/etc/hosts x))\n", "f");

  EXPECT_THAT(std::string(committed.status().message()), StartsWith("f:2: expected a job without two_phase"));
  EXPECT_THAT(std::string(bringing.status().message()), HasSubstr("saw /etc/hosts"));
  EXPECT_TRUE(ParseMany("&(executable=/a)(two_phase=0)(file_stage_out=(x y))\n", "f").ok());
}

TEST(Many, RefusesAnEmptyFileAndMultiRequests) {
  EXPECT_FALSE(ParseMany("\n# nothing\n", "f").ok());
  EXPECT_FALSE(ParseMany("+(&(executable=/a)(resourceManagerContact=s))", "f").ok());
}

}  // namespace
}  // namespace sekisho::client
