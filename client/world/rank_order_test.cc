// SPDX-License-Identifier: Apache-2.0
#include "client/world/rank_order.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using testing::ElementsAre;

std::string ErrorOf(const std::string& text, int ranks) {
  const auto order = ParseRankOrder(text, "map", ranks);
  return order.ok() ? "" : std::string(order.status().message().data(), order.status().message().size());
}

TEST(RankOrder, LineIIsTheSlotOfRankI) {
  const auto order = ParseRankOrder("# of four\n2\n0\n3\n1\n", "map", 4);
  ASSERT_TRUE(order.ok());
  EXPECT_THAT(*order, ElementsAre(1, 3, 0, 2));

  std::vector<RankRange> parts = {{"siteA", 0, 1}, {"siteB", 1, 3}};
  ApplyRankOrder(*order, parts);

  EXPECT_THAT(parts[0].ranks, ElementsAre(1));
  EXPECT_THAT(parts[1].ranks, ElementsAre(3, 0, 2));
  EXPECT_EQ(parts[1].RankOf(2), 2);
}

TEST(RankOrder, WithoutAMapIsThatOfTheMachineFile) {
  const RankRange part{"siteB", 4, 3};

  EXPECT_EQ(part.RankOf(0), 4);
  EXPECT_EQ(part.RankOf(2), 6);
}

TEST(RankOrder, NamesThePlaceOfEachMistake) {
  EXPECT_EQ(ErrorOf("0\n1\n1\n", 3), "map:3: slot 1 is rank 1's, by line 2: a slot is one process's");
  EXPECT_EQ(ErrorOf("0\n# nothing\n1\n", 3), "map:3: expected 3 lines, one a rank, saw 2");
  EXPECT_EQ(ErrorOf("0\n1\n2\n0\n", 3), "map:4: expected 3 lines, one a rank, saw more");
  EXPECT_EQ(ErrorOf("0 1\n", 2),
            "map:1: expected one slot, the place of a rank in the machine file's order");
  EXPECT_EQ(ErrorOf("0\n2\n", 2).substr(0, 7), "map:2: ");
  EXPECT_EQ(ErrorOf("0\n-1\n", 2).substr(0, 7), "map:2: ");
  EXPECT_EQ(ErrorOf("0\nx\n", 2).substr(0, 7), "map:2: ");
  EXPECT_EQ(ErrorOf("0\n1", 2), "map:2: the last line does not end: the file is cut off");
  EXPECT_NE(ErrorOf("", 1), "");
}

}  // namespace
}  // namespace sekisho::client
