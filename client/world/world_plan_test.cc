// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_plan.h"

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

TEST(MultiRequest, HasEachPartsOwnProgramAndStartType) {
  JobOptions job;
  job.command = {"/bin/app"};
  const auto text =
      MultiRequestRsl(job, {{"siteA", 0, 1, "", "loose-barrier"}, {"siteB", 1, 1, "/opt/app", ""}});

  const auto parts = rsl::ParseAndDescribeParts(*text, {});
  ASSERT_TRUE(parts.ok()) << *text;
  EXPECT_EQ((*parts)[0].part->start, rsl::StartType::kLooseBarrier);
  EXPECT_EQ((*parts)[0].executable, "/bin/app");
  EXPECT_EQ((*parts)[1].part->start, rsl::StartType::kStrictBarrier);
  EXPECT_EQ((*parts)[1].executable, "/opt/app");
}

}  // namespace
}  // namespace sekisho::client
