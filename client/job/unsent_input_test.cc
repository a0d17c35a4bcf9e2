// SPDX-License-Identifier: Apache-2.0
#include "client/job/unsent_input.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

TEST(UnsentInput, KeepsWhatNoTaskHasTaken) {
  UnsentInput input;
  input.Add("abc");
  input.Add("def");

  EXPECT_EQ(input.From(0, 4).data(), "abcd");
  EXPECT_TRUE(input.Take(2));
  EXPECT_EQ(input.From(0, 100).offset(), 2u);
  EXPECT_EQ(input.From(0, 100).data(), "cdef");
  EXPECT_FALSE(input.Take(2));
  EXPECT_FALSE(input.Take(7));  // there never was so much
  EXPECT_EQ(input.size(), 6u);
}

TEST(UnsentInput, SaysTheEndWithItsLastPieceAndAgain) {
  UnsentInput input;
  input.Add("abc");
  EXPECT_FALSE(input.From(0, 100).end());
  input.End();

  EXPECT_FALSE(input.From(0, 2).end());
  EXPECT_TRUE(input.From(2, 2).end());
  EXPECT_FALSE(input.is_done());
  EXPECT_TRUE(input.Take(3));
  EXPECT_TRUE(input.is_done());
  EXPECT_TRUE(input.From(3, 2).end());
}

}  // namespace
}  // namespace sekisho::client
