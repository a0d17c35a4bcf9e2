// SPDX-License-Identifier: Apache-2.0
#include "qserver/hand_over_line.h"

#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;

std::vector<std::string> TakeAll(HandOverLine& line) {
  std::vector<std::string> taken;
  while (!line.is_empty()) {
    taken.push_back(line.TakeFirst().second);
  }
  return taken;
}

class HandOverLineTest : public testing::Test {
 protected:
  HandOverLineTest() {
    line_.Add(3, "c");
    line_.Add(1, "z");
    line_.Add(2, "b");
  }
  HandOverLine line_;
};

TEST_F(HandOverLineTest, IsInTheOrderOfSubmission) {
  EXPECT_THAT(TakeAll(line_), ElementsAre("z", "b", "c"));
}

TEST_F(HandOverLineTest, WhatIsNotTakenKeepsItsPlace) {
  const auto first = line_.TakeFirst();
  const auto second = line_.TakeFirst();

  line_.PutBack(second);
  line_.PutBack(first);

  EXPECT_THAT(TakeAll(line_), ElementsAre("z", "b", "c"));
}

TEST_F(HandOverLineTest, WhatAloneIsNotTakenGoesBehindAlsoThoseThatComeLater) {
  line_.PutBehind(line_.TakeFirst());
  line_.Add(4, "d");

  EXPECT_THAT(TakeAll(line_), ElementsAre("b", "c", "d", "z"));
}

TEST_F(HandOverLineTest, TheOthersAreTakenInTurn) {
  std::vector<std::string> others;
  for (int i = 0; i < 4; ++i) {
    const auto first = line_.TakeFirst();
    const auto other = line_.TakeOther();
    ASSERT_TRUE(other);
    others.push_back(other->second);
    line_.PutBack(*other);
    line_.PutBack(first);
  }

  EXPECT_THAT(others, ElementsAre("b", "c", "b", "c"));
}

TEST_F(HandOverLineTest, ThoseBehindAreTakenInTurnAlsoIfTheyComeBackAtOnce) {
  for (int i = 0; i < 3; ++i) {
    line_.PutBehind(line_.TakeFirst());
  }

  std::vector<std::string> taken;
  for (int i = 0; i < 4; ++i) {
    const auto next = line_.TakeFirst();
    taken.push_back(next.second);
    line_.PutBack(next);
  }

  EXPECT_THAT(taken, ElementsAre("z", "b", "c", "z"));
}

TEST_F(HandOverLineTest, AnotherIsOneThatIsNotBehindIfThereIsOne) {
  line_.PutBehind(line_.TakeFirst());
  const auto first = line_.TakeFirst();

  EXPECT_EQ(line_.TakeOther()->second, "c");
  EXPECT_EQ(line_.TakeOther()->second, "z");
  line_.PutBack(first);
}

TEST_F(HandOverLineTest, OneAloneHasNoOther) {
  HandOverLine line;
  line.Add(1, "a");
  line.TakeFirst();

  EXPECT_FALSE(line.TakeOther());
}

TEST_F(HandOverLineTest, IsIdleWithThoseBehindAlone) {
  EXPECT_FALSE(line_.is_idle());
  line_.PutBehind(line_.TakeFirst());
  line_.Remove(2);
  EXPECT_FALSE(line_.is_idle());
  line_.Remove(3);
  EXPECT_TRUE(line_.is_idle());
  EXPECT_FALSE(line_.is_empty());
  line_.Remove(1);
  EXPECT_TRUE(line_.is_empty());
}

}  // namespace
}  // namespace sekisho::qserver
