// SPDX-License-Identifier: Apache-2.0
#include "allocator/match.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::allocator {
namespace {

proto::Demand::Condition Condition(const std::string& attribute, const std::string& op,
                                   const std::vector<std::string>& values) {
  proto::Demand::Condition condition;
  condition.set_attribute(attribute);
  condition.set_op(op);
  for (const std::string& value : values) {
    condition.add_value(value);
  }
  return condition;
}

class MatchTest : public ::testing::Test {
 protected:
  Match Of(const std::string& attribute, const std::string& op,
           const std::vector<std::string>& values) {
    const proto::Demand::Condition condition = Condition(attribute, op, values);
    EXPECT_TRUE(CheckCondition(condition).ok()) << CheckCondition(condition);
    return Matches(resource_, facts_, condition);
  }

  Resource resource_{"A", false, 4, 450, "", "", 0, {"ib", "gpu"}, {}, {"a0"}};
  NodeFacts facts_{&resource_.nodes[0], "x86_64", "debian12", 2048, false};
};

TEST_F(MatchTest, ComparesNumbersByEveryOperator) {
  EXPECT_EQ(Of("memory", ">=", {"2048"}), Match::kYes);
  EXPECT_EQ(Of("memory", ">", {"2048"}), Match::kNo);
  EXPECT_EQ(Of("memory", "=", {"2048"}), Match::kYes);
  EXPECT_EQ(Of("memory", "!=", {"2048"}), Match::kNo);
  EXPECT_EQ(Of("clock", "<", {"451"}), Match::kYes);
  EXPECT_EQ(Of("clock", "<=", {"449"}), Match::kNo);
}

TEST_F(MatchTest, TakesAnyOfSeveralNames) {
  EXPECT_EQ(Of("resource", "=", {"B", "A"}), Match::kYes);
  EXPECT_EQ(Of("resource", "!=", {"B", "A"}), Match::kNo);
  EXPECT_EQ(Of("node", "=", {"a1"}), Match::kNo);
  EXPECT_EQ(Of("arch", "=", {"x86_64"}), Match::kYes);
  EXPECT_EQ(Of("os", "!=", {"debian12"}), Match::kNo);
}

TEST_F(MatchTest, WantsAllTagsAndRefusesAny) {
  EXPECT_EQ(Of("tags", "=", {"ib", "gpu"}), Match::kYes);
  EXPECT_EQ(Of("tags", "=", {"ib", "ssd"}), Match::kNo);
  EXPECT_EQ(Of("tags", "!=", {"ssd"}), Match::kYes);
  EXPECT_EQ(Of("tags", "!=", {"ssd", "ib"}), Match::kNo);
}

TEST_F(MatchTest, DoesNotGuessWhatNobodyHasSaid) {
  facts_.memory_mb = 0;
  facts_.architecture.clear();

  EXPECT_EQ(Of("memory", ">=", {"1"}), Match::kUnknown);
  EXPECT_EQ(Of("arch", "!=", {"sparc"}), Match::kUnknown);
  facts_.is_up = true;  // its agent has spoken
  EXPECT_EQ(Of("memory", ">=", {"1"}), Match::kNo);
}

TEST(Condition, IsRefusedIfItMeansNothing) {
  EXPECT_FALSE(CheckCondition(Condition("colour", "=", {"red"})).ok());
  EXPECT_FALSE(CheckCondition(Condition("memory", ">=", {"2g"})).ok());
  EXPECT_FALSE(CheckCondition(Condition("memory", ">=", {"1", "2"})).ok());
  EXPECT_FALSE(CheckCondition(Condition("memory", ">=", {})).ok());
  EXPECT_FALSE(CheckCondition(Condition("arch", ">", {"x"})).ok());
  EXPECT_FALSE(CheckCondition(Condition("tags", "=", {})).ok());
}

}  // namespace
}  // namespace sekisho::allocator
