// SPDX-License-Identifier: Apache-2.0
#include "topology/text_format.h"

#include <gmock/gmock.h>

namespace sekisho::topology {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string ErrorOf(const absl::Status& status) { return std::string(status.message()); }

TEST(Hosts, HaveANameAndPerhapsASite) {
  const auto hosts = ParseHosts("# all\nh0 c2\nh1 c1\nh2 c2\n", "hosts");

  ASSERT_TRUE(hosts.ok());
  EXPECT_THAT(hosts->names, ElementsAre("h0", "h1", "h2"));
  EXPECT_THAT(hosts->cluster_of, ElementsAre(0, 1, 0));
}

TEST(Hosts, AreNoHintsIfOneLineNamesNoSite) {
  const auto hosts = ParseHosts("h0 c2\nh1\n", "hosts");

  ASSERT_TRUE(hosts.ok());
  EXPECT_TRUE(hosts->cluster_of.empty());
}

TEST(Hosts, AreRefusedTwice) {
  EXPECT_THAT(ErrorOf(ParseHosts("a\nb\na\n", "hosts").status()), HasSubstr("hosts:3: "));
}

TEST(Hosts, AreRefusedIfThereAreNone) { EXPECT_FALSE(ParseHosts("# none\n", "hosts").ok()); }

TEST(TreeText, ComesBackAsItWasPrinted) {
  Tree tree{.host_count = 3, .vertex_count = 4, .links = {{0, 3, 20}, {1, 3, 30}, {2, 3, 41}}};

  const std::string text = PrintTree(tree, {"a", "b", "c"});
  const auto read = ParseTree(text, "tree");

  EXPECT_EQ(text, "a s0 10.000\nb s0 15.000\nc s0 20.500\n");
  ASSERT_TRUE(read.ok());
  EXPECT_EQ(read->tree.host_count, 3);
  EXPECT_EQ(read->names.back(), "s0");
}

TEST(TreeText, SaysWhichLinksAreARelays) {
  Tree tree{.host_count = 2, .vertex_count = 2, .links = {{0, 1, 20, 1, true}}};

  const std::string text = PrintTree(tree, {"a", "b"});
  const auto read = ParseTree(text, "tree");

  EXPECT_EQ(text, "a b 10.000 relayed\n");
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->tree.links[0].is_relayed);
  EXPECT_FALSE(ParseTree("a b 10 by-air\n", "tree").ok());
}

TEST(TreeText, NeverGivesASwitchTheNameOfAHost) {
  Tree tree{.host_count = 3, .vertex_count = 4, .links = {{0, 3, 20}, {1, 3, 30}, {2, 3, 41}}};

  EXPECT_EQ(VertexNames(tree, {"s0", "s1", "sw3"})[3].substr(0, 3), "sw_");
}

TEST(TreeText, IsRefusedIfItIsNoTree) {
  EXPECT_FALSE(ParseTree("a b 1\nb c 1\nc a 1\n", "tree").ok());
  EXPECT_FALSE(ParseTree("a b 1\nc d 1\n", "tree").ok());
  EXPECT_FALSE(ParseTree("a b 1\na b 1\nc d 1\n", "tree").ok());  // a ring and another part
  EXPECT_THAT(ErrorOf(ParseTree("a b -1\n", "tree").status()), HasSubstr("tree:1: "));
  EXPECT_FALSE(ParseTree("a a 1\n", "tree").ok());
}

TEST(OracleLine, AsksAtAWholeMicrosecond) {
  EXPECT_EQ(PrintRequest({.from = 3, .to = 4, .sets = 1, .stop = 5, .most = 6}, 12.2),
            "M 3 4 1 5 6 13\n");
}

TEST(OracleLine, IsAnAnswerOnlyWithFivePossibleNumbers) {
  const Request request{.from = 0, .to = 1, .sets = 1, .stop = 10, .most = 10};

  EXPECT_TRUE(ParseAnswer("100.5 100.5 100.5 10 1500", request)->is_ok);
  EXPECT_FALSE(ParseAnswer("-1 -1 -1 0 1000000", request)->is_ok);
  EXPECT_FALSE(ParseAnswer("nan nan nan 3 10", request)->is_ok);
  EXPECT_FALSE(ParseAnswer("inf inf inf 3 10", request)->is_ok);
  EXPECT_FALSE(ParseAnswer("100 100 100 11 1500", request)->is_ok);
  EXPECT_FALSE(ParseAnswer("100 100 100 10 -1500", request)->is_ok);
  EXPECT_FALSE(ParseAnswer("100.5 100.5 100.5 10 1500", request)->is_relayed);
  EXPECT_TRUE(ParseAnswer("100.5 100.5 100.5 10 1500 relayed", request)->is_relayed);
  EXPECT_FALSE(ParseAnswer("100.5 100.5 100.5 10 1500 delayed", request).has_value());
  EXPECT_FALSE(ParseAnswer("what?", request).has_value());
  EXPECT_FALSE(ParseAnswer("", request).has_value());
}

}  // namespace
}  // namespace sekisho::topology
