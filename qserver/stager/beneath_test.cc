// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/beneath.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gtest/gtest.h>

namespace sekisho::qserver::stager {
namespace {

namespace fs = std::filesystem;

class Beneath : public testing::Test {
 protected:
  Beneath() {
    std::string name = (fs::temp_directory_path() / "beneath-XXXXXX").string();
    top_ = mkdtemp(name.data());
    fs::create_directories(top_ / "home/data");
    fs::create_directories(top_ / "outside");
    std::ofstream(top_ / "outside/secret") << "secret";
  }
  ~Beneath() override { fs::remove_all(top_); }

  Below At(const std::string& path) const { return {(top_ / "home").string(), path}; }
  bool Opens(const std::string& path) const { return Open(At(path), O_RDONLY).ok(); }

  fs::path top_;
};

TEST_F(Beneath, FollowsLinksThatStayInside) {
  std::ofstream(top_ / "home/data/x") << "x";
  fs::create_symlink("data/x", top_ / "home/link");

  EXPECT_TRUE(Opens("data/x"));
  EXPECT_TRUE(Opens("link"));
}

TEST_F(Beneath, RefusesLinksThatLeadOut) {
  fs::create_symlink("../outside", top_ / "home/relative");
  fs::create_symlink(top_ / "outside", top_ / "home/absolute");
  fs::create_symlink("/proc/self/root", top_ / "home/magic");

  EXPECT_FALSE(Opens("relative/secret"));
  EXPECT_FALSE(Opens("absolute/secret"));
  EXPECT_FALSE(Opens("magic/etc/passwd"));
  EXPECT_FALSE(OpenParent(At("relative/new"), 0700).ok());
  EXPECT_FALSE(OpenParent(At("absolute/deep/new"), 0700).ok());
  EXPECT_FALSE(fs::exists(top_ / "outside/deep"));
}

TEST_F(Beneath, MakesTheDirectoriesAbove) {
  const auto parent = OpenParent(At("a/b/c"), 0750);

  ASSERT_TRUE(parent.ok());
  EXPECT_EQ(parent->name, "c");
  EXPECT_TRUE(fs::is_directory(top_ / "home/a/b"));
  EXPECT_FALSE(OpenParent(At(""), 0700).ok());
}

// A directory becomes a link out and a directory again, as fast as it can, while files are made below it.
TEST_F(Beneath, MakesNothingOutsideWhileNamesAreSwapped) {
  fs::create_directory(top_ / "home/swap");
  fs::create_symlink(top_ / "outside", top_ / "home/trap");
  std::atomic<bool> is_over = false;
  std::thread attacker([&] {
    const std::string swap = top_ / "home/swap", trap = top_ / "home/trap";
    while (!is_over) {
      syscall(SYS_renameat2, AT_FDCWD, swap.c_str(), AT_FDCWD, trap.c_str(), RENAME_EXCHANGE);
    }
  });

  int made = 0;
  for (int i = 0; i < 3000; ++i) {
    const auto parent = OpenParent(At("swap/deep/f" + std::to_string(i)), 0700);
    if (parent.ok()) {
      const Fd fd(openat(parent->directory.get(), parent->name.c_str(), O_WRONLY | O_CREAT | O_NOFOLLOW, 0600));
      made += fd.is_open() ? 1 : 0;
    }
  }
  is_over = true;
  attacker.join();

  EXPECT_GT(made, 0);
  EXPECT_EQ(std::distance(fs::directory_iterator(top_ / "outside"), {}), 1);  // the secret
}

}  // namespace
}  // namespace sekisho::qserver::stager
