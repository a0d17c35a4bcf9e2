// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/jobmanagers.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_ca.h"

namespace sekisho::gatekeeper {
namespace {

TEST(BackOff, CountsFailuresAndNotWhatWasToldToEnd) {
  EXPECT_EQ(FailuresAfter(3, /*is_clean=*/true, std::chrono::seconds(1)), 0);
  EXPECT_EQ(BackOff(0).count(), 0);
  EXPECT_EQ(FailuresAfter(3, true, std::chrono::seconds(0)), 4);
  EXPECT_EQ(FailuresAfter(3, false, std::chrono::seconds(1)), 4);
  EXPECT_EQ(FailuresAfter(3, false, std::chrono::seconds(61)), 1);
}

TEST(LeadingAccounts, AreThoseThatHaveLeftTheFile) {
  const test::TemporaryDirectory state;
  for (const char* account : {"alice", "bob", "carol", "dave"}) {
    std::filesystem::create_directory(state.File(account));
  }
  test::WriteFile(state.File("dave/leads"), "");
  test::WriteFile(state.File("alice/leads"), "");
  std::filesystem::create_directory(state.File("bob/leads"));
  std::filesystem::create_symlink("/etc/passwd", state.File("carol/leads"));

  EXPECT_THAT(LeadingAccounts(state.path()), testing::ElementsAre("alice", "dave"));
  EXPECT_THAT(LeadingAccounts(state.File("none")), testing::IsEmpty());
}

}  // namespace
}  // namespace sekisho::gatekeeper
