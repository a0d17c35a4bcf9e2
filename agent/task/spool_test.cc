// SPDX-License-Identifier: Apache-2.0
#include "agent/task/spool.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <string>

namespace sekisho::agent::task {
namespace {

constexpr uid_t kAccount = 65534;

class SpoolTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (geteuid() != 0) {
      GTEST_SKIP() << "needs root";
    }
    char path[] = "/tmp/sekisho-spool-XXXXXX";
    ASSERT_NE(mkdtemp(path), nullptr);
    root_ = path;
    dir_fd_ = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  void TearDown() override {
    if (!root_.empty()) {
      close(dir_fd_);
      std::filesystem::remove_all(root_);
    }
  }

  std::string Path() const { return root_ + "/stdout"; }
  struct stat Seen() const {
    struct stat info {};
    EXPECT_EQ(stat(Path().c_str(), &info), 0);
    return info;
  }
  // As a task has it that has ended.
  void OpenAndClose(Spool& spool) const {
    const int fd = spool.Open(kAccount, kAccount);
    ASSERT_GE(fd, 0);
    close(fd);
    ASSERT_EQ(Seen().st_uid, kAccount);
  }

  std::string root_;
  int dir_fd_ = -1;
};

TEST_F(SpoolTest, IsTakenFromItsAccount) {
  Spool spool(dir_fd_, "stdout");
  OpenAndClose(spool);
  ASSERT_EQ(chmod(Path().c_str(), 04777), 0);

  spool.Take();

  EXPECT_EQ(Seen().st_uid, 0U);
  EXPECT_EQ(Seen().st_gid, 0U);
  EXPECT_EQ(Seen().st_mode, mode_t{S_IFREG | 0600});
}

TEST_F(SpoolTest, ThatHasAnotherNameStaysItsAccounts) {
  Spool spool(dir_fd_, "stdout");
  OpenAndClose(spool);
  ASSERT_EQ(link(Path().c_str(), (root_ + "/kept").c_str()), 0);

  spool.Take();

  EXPECT_EQ(Seen().st_uid, kAccount);
  EXPECT_EQ(Seen().st_gid, kAccount);
}

TEST_F(SpoolTest, ThatSomebodyElseWritesToStaysItsAccounts) {
  Spool spool(dir_fd_, "stdout");
  OpenAndClose(spool);
  const int writer = open(Path().c_str(), O_WRONLY | O_CLOEXEC);
  ASSERT_GE(writer, 0);

  spool.Take();

  EXPECT_EQ(Seen().st_uid, kAccount);
  close(writer);
}

TEST_F(SpoolTest, ThatSomebodyElseHasMappedStaysItsAccounts) {
  Spool spool(dir_fd_, "stdout");
  OpenAndClose(spool);
  const int writer = open(Path().c_str(), O_RDWR | O_CLOEXEC);
  void* const page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, writer, 0);
  ASSERT_NE(page, MAP_FAILED);
  close(writer);

  spool.Take();

  EXPECT_EQ(Seen().st_uid, kAccount);
  munmap(page, 4096);
}

TEST_F(SpoolTest, WhoeverReadsItDoesNotKeepItFromBeingTaken) {
  Spool spool(dir_fd_, "stdout");
  OpenAndClose(spool);
  const int reader = open(Path().c_str(), O_RDONLY | O_CLOEXEC);

  spool.Take();

  EXPECT_EQ(Seen().st_uid, 0U);
  close(reader);
}

// Whatever has its name by then.
TEST_F(SpoolTest, OnlyTheFileThatWasMadeIsTaken) {
  Spool spool(dir_fd_, "stdout");
  OpenAndClose(spool);
  ASSERT_EQ(rename(Path().c_str(), (root_ + "/moved").c_str()), 0);
  close(open(Path().c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0644));
  ASSERT_EQ(chown(Path().c_str(), kAccount, kAccount), 0);

  spool.Take();

  EXPECT_EQ(Seen().st_uid, kAccount);
}

TEST_F(SpoolTest, WhatIsThereAlreadyIsNotOpened) {
  ASSERT_EQ(symlink("/dev/null", Path().c_str()), 0);
  Spool spool(dir_fd_, "stdout");

  EXPECT_EQ(spool.Open(kAccount, kAccount), -1);
  EXPECT_EQ(errno, EEXIST);
}

}  // namespace
}  // namespace sekisho::agent::task
