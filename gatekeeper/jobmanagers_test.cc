// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/jobmanagers.h"

#include <gtest/gtest.h>

namespace sekisho::gatekeeper {
namespace {

TEST(BackOff, CountsFailuresAndNotWhatWasToldToEnd) {
  EXPECT_EQ(FailuresAfter(3, /*is_clean=*/true, std::chrono::seconds(1)), 0);
  EXPECT_EQ(BackOff(0).count(), 0);
  EXPECT_EQ(FailuresAfter(3, true, std::chrono::seconds(0)), 4);
  EXPECT_EQ(FailuresAfter(3, false, std::chrono::seconds(1)), 4);
  EXPECT_EQ(FailuresAfter(3, false, std::chrono::seconds(61)), 1);
}

}  // namespace
}  // namespace sekisho::gatekeeper
