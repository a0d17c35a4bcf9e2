// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/routes.h"

#include <gtest/gtest.h>

#include "deploy/wan/pairs_file.h"
#include "deploy/wan/tree_file.h"

namespace sekisho::wan {
namespace {

Graph Tree(const char* text) {
  std::string error;
  const auto graph = ParseTree(text, "tree", error);
  EXPECT_TRUE(graph) << error;
  return *graph;
}

TEST(Routes, SumOfTheDirectedDelaysOfATree) {
  // h0 and h1 at s1, h2 at s2, both switches at s0.
  const Graph graph =
      Tree("h0 s1 10 1 0\nh1 s1 20 2 0\ns1 s0 300 30 0\nh2 s2 40 4 0\ns2 s0 500 50 0\n");
  std::string error;
  const auto routes = Routes::Make(graph, error);

  ASSERT_TRUE(routes) << error;
  EXPECT_EQ(PathDelayNs(graph, *routes, 0, 1), (10 + 2) * 1000);
  EXPECT_EQ(PathDelayNs(graph, *routes, 1, 0), (20 + 1) * 1000);
  EXPECT_EQ(PathDelayNs(graph, *routes, 0, 2), (10 + 300 + 50 + 4) * 1000);
  EXPECT_EQ(PathDelayNs(graph, *routes, 2, 0), (40 + 500 + 30 + 1) * 1000);
  EXPECT_EQ(PathDelayNs(graph, *routes, 2, 2), 0);
}

TEST(Routes, OfTwoWaysTheShorter) {
  const Graph graph = Tree("h0 a 1 1 0\nh1 b 1 1 0\na c 5 5 0\nc b 5 5 0\na d 2 9 0\nd b 2 9 0\n");
  std::string error;
  const auto routes = Routes::Make(graph, error);

  ASSERT_TRUE(routes) << error;
  EXPECT_EQ(PathDelayNs(graph, *routes, 0, 1), (1 + 2 + 2 + 1) * 1000);
  EXPECT_EQ(PathDelayNs(graph, *routes, 1, 0), (1 + 5 + 5 + 1) * 1000);
}

TEST(Routes, NamesHostsWithoutAWay) {
  std::string error;

  EXPECT_FALSE(Routes::Make(Tree("h0 a 1 1 0\nh1 b 1 1 0\n"), error));

  EXPECT_EQ(error, "there is no way from h1 to h0");
}

TEST(Routes, APairTakesItsOwnLinkEvenIfADetourIsShorter) {
  std::string error;
  const auto graph = ParsePairs(
      "node a device=a prefix=10.0.0.1\nnode b device=b prefix=10.0.0.2\nnode c device=c "
      "prefix=10.0.0.3\n"
      "link a b delay_us=100\nlink b a\nlink a c delay_us=1\nlink c a\nlink b c\nlink c b "
      "delay_us=1\n",
      "pairs", error);
  ASSERT_TRUE(graph) << error;

  const auto routes = Routes::Make(*graph, error);

  ASSERT_TRUE(routes) << error;
  EXPECT_EQ(PathDelayNs(*graph, *routes, 0, 1), 100'000);
}

}  // namespace
}  // namespace sekisho::wan
