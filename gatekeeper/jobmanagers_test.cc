// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/jobmanagers.h"

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <unistd.h>

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

TEST(JobManagers, OneThatIsNotReadyInTimeIsEndedAndThatIsSaid) {
  const test::TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  test::WriteFile(directory.File("hangs"), "#!/bin/sh\nexec sleep 600\n", 0755);
  const passwd* account = getpwuid(geteuid() == 0 ? 65534 : geteuid());
  ASSERT_NE(account, nullptr);
  JobManagers::Options options;
  options.program = directory.File("hangs");
  options.state_directory = directory.File("state");
  options.start_timeout = std::chrono::milliseconds(500);
  Loop loop;
  JobManagers managers(loop, std::move(options));
  std::vector<std::string> said;
  co_spawn(
      loop,
      [&]() -> awaitable<void> {
        for (int call = 0; call < 2; ++call) {  // the second waits for the end of what the first began
          said.emplace_back((co_await managers.Get(account->pw_name)).status().message());
        }
        co_await managers.Stop();
      },
      [&](std::exception_ptr) { loop.stop(); });
  loop.run_for(std::chrono::seconds(60));

  EXPECT_THAT(said, testing::ElementsAre(testing::HasSubstr("it was not ready within 0.5 s"),
                                         testing::HasSubstr("it was not ready within 0.5 s")));
}

}  // namespace
}  // namespace sekisho::gatekeeper
