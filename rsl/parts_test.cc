// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rsl/gram_errors.h"
#include "rsl/job_description.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::rsl {
namespace {

TEST(DescribeParts, LabelsThePartsOfAMultiRequest) {
  const auto parts = ParseAndDescribeParts(
      "+(&(resourceManagerContact=a)(executable=x)(subjobStartType=no-barrier))"
      "(&(resourceManagerContact=b)(label=second)(executable=y)(subjobCommsType=independent)(count="
      "3))",
      {});

  ASSERT_TRUE(parts.ok()) << parts.error().ToString();
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ((*parts)[0].part->contact, "a");
  EXPECT_EQ((*parts)[0].part->label, "subjob 0");
  EXPECT_EQ((*parts)[0].part->start, StartType::kNoBarrier);
  EXPECT_EQ((*parts)[0].part->comms, CommsType::kBlockingJoin);
  EXPECT_EQ((*parts)[1].part->label, "second");
  EXPECT_EQ((*parts)[1].part->comms, CommsType::kIndependent);
  EXPECT_EQ((*parts)[1].count, 3);
}

TEST(DescribeParts, RefusesTwoPartsOfOneLabelAndAPartWithoutContact) {
  EXPECT_EQ(ParseAndDescribeParts("+(&(resourceManagerContact=a)(label=l)(executable=x))"
                                  "(&(resourceManagerContact=b)(label=l)(executable=x))",
                                  {})
                .error()
                .attribute,
            "label");
  EXPECT_EQ(ParseAndDescribeParts("+(&(executable=x))", {}).error().gram_code,
            gram::UNDEFINED_ATTRIBUTE);
  EXPECT_EQ(ParseAndDescribe("+(&(executable=x))", {}).error().gram_code, gram::BAD_RSL);
}

TEST(SplitParts, GivesEachPartTheSubstitutionsAroundIt) {
  const auto spec = Parse("+(rsl_substitution=(A a))(&(executable=$(A)))(executable=y)");
  const auto parts = SplitParts(*spec);

  ASSERT_TRUE(parts.ok());
  ASSERT_EQ(parts->size(), 2u);
  EXPECT_EQ(Print((*parts)[0]), "&(rslsubstitution=(A a))(executable=$(A))");
  EXPECT_EQ(Print((*parts)[1]), "&(rslsubstitution=(A a))(executable=y)");
}

TEST(SplitParts, RefusesDefinitionsThatWouldMultiply) {
  const std::string text = "+(rsl_substitution=(A " + std::string(300'000, 'x') + "))";
  std::string parts;
  for (int i = 0; i < 20; ++i) {
    parts += "(&(executable=x))";
  }

  EXPECT_EQ(SplitParts(*Parse(text + parts)).error().gram_code, gram::INVALID_REQUEST);
  EXPECT_TRUE(SplitParts(*Parse(text + "(&(executable=x))")).ok());
}

}  // namespace
}  // namespace sekisho::rsl
