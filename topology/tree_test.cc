// SPDX-License-Identifier: Apache-2.0
#include "topology/tree.h"

#include <gmock/gmock.h>

#include "topology/text_format.h"

namespace sekisho::topology {
namespace {

TEST(Tree, WithoutAHostHasNoSwitchThatOnlyItNeeded) {
  const auto named = ParseTree("a x 1\nb x 2\nx y 4\nc y 3\nd y 5\n", "tree");
  ASSERT_TRUE(named.ok());

  const Tree tree = Without(named->tree, {false, true, false, false});

  EXPECT_EQ(PrintTree(tree, {"a", "b", "c", "d"}), "a s0 5.000\nc s0 3.000\nd s0 5.000\n");
}

TEST(Tree, WithoutASwitchOfTwoLinksKnowsThatOneOfThemIsARelays) {
  const auto named = ParseTree("a x 1\nx y 4 relayed\ny b 2\n", "tree");
  ASSERT_TRUE(named.ok());

  EXPECT_EQ(PrintTree(Simplified(named->tree), {"a", "b"}), "a b 7.000 relayed\n");
}

}  // namespace
}  // namespace sekisho::topology
