// SPDX-License-Identifier: Apache-2.0
// For tests: sekisho-task with real processes, in every grouping that this machine offers.
#pragma once

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/inotify.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "agent/task/group.h"
#include "agent/task/record.h"
#include "agent/task/spec.h"

namespace sekisho::agent::task {

inline std::string TextOf(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

// A cgroup directory of ours, or empty where the machine has none of that kind.
inline std::string CgroupRoot(Grouping grouping) {
  const char* v2 = std::filesystem::exists("/sys/fs/cgroup/cgroup.procs")
                       ? "/sys/fs/cgroup"
                       : "/sys/fs/cgroup/unified";
  const std::string parent = grouping == Grouping::kV2 ? v2 : "/sys/fs/cgroup/freezer";
  const std::string path = parent + "/sekisho-test-" + std::to_string(getpid());
  return mkdir(path.c_str(), 0755) == 0 || errno == EEXIST ? path : "";
}

class SupervisorTest : public ::testing::TestWithParam<Grouping> {
 protected:
  static void SetUpTestSuite() { prctl(PR_SET_CHILD_SUBREAPER, 1); }

  void SetUp() override {
    char path[] = "/tmp/sekisho-task-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    chmod(path, 0755);
    dir_ = root_ + "/task";
    home_ = root_ + "/home";
    mkdir(dir_.c_str(), 0711);
    mkdir(home_.c_str(), 0755);
    spec_.job_id = "job";
    spec_.argument = {"/bin/true"};
    spec_.environment = {"PATH=/usr/bin:/bin"};
    spec_.directory = home_;
    spec_.account = getuid() == 0 ? "games" : "self";
    spec_.uid = getuid();
    spec_.gid = getgid();
    if (getuid() == 0) {
      const passwd* account = getpwnam("games");
      spec_.uid = account->pw_uid;
      spec_.gid = account->pw_gid;
      spec_.groups = {account->pw_gid};
      ASSERT_EQ(chown(home_.c_str(), spec_.uid, spec_.gid), 0);
    }
    spec_.grouping = GetParam();
    if (spec_.grouping != Grouping::kNone) {
      cgroup_root_ = CgroupRoot(spec_.grouping);
      if (cgroup_root_.empty()) {
        GTEST_SKIP() << "no cgroups " << Name(spec_.grouping);
      }
      spec_.cgroup = cgroup_root_ + "/job.0";
    }
  }

  void TearDown() override {
    while (waitpid(-1, nullptr, 0) > 0) {  // supervisors that are done but for exiting
    }
    if (!cgroup_root_.empty()) {
      EXPECT_FALSE(std::filesystem::exists(spec_.cgroup)) << "the task's cgroup is left behind";
      rmdir(cgroup_root_.c_str());
    }
    if (watch_ >= 0) {
      close(watch_);
    }
    umount2(dir_.c_str(), MNT_DETACH);  // a test may have made it a disk of its own
    std::filesystem::remove_all(root_);
  }

  void Shell(const std::string& script) { spec_.argument = {"/bin/sh", "-c", script}; }

  void Prepare() {
    watch_ = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    inotify_add_watch(watch_, dir_.c_str(), IN_MOVED_TO | IN_MODIFY);
    inotify_add_watch(watch_, home_.c_str(), IN_CREATE | IN_MODIFY | IN_MOVED_TO);
    const int fd = open(dir_.c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_TRUE(WriteFile(fd, kSpecFile, EncodeSpec(spec_), Durability::kProcess));
    close(fd);
  }
  void Launch() {
    Prepare();
    Spawn();
  }

  void Spawn() {
    const std::string program = std::string(std::getenv("SEKISHO_BIN")) + "/sekisho-task";
    const char* argv[] = {"sekisho-task", dir_.c_str(), nullptr};
    pid_t pid = 0;
    ASSERT_EQ(
        posix_spawn(&pid, program.c_str(), nullptr, nullptr, const_cast<char**>(argv), environ), 0);
    waitpid(pid, nullptr, 0);
  }

  // Until `is_true`, looking again whenever a file of the task changes.
  template <typename Condition>
  [[nodiscard]] bool Await(Condition is_true) {
    for (int waited = 0; !is_true(); ++waited) {
      pollfd changed{watch_, POLLIN, 0};
      if (waited > 20000 || poll(&changed, 1, 20000) <= 0) {
        return false;
      }
      char events[4096];
      while (read(watch_, events, sizeof events) > 0) {
      }
    }
    return true;
  }
  bool Has(const char* name) { return std::filesystem::exists(dir_ + "/" + name); }
  std::string Spooled(const char* name) { return TextOf(dir_ + "/" + name); }
  bool AwaitOutput(const std::string& text) {
    return Await([&] { return Spooled(kStdoutFile).find(text) != std::string::npos; });
  }

  Ended AwaitEnd() {
    EXPECT_TRUE(Await([&] { return Has(kExitFile); }));
    const auto ended = DecodeEnded(TextOf(dir_ + "/exit"));
    EXPECT_TRUE(ended);
    return ended.value_or(Ended{});
  }
  Ended RunToEnd() {
    Launch();
    return AwaitEnd();
  }

  Running Now() { return DecodeRunning(TextOf(dir_ + "/pid")).value_or(Running{}); }
  void Tell(const Order& order) {
    sigval argument{};
    argument.sival_int = PackOrder(order);
    ASSERT_EQ(sigqueue(Now().supervisor, OrderSignal(), argument), 0);
  }
  static bool IsAlive(pid_t pid) {
    Stat stat;
    return ParseStat(TextOf("/proc/" + std::to_string(pid) + "/stat"), stat) && stat.state != 'Z';
  }

  Spec spec_;
  std::string root_;
  std::string dir_;
  std::string home_;
  std::string cgroup_root_;
  int watch_ = -1;
};

}  // namespace sekisho::agent::task
