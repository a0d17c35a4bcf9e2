// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/jobmanagers.h"

#include <filesystem>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pwd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/faulty_log.h"
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

// The service certificate, from an hour ago on.
identity::Credential ServiceFor(std::chrono::hours life) {
  test::CertificateOptions today;
  today.not_before = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()) -
                     std::chrono::hours(1);
  today.not_after = today.not_before + std::chrono::hours(24);
  const test::TestCa ca("/CN=CA", today);
  today.not_after = today.not_before + life;
  return ca.IssueHost("host", today);
}

// Of jobmanagers that are this script.
JobManagers::Options OptionsOf(const test::TemporaryDirectory& directory, const char* script) {
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  test::WriteFile(directory.File("program"), script, 0755);
  JobManagers::Options options;
  options.program = directory.File("program");
  options.state_directory = directory.File("state");
  options.service = ServiceFor(std::chrono::hours(24));
  return options;
}

TEST(JobManagers, OneThatCanBeGivenNoCredentialSaysWhyAndNotHowItWasEnded) {
  const test::TemporaryDirectory directory;
  std::filesystem::permissions(directory.path(), std::filesystem::perms(0755));
  const passwd* account = getpwuid(geteuid() == 0 ? 65534 : geteuid());
  ASSERT_NE(account, nullptr);
  JobManagers::Options options;
  options.program = "/bin/true";
  options.state_directory = directory.File("state");
  options.service = ServiceFor(std::chrono::hours(1));
  Loop loop;
  JobManagers managers(loop, std::move(options));
  absl::Status said;
  co_spawn(
      loop,
      [&]() -> awaitable<void> {
        said = (co_await managers.Get(account->pw_name)).status();
        co_await managers.Stop();
      },
      [&](std::exception_ptr) { loop.stop(); });
  loop.run_for(std::chrono::seconds(60));

  EXPECT_THAT(std::string(said.message()),
              testing::HasSubstr("no proxy of the service certificate for it: "));
  EXPECT_THAT(std::string(said.message()), testing::HasSubstr("CN=host/host expired at "));
}

TEST(JobManagers, OneThatIsNotReadyInTimeIsEndedAndThatIsSaid) {
  const test::TemporaryDirectory directory;
  const passwd* account = getpwuid(geteuid() == 0 ? 65534 : geteuid());
  ASSERT_NE(account, nullptr);
  JobManagers::Options options = OptionsOf(directory, "#!/bin/sh\nexec sleep 600\n");
  options.start_timeout = std::chrono::milliseconds(500);
  Loop loop;
  JobManagers managers(loop, std::move(options));
  std::vector<std::string> said;
  co_spawn(
      loop,
      [&]() -> awaitable<void> {
        for (int call = 0; call < 2;
             ++call) {  // the second waits for the end of what the first began
          said.emplace_back((co_await managers.Get(account->pw_name)).status().message());
        }
        co_await managers.Stop();
      },
      [&](std::exception_ptr) { loop.stop(); });
  loop.run_for(std::chrono::seconds(60));

  EXPECT_THAT(said, testing::ElementsAre(testing::HasSubstr("it was not ready within 0.5 s"),
                                         testing::HasSubstr("it was not ready within 0.5 s")));
}

// It takes what it is given, says that it is ready, answers one question, and no more.
constexpr char kFrozen[] = R"(#!/usr/bin/python3
import os, struct, sys, time
if os.path.exists(sys.argv[4] + "/before"):
    time.sleep(600)
open(sys.argv[4] + "/before", "w").close()
os.write(3, b"k")
size, = struct.unpack(">I", os.read(3, 4))
while size:
    size -= len(os.read(3, size))
os.write(3, b"r")
os.read(3, 4)
os.write(3, b"a")
time.sleep(600)
)";

TEST(JobManagers, OneThatIsThereAndAnswersNothingIsEndedAndStartedAgain) {
  const test::TemporaryDirectory directory;
  const passwd* account = getpwuid(geteuid() == 0 ? 65534 : geteuid());
  ASSERT_NE(account, nullptr);
  JobManagers::Options options = OptionsOf(directory, kFrozen);
  options.beat = std::chrono::milliseconds(20);
  Loop loop;
  JobManagers managers(loop, std::move(options));
  bool is_started_again = false;
  co_spawn(
      loop,
      [&]() -> awaitable<void> {
        const auto first = co_await managers.Get(account->pw_name);
        EXPECT_TRUE(first.ok()) << first.status();
        const std::string token = managers.TokenOf(account->pw_name);
        while (managers.TokenOf(account->pw_name) == token) {  // each has its own
          co_await Sleep(loop, std::chrono::milliseconds(5));
        }
        is_started_again = true;
        co_await managers.Stop();
      },
      [&](std::exception_ptr) { loop.stop(); });
  loop.run_for(std::chrono::seconds(60));

  EXPECT_TRUE(is_started_again);
}

// It takes what it is given, says that it is ready, and at once that it is told to end; which it
// does when its connection for calls is closed.
constexpr char kEnding[] = R"(#!/usr/bin/python3
import os, select, struct
os.write(3, b"k")
size, = struct.unpack(">I", os.read(3, 4))
while size:
    size -= len(os.read(3, size))
os.write(3, b"rs")
try:
    while select.select([4], [], []) and os.read(4, 65536):
        pass
except ConnectionError:
    pass
)";

TEST(JobManagers, OneThatEndsKeepsItsConnectionWhileACallUsesItAndGetsNoOther) {
  const test::TemporaryDirectory directory;
  const passwd* account = getpwuid(geteuid() == 0 ? 65534 : geteuid());
  ASSERT_NE(account, nullptr);
  JobManagers::Options options = OptionsOf(directory, kEnding);
  Loop loop;
  JobManagers managers(loop, std::move(options));
  bool is_over = false;
  co_spawn(
      loop,
      [&]() -> awaitable<void> {
        auto call = co_await managers.Get(account->pw_name);
        EXPECT_TRUE(call.ok()) << call.status();
        const std::string token = managers.TokenOf(account->pw_name);
        co_await Sleep(loop, std::chrono::milliseconds(20));  // what it has said is heard
        asio::steady_timer over(loop, std::chrono::milliseconds(100));
        over.async_wait([&](const std::error_code& error) {
          if (error) {
            return;
          }
          EXPECT_EQ(managers.TokenOf(account->pw_name), token);
          call = absl::CancelledError();
        });

        const auto later = co_await managers.Get(account->pw_name);

        EXPECT_TRUE(later.ok()) << later.status();
        EXPECT_FALSE(call.ok());
        EXPECT_NE(managers.TokenOf(account->pw_name), token);
        is_over = true;
        co_await managers.Stop();
      },
      [&](std::exception_ptr) { loop.stop(); });
  loop.run_for(std::chrono::seconds(60));

  EXPECT_TRUE(is_over);
}

// Alone or not at all; it takes what it is given, says that it is ready, and stays.
constexpr char kAlone[] = R"(#!/usr/bin/python3
import fcntl, os, struct, sys
lock = open(sys.argv[4] + "/lock", "w")
fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
os.write(3, b"k")
size, = struct.unpack(">I", os.read(3, 4))
while size:
    size -= len(os.read(3, size))
os.write(3, b"r")
while os.read(3, 65536):
    pass
)";

TEST(JobManagers, AFaultInTheKeepingOfOneEndsItBeforeTheNextIsStarted) {
  const test::TemporaryDirectory directory;
  const passwd* account = getpwuid(geteuid() == 0 ? 65534 : geteuid());
  ASSERT_NE(account, nullptr);
  JobManagers::Options options = OptionsOf(directory, kAlone);
  const std::string lock = options.state_directory + "/" + account->pw_name + "/lock";
  const test::FaultyLog log([&lock] { return std::filesystem::exists(lock); });
  Loop loop;
  JobManagers managers(loop, std::move(options));
  absl::Status said = absl::UnknownError("nothing");
  bool is_over = false;
  co_spawn(
      loop,
      [&]() -> awaitable<void> {
        said = (co_await managers.Get(account->pw_name)).status();
        EXPECT_TRUE(log.has_thrown());
        co_await managers.Stop();
        is_over = true;
      },
      [&](std::exception_ptr) { loop.stop(); });
  loop.run_for(std::chrono::seconds(60));

  EXPECT_TRUE(said.ok()) << said;
  EXPECT_TRUE(is_over);
  EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1) << "a process is left";
}

}  // namespace
}  // namespace sekisho::gatekeeper
