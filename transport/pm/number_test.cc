// SPDX-License-Identifier: Apache-2.0
#include "transport/pm/number.h"

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

TEST(Number, IsOfDigitsWithinItsBounds) {
  unsigned long number = 0;
  EXPECT_TRUE(ReadNumber("1200", 1200, 65507, number));
  EXPECT_EQ(number, 1200u);
  EXPECT_TRUE(ReadNumber("0065507", 1200, 65507, number));
  EXPECT_EQ(number, 65507u);
}

TEST(Number, WhatIsNoneChangesNothing) {
  unsigned long number = 7;
  for (const char* text : {"", " 5", "5 ", "+5", "-5", "5x", "0x5", "x", "4", "10",
                           "18446744073709551621", "-18446744073709551611"}) {
    EXPECT_FALSE(ReadNumber(text, 5, 9, number)) << text;
  }
  EXPECT_FALSE(ReadNumber(nullptr, 5, 9, number));
  EXPECT_EQ(number, 7u);
}

}  // namespace
}  // namespace sekisho::pm
