// SPDX-License-Identifier: Apache-2.0
#include "agent/host_facts.h"

#include <gtest/gtest.h>

namespace sekisho::agent {
namespace {

TEST(HostFacts, ReadsTheKernelsTables) {
  const std::string meminfo =
      "MemTotal:       24681052 kB\nMemFree: 1 kB\nMemAvailable:  2048 kB\n";

  EXPECT_DOUBLE_EQ(ParseLoad("1.25 0.5 0.1 1/200 4242\n"), 1.25);
  EXPECT_EQ(ParseMeminfoMb(meminfo, "MemTotal"), 24102);
  EXPECT_EQ(ParseMeminfoMb(meminfo, "MemAvailable"), 2);
  EXPECT_EQ(ParseMeminfoMb(meminfo, "Absent"), 0);
  EXPECT_EQ(ParseOsName("NAME=x\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n"),
            "Debian GNU/Linux 12 (bookworm)");
  EXPECT_EQ(ParseOsName(""), "");
}

TEST(HostFacts, KnowsThisMachine) {
  const HostFacts facts = ReadHostFacts();

  EXPECT_EQ(facts.boot_id.size(), 36U);
  EXPECT_GT(facts.processors, 0);
  EXPECT_GT(facts.memory_mb, 0);
  EXPECT_FALSE(facts.architecture.empty());
  EXPECT_GT(ReadHostLoad().free_memory_mb, 0);
}

}  // namespace
}  // namespace sekisho::agent
