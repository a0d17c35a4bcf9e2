// SPDX-License-Identifier: Apache-2.0
#include "allocator/usage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::allocator {
namespace {

using ::testing::ElementsAre;

const std::vector<size_t> kOrder = {0, 1, 2};

Shape Wants(int processes, int host_count = 0, bool exclusive = false) {
  return {processes, host_count, exclusive, std::vector<bool>(3, true)};
}

TEST(Usage, TakesTheOneNodeThatAJobFillsBest) {
  Usage usage(3, 4);
  usage.Add({{1, 2}}, false);

  EXPECT_THAT(*usage.Place(Wants(2), kOrder), ElementsAre(Share{1, 2}));
  EXPECT_THAT(*usage.Place(Wants(3), kOrder), ElementsAre(Share{0, 3}));
}

TEST(Usage, FillsNodesInOrderIfOneIsNotEnough) {
  Usage usage(3, 4);
  usage.Add({{0, 3}}, false);

  EXPECT_THAT(*usage.Place(Wants(6), kOrder), ElementsAre(Share{0, 1}, Share{1, 4}, Share{2, 1}));
  EXPECT_FALSE(usage.Place(Wants(10), kOrder));
}

TEST(Usage, DealsProcessesEvenlyOverHosts) {
  Usage usage(3, 4);

  EXPECT_THAT(*usage.Place(Wants(4, 2), kOrder), ElementsAre(Share{0, 2}, Share{1, 2}));
  EXPECT_THAT(*usage.Place(Wants(5, 3), kOrder),
              ElementsAre(Share{0, 2}, Share{1, 2}, Share{2, 1}));
  EXPECT_FALSE(usage.Place(Wants(9, 2), kOrder));
}

TEST(Usage, DealsWhatANodeCannotTakeToTheOthers) {
  Usage usage(3, 4);
  usage.Add({{0, 3}}, false);

  EXPECT_THAT(*usage.Place(Wants(9, 3), kOrder),
              ElementsAre(Share{1, 4}, Share{2, 4}, Share{0, 1}));
}

TEST(Usage, KeepsExclusiveNodesAlone) {
  Usage usage(3, 4);
  usage.Add({{0, 1}}, true);
  usage.Add({{1, 1}}, false);

  EXPECT_EQ(usage.Free(0, false), 0);
  EXPECT_THAT(*usage.Place(Wants(1, 0, true), kOrder), ElementsAre(Share{2, 1}));
  EXPECT_FALSE(usage.Place(Wants(5, 0, true), kOrder));
}

TEST(Usage, GivesNothingOnNodesThatAreDownOrUnfit) {
  Usage usage(3, 4);
  usage.SetUp(0, false);
  Shape shape = Wants(4);
  shape.usable[1] = false;

  EXPECT_THAT(*usage.Place(shape, kOrder), ElementsAre(Share{2, 4}));
}

}  // namespace
}  // namespace sekisho::allocator
