// SPDX-License-Identifier: Apache-2.0
#include "agent/task_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>
#include <csignal>
#include <filesystem>
#include <fstream>
#include <vector>

#include "agent/task/record.h"

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;

class TaskDirectoryTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sekisho-records-XXXXXX";
    state_ = mkdtemp(name);
    ASSERT_TRUE(MakeTaskDirectory(state_, "job", 0).ok());
  }
  void TearDown() override { fs::remove_all(state_); }
  std::string Path() const { return state_ + "/job/0"; }
  void Write(const std::string& name) const { std::ofstream(Path() + "/" + name) << "x"; }

  std::string state_;
};

// A task with a spec and nothing else has not begun, and would be started.
TEST_F(TaskDirectoryTest, OfATaskThatIsForgottenTheSpecGoesFirst) {
  for (const char* const name : {"exit", "pid", "stdout", "stderr", task::kSpecFile, "input"}) {
    Write(name);
  }
  const int events = inotify_init1(IN_NONBLOCK);
  ASSERT_GE(inotify_add_watch(events, Path().c_str(), IN_DELETE), 0);

  RemoveTaskDirectory(Path());

  alignas(inotify_event) char buffer[4096];
  ASSERT_GT(read(events, buffer, sizeof buffer), 0);
  EXPECT_STREQ(reinterpret_cast<const inotify_event*>(buffer)->name, task::kSpecFile);
  EXPECT_FALSE(fs::exists(state_ + "/job"));
  close(events);
}

TEST_F(TaskDirectoryTest, OfATaskThatIsForgottenTheMemoryGoesThatItsRanksHaveShared) {
  const std::string path = fmt::format("{}/{}/0", state_, getpid());
  const std::string shared = fmt::format("/dev/shm/sekisho-{}-0", getpid());
  ASSERT_TRUE(fs::create_directories(path) && fs::create_directory(shared));
  std::ofstream(shared + "/vader_segment.n1.1000.5f0c.1") << "x";

  RemoveTaskDirectory(path);

  EXPECT_FALSE(fs::exists(shared));
}

TEST_F(TaskDirectoryTest, OfATaskThatIsForgottenNobodyKeepsTheOutput) {
  Write("stdout");
  const int reader = open((Path() + "/stdout").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_GE(reader, 0);

  RemoveTaskDirectory(Path());

  EXPECT_EQ(lseek(reader, 0, SEEK_END), 0);
  close(reader);
}

TEST_F(TaskDirectoryTest, WhatIsLeftOfAForgottenTaskWithoutItsSpecHasEnded) {
  Write(task::kExitFile);

  const auto spec = TaskDirectory(Path()).ReadSpec();

  ASSERT_TRUE(spec.has_value());
  EXPECT_EQ(spec->job_id, "job");
  fs::remove(Path() + "/" + task::kExitFile);
  Write(task::kStdoutFile);
  EXPECT_FALSE(TaskDirectory(Path()).ReadSpec().has_value());
}

TEST_F(TaskDirectoryTest, OnlyDirectoriesOfJobsWithoutATaskAreEmpty) {
  fs::create_directories(state_ + "/other[7]");

  RemoveEmptyJobDirectories(state_);

  EXPECT_TRUE(fs::exists(Path()));
  EXPECT_FALSE(fs::exists(state_ + "/other[7]"));
}

// As sekisho-task does, in a process of its own: the lock, then `pid`; until it is killed.
pid_t BeginAtOnce(const std::string& path) {
  const pid_t child = fork();
  if (child == 0) {
    const int spec = open((path + "/" + task::kSpecFile).c_str(), O_RDWR | O_CLOEXEC);
    struct flock lock {};
    lock.l_type = F_WRLCK;
    if (fcntl(spec, F_SETLK, &lock) == 0) {
      open((path + "/" + task::kPidFile).c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    }
    for (;;) {
      pause();
    }
  }
  return child;
}

// An agent that comes back looks just as what the one before it has started begins.
TEST_F(TaskDirectoryTest, WhoBeginsWhileHeIsLookedForIsNotTakenForOneThatHasGone) {
  using Attendance = TaskDirectory::Attendance;
  for (int turn = 0; turn < 400; ++turn) {
    Write(task::kSpecFile);
    const TaskDirectory task(Path());
    ASSERT_EQ(task.FindAttendance()->attendance, Attendance::kNotBegun);
    const pid_t supervisor = BeginAtOnce(Path());
    auto found = task.FindAttendance();
    while (found->attendance == Attendance::kNotBegun) {
      found = task.FindAttendance();
    }
    kill(supervisor, SIGKILL);
    waitpid(supervisor, nullptr, 0);
    ASSERT_EQ(found->attendance, Attendance::kAttended) << "turn " << turn;
    EXPECT_EQ(found->supervisor, supervisor);
    fs::remove(Path() + "/" + task::kPidFile);
  }
}

TEST_F(TaskDirectoryTest, WhoHasBegunAndHoldsTheTaskNoMoreHasGone) {
  Write(task::kSpecFile);
  const TaskDirectory task(Path());
  const pid_t supervisor = BeginAtOnce(Path());
  while (!task.Has(task::kPidFile)) {
    usleep(100);
  }
  EXPECT_EQ(task.FindAttendance()->attendance, TaskDirectory::Attendance::kAttended);

  kill(supervisor, SIGKILL);
  waitpid(supervisor, nullptr, 0);

  EXPECT_EQ(task.FindAttendance()->attendance, TaskDirectory::Attendance::kAbandoned);
}

}  // namespace
}  // namespace sekisho::agent
