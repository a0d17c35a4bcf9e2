// SPDX-License-Identifier: Apache-2.0
#include "agent/pilot_folder.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>

#include <gtest/gtest.h>

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;

class PilotFolderTest : public testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/sekisho-folders-XXXXXX";
    parent_ = mkdtemp(name);
  }
  void TearDown() override { fs::remove_all(parent_); }

  std::string parent_;
};

TEST_F(PilotFolderTest, IsThereAsLongAsItsOwner) {
  std::optional<PilotFolder> folder(std::in_place, parent_, "j1");
  ASSERT_TRUE(folder->is_made());
  std::ofstream(folder->path() + "/record") << "x";
  const PilotFolder other(parent_, "j1");

  EXPECT_TRUE(fs::exists(folder->path() + "/record"));  // the other has let it be
  const std::string path = folder->path();
  folder.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(PilotFolderTest, OfAKilledOwnerGoesWithTheNextOne) {
  const pid_t child = fork();
  if (child == 0) {
    const PilotFolder folder(parent_, "killed");
    raise(SIGKILL);
  }
  ASSERT_EQ(waitpid(child, nullptr, 0), child);
  const auto is_left = [&] {
    for (const auto& entry : fs::directory_iterator(parent_)) {
      if (entry.path().filename().string().starts_with("sekisho-killed.")) return true;
    }
    return false;
  };
  ASSERT_TRUE(is_left());

  const PilotFolder folder(parent_, "next");

  EXPECT_FALSE(is_left());
}

TEST_F(PilotFolderTest, LetsWhatIsNoPilotsBe) {
  const fs::path notes = fs::path(parent_) / "sekisho-notes.abcdef";
  fs::create_directory(notes);
  const PilotFolder folder(parent_, "j1");

  EXPECT_TRUE(fs::exists(notes));
}

TEST_F(PilotFolderTest, CannotBeMadeWhereNothingCan) {
  EXPECT_FALSE(PilotFolder("/nowhere/at/all", "j1").is_made());
}

}  // namespace
}  // namespace sekisho::agent
