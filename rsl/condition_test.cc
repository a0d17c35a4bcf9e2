// SPDX-License-Identifier: Apache-2.0
#include "rsl/condition.h"

#include <gtest/gtest.h>

namespace sekisho::rsl {
namespace {

TEST(Condition, TextIsOneOfTheValuesOrNone) {
  EXPECT_TRUE(SatisfiesText({"arch", Operator::kEqual, {"x86_64", "aarch64"}}, "aarch64"));
  EXPECT_FALSE(SatisfiesText({"arch", Operator::kEqual, {"x86_64", "aarch64"}}, "sparc"));
  EXPECT_TRUE(SatisfiesText({"arch", Operator::kNotEqual, {"x86_64", "aarch64"}}, "sparc"));
  EXPECT_FALSE(SatisfiesText({"arch", Operator::kNotEqual, {"x86_64", "aarch64"}}, "x86_64"));
}

TEST(Condition, NumberComparesWithEveryOperator) {
  const struct {
    std::string_view op;
    bool below, equal, above;
  } cases[] = {{"=", false, true, false}, {"!=", true, false, true}, {">", false, false, true},
               {">=", false, true, true}, {"<", true, false, false}, {"<=", true, true, false}};
  for (const auto& test : cases) {
    const Condition condition{"memory", *OperatorFromText(test.op), {"4096"}};
    EXPECT_EQ(SatisfiesNumber(condition, 4095), test.below) << test.op;
    EXPECT_EQ(SatisfiesNumber(condition, 4096), test.equal) << test.op;
    EXPECT_EQ(SatisfiesNumber(condition, 4097), test.above) << test.op;
  }
  EXPECT_EQ(OperatorFromText("=="), std::nullopt);
  EXPECT_FALSE(SatisfiesNumber({"memory", Operator::kEqual, {"much"}}, 1));
}

TEST(Condition, TagsAreAllThereOrAllAbsent) {
  const std::string node[] = {"gpu", "big"};
  EXPECT_TRUE(SatisfiesTags({"tags", Operator::kEqual, {"gpu", "big"}}, node));
  EXPECT_FALSE(SatisfiesTags({"tags", Operator::kEqual, {"gpu", "fast"}}, node));
  EXPECT_TRUE(SatisfiesTags({"tags", Operator::kNotEqual, {"slow"}}, node));
  EXPECT_FALSE(SatisfiesTags({"tags", Operator::kNotEqual, {"slow", "gpu"}}, node));
}

}  // namespace
}  // namespace sekisho::rsl
