// SPDX-License-Identifier: Apache-2.0
#include "client/job/redirect.h"

#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::client {
namespace {

TEST(Redirect, ARestartsUpdateIsAllButWhatItRestarts) {
  EXPECT_EQ(UpdateIn("&(rsl_substitution=(A b))(reStart=siteA/j)(stdout=https://h/$(A))(STDOUT_position=5)"),
            "&(rslsubstitution=(A b))(stdout=https://h/#$(A))(stdoutposition=5)");
  EXPECT_EQ(UpdateIn("&(&(restart=j))(&(stderr=x))"), "&(&(stderr=x))");
  EXPECT_EQ(UpdateIn("&(restart=j)(rsl_substitution=(A b))"), std::nullopt);
}

TEST(Redirect, AnUpdateIsCheckedBeforeItIsSent) {
  EXPECT_TRUE(CheckUpdate("&(stdout=$(HOME)/o)(stderr_position=0)").ok());
  for (const char* const bad : {"", "&(count=2)", "&(restart=j)(stdout=x)", "&(stdout=gsiftp://h/x)", "&(stdout_position=x)"}) {
    EXPECT_FALSE(CheckUpdate(bad).ok()) << bad;
  }
}

}  // namespace
}  // namespace sekisho::client
