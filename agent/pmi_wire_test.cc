// SPDX-License-Identifier: Apache-2.0
#include "agent/pmi_wire.h"

#include <gtest/gtest.h>

namespace sekisho::agent {
namespace {

TEST(PmiWire, ReadsACommandAndItsValues) {
  const PmiCommand expected{"put",
                            {{"kvsname", "world-1"}, {"key", "P0-card"}, {"value", "a b=c  d"}}};

  EXPECT_EQ(ParsePmi("cmd=put kvsname=world-1 key=P0-card value=a b=c  d"), expected);
  EXPECT_EQ(ParsePmi("  cmd=barrier_in \r")->name, "barrier_in");
  EXPECT_EQ(ParsePmi("cmd=abort exitcode=3")->Get("exitcode"), "3");
  EXPECT_EQ(ParsePmi("cmd=get_maxes")->Get("key"), "");
}

TEST(PmiWire, RefusesWhatNamesNoCommand) {
  EXPECT_FALSE(ParsePmi(""));
  EXPECT_FALSE(ParsePmi("key=1"));
  EXPECT_FALSE(ParsePmi("cmd"));
  EXPECT_FALSE(ParsePmi("cmd=put key"));
  EXPECT_FALSE(ParsePmi("cmd=put =x"));
  EXPECT_FALSE(ParsePmi("cmd=put " + std::string(kPmiLineMax, ' ')));
}

TEST(PmiPairs, SeveralTextsOneBehindTheOtherAreOne) {
  const std::string both =
      EncodePmiPairs({{"a", "1"}, {"b", ""}}) + EncodePmiPairs({{"a", "x=y z"}, {"c", "3"}});

  EXPECT_EQ(DecodePmiPairs(both), (PmiPairs{{"a", "x=y z"}, {"b", ""}, {"c", "3"}}));
}

TEST(PmiPairs, RefusesWhatIsCutOffOrTooLong) {
  EXPECT_FALSE(DecodePmiPairs("a=1"));
  EXPECT_FALSE(DecodePmiPairs("a\n=b\n"));
  EXPECT_FALSE(DecodePmiPairs("=1\n"));
  EXPECT_FALSE(DecodePmiPairs(std::string(kPmiKeyMax + 1, 'k') + "=1\n"));
  EXPECT_FALSE(DecodePmiPairs("k=" + std::string(kPmiValueMax + 1, 'v') + "\n"));
}

}  // namespace
}  // namespace sekisho::agent
