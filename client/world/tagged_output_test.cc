// SPDX-License-Identifier: Apache-2.0
#include "client/world/tagged_output.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

TEST(TaggedOutput, TagsEachLineAndKeepsHalfOnesApart) {
  TaggedOutput tagged;

  EXPECT_EQ(tagged.Add(0, "siteA", 0, "one\ntw"), "[0,siteA] one\n");
  EXPECT_EQ(tagged.Add(3, "siteB", 0, "x\n"), "[3,siteB] x\n");
  EXPECT_EQ(tagged.Add(0, "siteA", 1, "error\n"), "[0,siteA] error\n");
  EXPECT_EQ(tagged.Add(0, "siteA", 0, "o\n\n"), "[0,siteA] two\n[0,siteA] \n");
}

TEST(TaggedOutput, GivesWhatHasNoLineEndAtTheEnd) {
  TaggedOutput tagged;
  tagged.Add(2, "siteB", 0, "no end");

  EXPECT_EQ(tagged.Rest(1), "");
  EXPECT_EQ(tagged.Rest(0), "[2,siteB] no end\n");
  EXPECT_EQ(tagged.Rest(0), "");
}

}  // namespace
}  // namespace sekisho::client
