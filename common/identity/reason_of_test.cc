// SPDX-License-Identifier: Apache-2.0
#include "common/identity/reason_of.h"

#include <gtest/gtest.h>

namespace sekisho::identity {
namespace {

TEST(ReasonOf, IsKnownAgainByItsStatus) {
  for (const Reason reason : AllReasons()) {
    EXPECT_EQ(ReasonOf(ToStatus({reason, "[what] was seen"})), reason) << Name(reason);
  }
}

TEST(ReasonOf, IsNothingOfAnotherStatus) {
  for (const char* other : {"", "[", "[]", "[other] words", "[proxy-expired", "proxy-expired", "x [proxy-expired] y"}) {
    EXPECT_EQ(ReasonOf(absl::UnauthenticatedError(other)), std::nullopt) << other;
  }
}

}  // namespace
}  // namespace sekisho::identity
