// SPDX-License-Identifier: Apache-2.0
#include "client/job/restart.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

TEST(Restart, IsKnownByItsAttribute) {
  EXPECT_TRUE(IsRestart(rsl::Check("&(restart=siteA/abcdefghijklm)(stdout=x)")));
  EXPECT_FALSE(IsRestart(rsl::Check("&(executable=x)")));
  EXPECT_FALSE(IsRestart(rsl::Check("&(restart=a)(count=2)")));
}

}  // namespace
}  // namespace sekisho::client
