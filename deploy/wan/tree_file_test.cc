// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/tree_file.h"

#include <gtest/gtest.h>

namespace sekisho::wan {
namespace {

std::string ErrorOf(const std::string& text) {
  std::string error;
  EXPECT_FALSE(ParseTree(text, "file", error)) << text;
  return error;
}

TEST(TreeFile, VerticesWithOneCableAreHosts) {
  std::string error;
  auto graph = ParseTree("# a cluster\ns0 s1 2.25 3 1000\nh7 s0 20 21 100 0.02\nh1 s1 20 20 0\n",
                         "file", error);

  ASSERT_TRUE(graph) << error;
  ASSERT_EQ(graph->hosts.size(), 2u);
  EXPECT_EQ(graph->hosts[0].name, "h7");
  EXPECT_EQ(graph->hosts[1].name, "h1");
  EXPECT_EQ(graph->edges[0].settings.delay_ns, 2250);
  EXPECT_EQ(graph->edges[1].settings.delay_ns, 3000);
  EXPECT_EQ(graph->edges[2].settings.ps_per_byte, 80'000);
  EXPECT_EQ(graph->edges[3].settings.loss, 0.02);
  EXPECT_EQ(graph->edges[5].settings.ps_per_byte, 0);
}

TEST(TreeFile, HostsAreNumberedInTheOrderOfTheirFile) {
  std::string error;
  auto graph = ParseTree("h0 s 1 1 0\nh1 s 1 1 0\nh2 s 1 1 0\n", "file", error);

  ASSERT_TRUE(ParseHosts("h2 c0\nh0 c1\n", "hosts", *graph, error)) << error;
  ASSERT_TRUE(NumberHosts(*graph, {10 << 24, 8}, error)) << error;

  ASSERT_EQ(graph->hosts.size(), 2u);
  EXPECT_EQ(graph->hosts[0].name, "h2");
  EXPECT_EQ(graph->hosts[0].cluster, "c0");
  EXPECT_EQ(graph->hosts[0].address, "10.0.0.1/8");
  EXPECT_EQ(graph->hosts[1].address, "10.0.0.2/8");
}

TEST(TreeFile, NamesLineAndWordOfAMistake) {
  EXPECT_EQ(ErrorOf("a b 1 1 100\na c 1 x 100\n"),
            "file:2: latency_vu_us: expected 0 to 100000000, got 'x'");
  EXPECT_EQ(ErrorOf("a b -1 1 100\n"), "file:1: latency_uv_us: expected 0 to 100000000, got '-1'");
  EXPECT_EQ(ErrorOf("a b 1 1 fast\n"), "file:1: mbps: expected 0 to 1000000, got 'fast'");
  EXPECT_EQ(ErrorOf("a b 1 1 1 1.5\n"), "file:1: loss: expected 0 to 1, got '1.5'");
  EXPECT_EQ(ErrorOf("a b 1 1\n"),
            "file:1: expected 5 or 6 words (u v latency_uv_us latency_vu_us mbps [loss]), got 4");
  EXPECT_EQ(ErrorOf("a ../b 1 1 1\n"),
            "file:1: expected two names of letters, digits, - _ and ., got 'a' and '../b'");
  EXPECT_EQ(ErrorOf("\n# nothing\n"), "file: no cable in it");
}

TEST(TreeFile, NamesAHostThatIsNotThere) {
  std::string error;
  auto graph = ParseTree("a b 1 1 0\n", "file", error);

  EXPECT_FALSE(ParseHosts("a\nc\n", "hosts", *graph, error));
  EXPECT_EQ(error, "hosts:2: no cable ends at 'c'");
  EXPECT_FALSE(ParseHosts("a\na\n", "hosts", *graph, error));
  EXPECT_EQ(error, "hosts:2: host 'a' is there already");
}

TEST(TreeFile, RefusesATreeWithoutHosts) {
  std::string error;
  auto graph = ParseTree("a b 1 1 0\nb c 1 1 0\nc a 1 1 0\n", "file", error);

  EXPECT_FALSE(NumberHosts(*graph, {10 << 24, 8}, error));
  EXPECT_EQ(error, "no host: every vertex has two cables or more");
}

TEST(TreeFile, RefusesMoreHostsThanAddresses) {
  std::string error;
  auto graph = ParseTree("h0 s 1 1 0\nh1 s 1 1 0\nh2 s 1 1 0\n", "file", error);

  EXPECT_FALSE(NumberHosts(*graph, {10 << 24, 30}, error));
  EXPECT_EQ(error, "3 hosts do not fit into 10.0.0.0/30");
}

}  // namespace
}  // namespace sekisho::wan
