// SPDX-License-Identifier: Apache-2.0
#include "client/world/part_like.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

constexpr char kPart[] =
    "&(executable=/home/alice/meet)(arguments=wait \"two words\")(count=4)(jobtype=multiple)";

TEST(PartLike, HasItsOwnNumberOfRanks) {
  EXPECT_EQ(
      *PartLike(kPart, 2, {}),
      "&(executable=/home/alice/meet)(arguments=wait \"two words\")(jobtype=multiple)(count=2)");
}

TEST(PartLike, MayRunAnotherProgram) {
  EXPECT_EQ(*PartLike(kPart, 1, {"/bin/other", "a b"}),
            "&(jobtype=multiple)(count=1)(executable=/bin/other)(arguments=\"a b\")");
  EXPECT_EQ(*PartLike(kPart, 1, {"/bin/other"}),
            "&(jobtype=multiple)(count=1)(executable=/bin/other)");
}

TEST(PartLike, IsOfAPartOnly) {
  EXPECT_FALSE(PartLike("", 1, {}).ok());
  EXPECT_FALSE(PartLike("+(&(executable=a))(&(executable=b))", 1, {}).ok());
}

}  // namespace
}  // namespace sekisho::client
