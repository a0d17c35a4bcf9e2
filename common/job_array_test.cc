// SPDX-License-Identifier: Apache-2.0
#include "common/job_array.h"

#include <vector>

#include <gtest/gtest.h>

namespace sekisho {
namespace {

struct Range {
  int first, last, step;
};

proto::JobEvent::Array Odd() { return MakeArray(std::vector<Range>{{1, 9, 2}, {20, 20, 1}}, 3); }

TEST(JobArray, NamesItsElements) {
  EXPECT_EQ(ElementId("abc", 17), "abc[17]");
  EXPECT_EQ(SplitElementId("abc[17]"), (std::pair<std::string, int>("abc", 17)));
  EXPECT_EQ(SplitElementId("abc[0]"), (std::pair<std::string, int>("abc", 0)));
}

TEST(JobArray, TakesOneSpellingOfAnElementOnly) {
  for (const char* id : {"abc", "abc[", "abc[]", "abc[01]", "abc[+1]", "abc[-1]", "abc[1]x", "abc[1 ]", "abc[4294967296]",
                         "abc[1][2]"}) {
    EXPECT_FALSE(SplitElementId(id)) << id;
  }
}

TEST(JobArray, KnowsItsElements) {
  EXPECT_EQ(ElementCount(Odd()), 6);
  EXPECT_TRUE(HasElement(Odd(), 9));
  EXPECT_TRUE(HasElement(Odd(), 20));
  EXPECT_FALSE(HasElement(Odd(), 2));
  EXPECT_FALSE(HasElement(Odd(), 21));
  EXPECT_EQ(ElementFrom(Odd(), 0), 1);
  EXPECT_EQ(ElementFrom(Odd(), 4), 5);
  EXPECT_EQ(ElementFrom(Odd(), 10), 20);
  EXPECT_EQ(ElementFrom(Odd(), 21), std::nullopt);
}

TEST(JobArray, GoesToTheLargestIndexWithoutOverflow) {
  const auto array = MakeArray(std::vector<Range>{{2147483000, 2147483647, 1000}}, 0);

  EXPECT_EQ(ElementCount(array), 1);
  EXPECT_EQ(ElementFrom(array, 2147483001), std::nullopt);
}

TEST(JobArray, IsWrittenAsInRsl) { EXPECT_EQ(ArrayText(Odd()), "1-9:2,20%3"); }

TEST(JobArray, CountsWhatDoesNotExistYetAsWaiting) {
  proto::ArrayStatus status;
  status.set_elements(6);
  status.set_waiting(6);

  Recount(ElementIs::kWaiting, ElementIs::kRunning, status);
  Recount(ElementIs::kRunning, ElementIs::kFailed, status);

  EXPECT_EQ(status.waiting(), 5);
  EXPECT_EQ(status.running(), 0);
  EXPECT_EQ(status.failed(), 1);
}

}  // namespace
}  // namespace sekisho
