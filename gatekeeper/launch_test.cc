// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/launch.h"

#include <array>
#include <atomic>
#include <csignal>
#include <filesystem>
#include <optional>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace sekisho::gatekeeper {
namespace {

constexpr int kPatienceMs = 20'000;

// Root becomes another; anybody else stays who they are.
absl::StatusOr<Account> SomeAccount() {
  std::array<char, 256> name{};
  return FindAccount(geteuid() == 0 || getlogin_r(name.data(), name.size()) != 0 ? "nobody"
                                                                                 : name.data());
}

// What the child says on its descriptor 3 until it ends; empty if it does not end.
std::string WhatItSays(const Child& child) {
  pollfd end = {child.pid_fd, POLLIN, 0};
  const bool is_over = poll(&end, 1, kPatienceMs) == 1;
  if (!is_over) {
    kill(child.pid, SIGKILL);
  }
  std::string said(256, '\0');
  const ssize_t count = is_over ? read(child.control_fd, said.data(), said.size()) : 0;
  said.resize(count > 0 ? static_cast<size_t>(count) : 0);
  waitpid(child.pid, nullptr, 0);
  for (const int fd : {child.control_fd, child.calls_fd, child.pid_fd}) {
    close(fd);
  }
  return said;
}

TEST(Launch, TheProgramIsTheAccounts) {
  const auto account = SomeAccount();
  if (!account.ok()) {
    GTEST_SKIP() << account.status();
  }
  const auto child = Launch(
      *account, {"/bin/sh", "-c",
                 "{ id -ru; id -u; id -rg; id -g; id -G; pwd; echo $USER; } | tr '\\n' ' ' >&3"});
  ASSERT_TRUE(child.ok()) << child.status();
  std::string groups;
  for (const gid_t group : account->groups) {
    groups += (groups.empty() ? "" : " ") + std::to_string(group);
  }
  const std::string uid = std::to_string(account->uid);
  const std::string gid = std::to_string(account->gid);
  EXPECT_EQ(WhatItSays(*child),
            uid + " " + uid + " " + gid + " " + gid + " " + groups + " / " + account->name + " ");
}

// By a gatekeeper that was killed in between.
TEST(Launch, AnAccountsDirectoryThatIsMadeAndNotYetItsOwnBecomesSo) {
  const auto account = SomeAccount();
  if (!account.ok() || geteuid() != 0) {
    GTEST_SKIP() << "only root becomes another";
  }
  std::string parent = "/tmp/launch_test.XXXXXX";
  ASSERT_NE(mkdtemp(parent.data()), nullptr);
  const std::string path = parent + "/" + account->name;
  const auto owner_after = [&](uid_t before) {
    std::filesystem::remove_all(path);
    EXPECT_EQ(mkdir(path.c_str(), 0700), 0);
    EXPECT_EQ(chown(path.c_str(), before, before), 0);
    const bool is_given = AccountDirectory(parent, *account).ok();
    struct stat status {};
    EXPECT_EQ(stat(path.c_str(), &status), 0);
    return is_given ? std::optional(status.st_uid) : std::nullopt;
  };

  EXPECT_EQ(owner_after(0), account->uid);
  EXPECT_EQ(owner_after(account->uid + 1), std::nullopt) << "another's";
  std::filesystem::remove_all(parent);
}

// The C library's setuid() speaks to all threads; in the child of one that forked while another was
// being made, it waited for that for ever.
TEST(Launch, DoesNotHangWhileThreadsAreBeingMade) {
  const auto account = SomeAccount();
  if (!account.ok() || geteuid() != 0) {
    GTEST_SKIP() << "only root becomes another";
  }
  std::atomic<bool> is_over = false;
  std::vector<std::thread> makers;
  for (int i = 0; i < 4; ++i) {
    makers.emplace_back([&] {
      while (!is_over) {
        std::thread([] {}).join();
      }
    });
  }
  for (int i = 0; i < 200; ++i) {
    const auto child = Launch(*account, {"/bin/sh", "-c", "echo here >&3"});
    if (!child.ok() || WhatItSays(*child) != "here\n") {
      ADD_FAILURE() << "launch " << i << ": " << child.status();
      break;
    }
  }
  is_over = true;
  for (std::thread& maker : makers) {
    maker.join();
  }
}

}  // namespace
}  // namespace sekisho::gatekeeper
