// SPDX-License-Identifier: Apache-2.0
#include "client/world/written_world.h"

#include <gtest/gtest.h>

#include "client/world/world_plan.h"
#include "rsl/job_description.h"

namespace sekisho::client {
namespace {

std::string ErrorOf(const std::string& text) {
  const auto parts = ParseWrittenWorld(text, "app.rsl");
  return parts.ok() ? ""
                    : std::string(parts.status().message().data(), parts.status().message().size());
}

TEST(WrittenWorld, HasTheRanksOfItsPartsInTheirOrder) {
  const auto parts = ParseWrittenWorld(
      "+(&(resourceManagerContact=siteA)(label=one)(count=2)(jobtype=mpi)(executable=/bin/app)"
      "(arguments=\"a b\"))\n"
      "(&(resourceManagerContact=\"siteB/jobmanager-slurm\")(subjobStartType=loose-barrier)(count=3)"
      "(environment=(GLOBUS_DUROC_SUBJOB_INDEX 1)(X y))(executable=/opt/app))",
      "app.rsl");
  ASSERT_TRUE(parts.ok()) << parts.status();

  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ(parts->at(0).ranks, (RankRange{.contact = "siteA", .count = 2, .label = "one"}));
  EXPECT_EQ(parts->at(1).ranks.contact, "siteB/jobmanager-slurm");
  EXPECT_EQ(parts->at(1).ranks.label, "");
  EXPECT_EQ(parts->at(1).ranks.first, 2);
  EXPECT_EQ(parts->at(1).ranks.count, 3);
  EXPECT_EQ(parts->at(1).ranks.start_type, "loose-barrier");
  const auto job = rsl::ParseAndDescribe(parts->at(0).rsl, {});
  ASSERT_TRUE(job.ok()) << parts->at(0).rsl;
  EXPECT_EQ(job->job_type, rsl::JobType::kMultiple);
  EXPECT_FALSE(job->part.has_value());
  EXPECT_EQ(job->arguments, std::vector<std::string>{"a b"});
}

TEST(WrittenWorld, AnIndependentPartHasNoRanksAmongTheOthers) {
  const auto parts = ParseWrittenWorld(
      "+(&(resourceManagerContact=siteA)(count=2)(executable=/bin/app))"
      "(&(resourceManagerContact=siteB)(subjobCommsType=independent)(count=3)(executable=/bin/viewer))"
      "(&(resourceManagerContact=siteC)(count=1)(executable=/bin/app))",
      "app.rsl");

  ASSERT_TRUE(parts.ok()) << parts.status();
  EXPECT_EQ(parts->at(1).ranks, (RankRange{.contact = "siteB", .first = 0, .count = 3, .is_independent = true}));
  EXPECT_EQ(parts->at(2).ranks, (RankRange{.contact = "siteC", .first = 2, .count = 1}));
}

TEST(WrittenWorld, ReadsWhatDumprslPrints) {
  JobOptions job;
  job.command = {"/bin/app", "100"};
  job.environment = {"A=b"};
  const std::vector<RankRange> ranges = {{"siteA", 0, 10}, {"siteB", 10, 2}};
  const auto text = MultiRequestRsl(job, ranges);
  ASSERT_TRUE(text.ok());

  const auto parts = ParseWrittenWorld(*text, "app.rsl");

  ASSERT_TRUE(parts.ok()) << parts.status();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ(parts->at(0).ranks, ranges[0]);
  EXPECT_EQ(parts->at(1).ranks, ranges[1]);
}

TEST(WrittenWorld, SaysWhereItIsNone) {
  EXPECT_EQ(ErrorOf("&(executable=x)"),
            "app.rsl:1:1: expected a multi-request, +( &(resourceManagerContact=...)... )( &... ), "
            "saw one job");
  EXPECT_EQ(ErrorOf("+(&(executable=x))").substr(0, 10), "app.rsl:1:");
  EXPECT_EQ(ErrorOf("+(").substr(0, 10), "app.rsl:1:");
  EXPECT_EQ(ErrorOf("").substr(0, 8), "app.rsl:");
  EXPECT_EQ(ErrorOf("+(&(resourceManagerContact=a)(label=l)(count=2)(jobtype=single)(executable=x))"),
            "app.rsl:1:3: part 0 (l): jobtype=single is one process, and count is 2");
  EXPECT_EQ(ErrorOf("+\n(&(resourceManagerContact=a)(label=l)(environment=(GLOBUS_DUROC_SUBJOB_INDEX 1))"
                    "(executable=x))"),
            "app.rsl:2:2: part 0 (l): GLOBUS_DUROC_SUBJOB_INDEX is 1; the parts are numbered from 0 "
            "in their order: 0");
}

}  // namespace
}  // namespace sekisho::client
