// SPDX-License-Identifier: Apache-2.0
#include "client/job/one_part.h"

#include <gtest/gtest.h>

#include "rsl/job_description.h"

namespace sekisho::client {
namespace {

TEST(OnlyPart, IsAJobWithItsPlace) {
  const auto placed = OnlyPart("+(&(resourceManagerContact=any)(label=x)(executable=/bin/hostname)(count=2))");

  ASSERT_TRUE(placed.has_value());
  EXPECT_EQ(placed->contact, "any");
  const auto job = rsl::ParseAndDescribe(placed->rsl, {});
  ASSERT_TRUE(job.ok()) << placed->rsl;
  EXPECT_EQ(job->count, 2);
  EXPECT_FALSE(job->part.has_value());
}

TEST(OnlyPart, OtherRequestsStayWhatTheyAre) {
  EXPECT_FALSE(OnlyPart("&(executable=x)").has_value());
  EXPECT_FALSE(OnlyPart("+(&(resourceManagerContact=a)(executable=x))(&(resourceManagerContact=b)(executable=x))").has_value());
  EXPECT_FALSE(OnlyPart("+(&(executable=x))").has_value());
  EXPECT_FALSE(OnlyPart("+(").has_value());
}

}  // namespace
}  // namespace sekisho::client
