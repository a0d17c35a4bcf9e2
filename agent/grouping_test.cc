// SPDX-License-Identifier: Apache-2.0
#include "agent/grouping.h"

#include <gtest/gtest.h>

namespace sekisho::agent {
namespace {

using task::Grouping;

constexpr char kV2Mounts[] =
    "proc /proc proc rw 0 0\n"
    "cgroup2 /sys/fs/cgroup cgroup2 rw,nosuid 0 0\n";
constexpr char kHybridMounts[] =
    "tmpfs /sys/fs/cgroup tmpfs rw 0 0\n"
    "cgroup /sys/fs/cgroup/freezer cgroup rw,relatime,freezer 0 0\n"
    "cgroup2 /sys/fs/cgroup/unified cgroup2 rw 0 0\n";
constexpr char kV1Mounts[] =
    "cgroup /sys/fs/cgroup/cpu,cpuacct cgroup rw,cpu,cpuacct 0 0\n"
    "cgroup /sys/fs/cgroup/freezer cgroup rw,freezer 0 0\n";

TEST(Grouping, PrefersV2InsideTheAgentsOwnGroup) {
  const auto places =
      CandidatePlaces(kV2Mounts, "0::/system.slice/sekisho-agent.service\n", "auto");

  ASSERT_EQ(places.size(), 2U);
  EXPECT_EQ(places[0].grouping, Grouping::kV2);
  EXPECT_EQ(places[0].parent, "/sys/fs/cgroup/system.slice/sekisho-agent.service");
  EXPECT_EQ(places[1].grouping, Grouping::kNone);
}

TEST(Grouping, OnHybridMachinesV2ComesBeforeTheFreezer) {
  const auto places = CandidatePlaces(kHybridMounts, "6:freezer:/a\n0::/\n", "auto");

  ASSERT_EQ(places.size(), 3U);
  EXPECT_EQ(places[0].parent, "/sys/fs/cgroup/unified");
  EXPECT_EQ(places[1].grouping, Grouping::kV1);
  EXPECT_EQ(places[1].parent, "/sys/fs/cgroup/freezer/a");
}

TEST(Grouping, TakesOnlyWhatIsWanted) {
  EXPECT_EQ(CandidatePlaces(kHybridMounts, "", "v1").size(), 1U);
  EXPECT_TRUE(CandidatePlaces(kV1Mounts, "", "v2").empty());
  EXPECT_EQ(CandidatePlaces(kV2Mounts, "", "none")[0].grouping, Grouping::kNone);
}

TEST(Grouping, MachinesWithoutCgroupsStillHaveOne) {
  const auto places = CandidatePlaces("", "", "auto");

  ASSERT_EQ(places.size(), 1U);
  EXPECT_EQ(places[0].grouping, Grouping::kNone);
}

}  // namespace
}  // namespace sekisho::agent
