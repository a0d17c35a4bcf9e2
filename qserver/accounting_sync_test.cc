// SPDX-License-Identifier: Apache-2.0
#include "qserver/accounting_sync.h"

#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

TEST(AccountedUpTo, BelievesWhatIsOnDiskAndWhatThisBootHasWritten) {
  EXPECT_EQ(AccountedUpTo("", "", "boot"), 0u);
  EXPECT_EQ(AccountedUpTo("7", "", "boot"), 7u);
  EXPECT_EQ(AccountedUpTo("7", "9 boot", "boot"), 9u);
  EXPECT_EQ(AccountedUpTo("", "9 boot", "boot"), 9u);
  EXPECT_EQ(AccountedUpTo("9", "7 boot", "boot"), 9u);
}

TEST(AccountedUpTo, DoesNotBelieveWhatAnotherBootHasWritten) {
  EXPECT_EQ(AccountedUpTo("7", "9 another", "boot"), 7u);
  EXPECT_EQ(AccountedUpTo("7", "9", "boot"), 7u);
  EXPECT_EQ(AccountedUpTo("7", "x boot", "boot"), 7u);
}

}  // namespace
}  // namespace sekisho::qserver
