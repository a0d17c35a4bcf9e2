// SPDX-License-Identifier: Apache-2.0
#include "glue/where.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::glue {
namespace {

using ::testing::HasSubstr;

Facts Known() {
  Facts facts;
  facts["freeslots"] = int64_t{4};
  facts["arch"] = std::vector<std::string>{"amd64", "arm64"};
  facts["out"] = true;
  facts["in"] = false;
  facts["site"] = std::vector<std::string>{"site A"};
  facts["wait"] = Fact();
  return facts;
}

bool Holds(const char* text) {
  const auto where = Where::Parse(text);
  EXPECT_TRUE(where.ok()) << text << ": " << where.status().ToString();
  return where.ok() && where->Holds(Known());
}

TEST(Where, ComparesNumbersWordsAndTruths) {
  EXPECT_TRUE(Holds("freeslots>=4 && arch==amd64"));
  EXPECT_TRUE(Holds("FreeSlots = 4"));
  EXPECT_FALSE(Holds("freeslots > 4"));
  EXPECT_TRUE(Holds("freeslots < 5 && freeslots <= 4 && freeslots != 3"));
  EXPECT_TRUE(Holds("arch == arm64"));
  EXPECT_TRUE(Holds("arch == x86_64"));
  EXPECT_FALSE(Holds("arch != amd64"));
  EXPECT_TRUE(Holds("out && !in"));
  EXPECT_TRUE(Holds("in == false"));
  EXPECT_TRUE(Holds("site == 'site A'"));
}

TEST(Where, AndBindsTighterThanOr) {
  EXPECT_TRUE(Holds("freeslots > 9 && in || out"));
  EXPECT_FALSE(Holds("freeslots > 9 && (in || out)"));
}

TEST(Where, WhatIsNotSaidMeetsNoComparison) {
  EXPECT_FALSE(Holds("wait < 100"));
  EXPECT_FALSE(Holds("wait >= 0"));
  EXPECT_FALSE(Holds("wait != 5"));
}

TEST(Where, SaysWhichConditionFailsAndTheValue) {
  const auto where = Where::Parse("out && freeslots >= 8");

  EXPECT_EQ(where->WhyNot(Known()), "freeslots >= 8 (is 4)");
  EXPECT_EQ(Where::Parse("!out")->WhyNot(Known()), "!out (is true)");
  EXPECT_EQ(Where::Parse("!(freeslots == 4)")->WhyNot(Known()), "!freeslots == 4 (is 4)");
}

TEST(Where, SaysWhereAndWhatWasExpected) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "column 1: expected one of"},      {"colour == red", "column 1: expected one of"},
      {"freeslots >=", "column 13: expected a value"}, {"freeslots > many", "a whole number"},
      {"(out", "column 5: expected ')'"},     {"out in", "column 5: expected &&"},
      {"arch == \"amd", "a closing quote"},
  };
  for (const auto& [text, message] : wrong) {
    const auto where = Where::Parse(text);
    ASSERT_FALSE(where.ok()) << text;
    EXPECT_THAT(std::string(where.status().message().data(), where.status().message().size()), HasSubstr(message)) << text;
  }
}

TEST(Where, DeepNestingIsRefused) {
  EXPECT_FALSE(Where::Parse(std::string(10'000, '!') + "out").ok());
  EXPECT_FALSE(Where::Parse(std::string(10'000, '(') + "out").ok());
}

}  // namespace
}  // namespace sekisho::glue
