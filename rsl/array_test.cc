// SPDX-License-Identifier: Apache-2.0
#include "rsl/array.h"

#include <string>

#include <gtest/gtest.h>

#include "rsl/job_description.h"
#include "rsl/parser.h"
#include "rsl/printer.h"

namespace sekisho::rsl {
namespace {

std::string Text(std::string_view text) {
  const auto array = ParseArray(text);
  if (!array) {
    return "refused";
  }
  std::string out;
  for (const Array::Range& range : array->ranges) {
    out += std::to_string(range.first) + ".." + std::to_string(range.last) + "/" + std::to_string(range.step) + " ";
  }
  return out + "%" + std::to_string(array->at_once);
}

TEST(RslArray, TakesNumbersRangesStepsAndALimit) {
  EXPECT_EQ(Text("1-1000%50"), "1..1000/1 %50");
  EXPECT_EQ(Text("0"), "0..0/1 %0");
  EXPECT_EQ(Text("1,3,10-20:2"), "1..1/1 3..3/1 10..20/2 %0");
  EXPECT_EQ(Text("1-10:4"), "1..9/4 %0");
  EXPECT_EQ(Text("2147483647"), "2147483647..2147483647/1 %0");
}

TEST(RslArray, RefusesWhatIsNotAscendingOrNotWhole) {
  for (const char* text : {"", "-1", "5-1", "1-", "1-2:0", "1,1", "3,1", "1-5,5", "1%0", "1%", "%5", "1 - 2", "1-2-3",
                           "x", "1,", "2147483648", "1-2:"}) {
    EXPECT_EQ(Text(text), "refused") << text;
  }
}

TEST(RslArray, HasALimitOfElements) {
  EXPECT_NE(Text("1-100000"), "refused");
  EXPECT_EQ(Text("1-100001"), "refused");
  EXPECT_EQ(Text("1-60000,100000-160000"), "refused");
}

TEST(RslArray, IsAnAttributeWhoseIndexTextsMayName) {
  const auto job = ParseAndDescribe("&(executable=/bin/echo)(array=1-9%2)(arguments=a$(SEKISHO_ARRAY_INDEX))"
                                    "(stdout=out.$(SEKISHO_ARRAY_INDEX))",
                                    {{"SEKISHO_ARRAY_INDEX", std::string(kArrayIndexMark)}});
  ASSERT_TRUE(job.ok());
  ASSERT_TRUE(job->array.has_value());
  EXPECT_EQ(job->array->at_once, 2);

  const auto evaluated = Evaluate(*Parse("&(executable=/bin/echo)(arguments=a$(SEKISHO_ARRAY_INDEX))"),
                                  {{"SEKISHO_ARRAY_INDEX", std::string(kArrayIndexMark)}});
  ASSERT_TRUE(evaluated.ok());
  const auto element = ParseAndDescribe(ForElement(Print(*evaluated), 7), {});
  ASSERT_TRUE(element.ok());
  EXPECT_EQ(element->arguments[0], "a7");
}

TEST(RslArray, HasNoNumberThatDependsOnTheIndex) {
  const auto job = ParseAndDescribe("&(executable=/bin/echo)(array=1-9)(count=$(SEKISHO_ARRAY_INDEX))",
                                    {{"SEKISHO_ARRAY_INDEX", std::string(kArrayIndexMark)}});
  EXPECT_FALSE(job.ok());
}

}  // namespace
}  // namespace sekisho::rsl
