// SPDX-License-Identifier: Apache-2.0
#include "client/world_plan.h"

#include <gtest/gtest.h>

#include "rsl/job_description.h"

namespace sekisho::client {
namespace {

TEST(MultiRequest, HasAPartForEachUseOfAMachine) {
  JobOptions job;
  job.command = {"/bin/app", "a b"};
  const auto text = MultiRequestRsl(job, {{"siteA", 0, 10}, {"siteB", 10, 2}});

  const auto parts = rsl::ParseAndDescribeParts(*text, {});
  ASSERT_TRUE(parts.ok()) << *text;
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].count, 10);
  EXPECT_EQ((*parts)[1].part->contact, "siteB");
  EXPECT_EQ((*parts)[1].part->label, "subjob 1");
  EXPECT_EQ((*parts)[1].arguments[0], "a b");
  EXPECT_EQ((*parts)[1].environment[0].value, "1");
}

}  // namespace
}  // namespace sekisho::client
