// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/pairs_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::wan {
namespace {

constexpr char kNodes[] =
    "# two sites\n"
    "node a device=wan-a prefix=10.0.1.0/24,10.1.0.0/24\n"
    "node b device=wan-b prefix=10.0.2.0/24 netns=/run/netns/b address=10.0.2.1/24  # with its "
    "own\n";

std::string ErrorOf(const std::string& line) {
  std::string error;
  EXPECT_FALSE(ParsePairs(kNodes + line + "\n", "file", error)) << line;
  return error;
}

TEST(PairsFile, SaysNodesAndLinks) {
  std::string error;
  const auto graph = ParsePairs(std::string(kNodes) +
                                    "link a b delay_us=1500.5 rate_mbps=100 loss=0.01 "
                                    "queue_kib=64\r\nlink b a delay_us=15000 rate_mbps=100\n",
                                "file", error);

  ASSERT_TRUE(graph) << error;
  ASSERT_EQ(graph->hosts.size(), 2u);
  EXPECT_EQ(graph->hosts[0].device, "wan-a");
  EXPECT_EQ(graph->hosts[0].prefixes.size(), 2u);
  EXPECT_EQ(graph->hosts[1].netns, "/run/netns/b");
  EXPECT_EQ(graph->hosts[1].address, "10.0.2.1/24");
  const LinkSettings& there = graph->edges[0].settings;
  EXPECT_EQ(there.delay_ns, 1'500'500);
  EXPECT_EQ(there.ps_per_byte, 80'000);
  EXPECT_EQ(there.loss, 0.01);
  EXPECT_EQ(there.queue_bytes, 65536);
  EXPECT_EQ(graph->edges[1].settings.queue_bytes, 375'000);  // 30 ms at 100 Mb/s
}

TEST(PairsFile, NamesLineAndKeyOfAMistake) {
  EXPECT_EQ(ErrorOf("link a b loss=2"),
            "file:4: key 'loss': expected a probability from 0 to 1, got '2'");
  EXPECT_EQ(ErrorOf("link a b loss=nan"),
            "file:4: key 'loss': expected a probability from 0 to 1, got 'nan'");
  EXPECT_EQ(ErrorOf("\nlink a b delay_us=fast"),
            "file:5: key 'delay_us': expected microseconds from 0 to 100000000, got 'fast'");
  EXPECT_EQ(ErrorOf("link a b rate_mbps="),
            "file:4: key 'rate_mbps': expected Mb/s from 0.001 to 1000000, got ''");
  EXPECT_EQ(ErrorOf("link a b jitter_us=3"), "file:4: key 'jitter_us' is not known");
  EXPECT_EQ(ErrorOf("link a b loss=0 loss=0"), "file:4: key 'loss' is given twice");
  EXPECT_EQ(ErrorOf("link a b fast"), "file:4: expected KEY=VALUE, got 'fast'");
  EXPECT_EQ(ErrorOf("link a x"), "file:4: no node 'x' above this line");
  EXPECT_EQ(ErrorOf("link a a"), "file:4: a link joins two nodes");
  EXPECT_EQ(ErrorOf("link a b\nlink a b"), "file:5: this link is there already");
  EXPECT_EQ(ErrorOf("node a device=x prefix=10.0.3.0/24"), "file:4: node 'a' is there already");
  EXPECT_EQ(ErrorOf("node c prefix=10.0.3.0/24"), "file:4: key 'device' is missing");
  EXPECT_EQ(ErrorOf("node c device=x"), "file:4: key 'prefix' is missing");
  EXPECT_EQ(ErrorOf("node c device=x prefix=10.0.3.0/40"),
            "file:4: key 'prefix': expected ADDRESS/LENGTH[,...], got '10.0.3.0/40'");
  EXPECT_EQ(ErrorOf("site a"), "file:4: expected 'node' or 'link', got 'site'");
}

TEST(PairsFile, NeedsTwoNodes) {
  std::string error;
  EXPECT_FALSE(ParsePairs("", "file", error));
  EXPECT_EQ(error, "file: expected two nodes or more, got 0");
}

}  // namespace
}  // namespace sekisho::wan
