// SPDX-License-Identifier: Apache-2.0
#include "client/site/any_site.h"

#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::client {
namespace {

TEST(AnySite, AJobAsksForWhatItsDescriptionSays) {
  const auto job = rsl::ParseAndDescribe(
      "&(executable=x)(count=8)(job_type=mpi)(mpi_type=openmpi)(max_wall_time=90)(min_memory=512)(queue=night)"
      "(arch=x86_64 aarch64)(clock>=2000)",
      {});
  ASSERT_TRUE(job.ok());

  const glue::Demand demand = DemandOf(*job, "/O=Lab/CN=Alice");

  EXPECT_EQ(demand.processes, 8);
  EXPECT_EQ(demand.queue, "night");
  EXPECT_TRUE(demand.needs_mpi);
  EXPECT_EQ(demand.mpi, "openmpi");
  EXPECT_EQ(demand.wall_time_s, 5400);
  EXPECT_EQ(demand.memory_mb, 512);
  EXPECT_EQ(demand.subject, "/O=Lab/CN=Alice");
  ASSERT_EQ(demand.conditions.size(), 2u);
  EXPECT_EQ(demand.conditions[0].values, (std::vector<std::string>{"x86_64", "aarch64"}));
  EXPECT_EQ(demand.conditions[1].op, ">=");
}

TEST(AnySite, OnlyACertainNoLetsAnotherSiteBeAsked) {
  EXPECT_TRUE(IsRefusal(absl::PermissionDeniedError("not mapped")));
  EXPECT_TRUE(IsRefusal(Refuse(absl::StatusCode::kUnavailable, 24, "nothing was submitted", "")));

  EXPECT_FALSE(IsRefusal(absl::OkStatus()));
  EXPECT_FALSE(IsRefusal(absl::UnavailableError("the connection broke")));
  EXPECT_FALSE(IsRefusal(Refuse(absl::StatusCode::kUnavailable, 79, "the jobmanager went away during the call", "")));
  EXPECT_FALSE(IsRefusal(absl::DeadlineExceededError("no answer")));
  EXPECT_FALSE(IsRefusal(Refuse(absl::StatusCode::kNotFound, 0, "its state is not known", "")));
}

}  // namespace
}  // namespace sekisho::client
