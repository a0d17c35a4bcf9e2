// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/tree.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::qserver::stager {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class TreeTest : public ::testing::Test {
 protected:
  TreeTest() {
    char name[] = "/tmp/sekisho-tree-XXXXXX";
    home_ = mkdtemp(name);
    fs::create_directories(home_ + "/job");
  }
  ~TreeTest() override { fs::remove_all(home_); }

  void Write(const std::string& path, const std::string& text) { std::ofstream(home_ + "/" + path) << text; }
  std::string Read(const std::string& path) {
    std::ifstream file(home_ + "/" + path);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  Below At(const std::string& path) const { return {home_, path}; }
  std::vector<std::string> Names(const std::string& path) {
    std::vector<std::string> names;
    const auto listed = List(At(path));
    EXPECT_TRUE(listed.ok()) << listed.status();
    for (const StagerReply::Entry& entry : listed->entry()) {
      names.push_back(entry.path());
    }
    return names;
  }

  std::string home_;
};

TEST_F(TreeTest, ListsADirectoryByNameAndSaysWhatEachIs) {
  Write("job/out", "1234");
  fs::create_directory(home_ + "/job/dir");
  fs::create_symlink("/etc", home_ + "/job/away");

  const auto listed = List(At("job"));

  ASSERT_TRUE(listed.ok());
  ASSERT_THAT(Names("job"), ElementsAre("away", "dir", "out"));
  EXPECT_EQ(listed->entry(0).kind(), StagerReply::Entry::LINK);
  EXPECT_EQ(listed->entry(0).target(), "/etc");
  EXPECT_EQ(listed->entry(1).kind(), StagerReply::Entry::DIRECTORY);
  EXPECT_EQ(listed->entry(2).size(), 4u);
  EXPECT_THAT(Names("job/out"), ElementsAre("out"));  // a file is itself
}

TEST_F(TreeTest, LinksThatLeadOutAreNeitherListedNorRead) {
  fs::create_symlink("/etc", home_ + "/job/away");

  EXPECT_THAT(List(At("job/away")).status().ToString(), HasSubstr("leads out of"));
  EXPECT_THAT(Reading::Begin(At("job/away/passwd"), 0).status().ToString(), HasSubstr("leads out of"));
}

TEST_F(TreeTest, RemovesALinkInATreesPlaceAndNotWhatItLeadsTo) {
  fs::create_directories(home_ + "/precious");
  Write("precious/file", "x");
  fs::create_symlink(home_ + "/precious", home_ + "/job/scratch");

  EXPECT_TRUE(RemoveTree(At("job/scratch")).ok());

  EXPECT_THAT(Names("job"), ElementsAre());
  EXPECT_THAT(Names("precious"), ElementsAre("file"));
}

TEST_F(TreeTest, ReadsFromAnyByteOnAndSumsAllOfIt) {
  Write("job/out", "0123456789");

  auto reading = Reading::Begin(At("job/out"), 4);

  ASSERT_TRUE(reading.ok());
  EXPECT_EQ(reading->entry().size(), 10u);
  EXPECT_EQ(*reading->Next(), "456789");
  EXPECT_EQ(*reading->Next(), "");
  Sum sum;
  sum.Add("0123456789");
  EXPECT_EQ(reading->Finish(), sum.Finish());
}

TEST_F(TreeTest, OnlyARegularFileIsRead) {
  ASSERT_EQ(mkfifo((home_ + "/job/pipe").c_str(), 0600), 0);

  EXPECT_THAT(Reading::Begin(At("job/pipe"), 0).status().ToString(), HasSubstr("expected a regular file"));
  EXPECT_THAT(Reading::Begin(At("job"), 0).status().ToString(), HasSubstr("expected a regular file"));
  EXPECT_FALSE(Reading::Begin(At("job/none"), 0).ok());
}

TEST_F(TreeTest, CopiesWithModeAndSumAndLeavesNothingAside) {
  Write("job/out", "result");
  chmod((home_ + "/job/out").c_str(), 0640);

  const auto content = Copy(At("job/out"), At("kept/deep/0"), "0.part");

  ASSERT_TRUE(content.ok()) << content.status();
  EXPECT_EQ(content->size(), 6u);
  EXPECT_EQ(Read("kept/deep/0"), "result");
  EXPECT_THAT(Names("kept/deep"), ElementsAre("0"));
  EXPECT_FALSE(Copy(At("job/none"), At("kept/1"), "1.part").ok());
}

TEST_F(TreeTest, WritesFromAnOffsetOnAndAnewFromTheBeginning) {
  Write("job/elsewhere", "not mine to change");
  fs::create_symlink(home_ + "/job/elsewhere", home_ + "/job/stdout");

  ASSERT_TRUE(WriteFrom(At("job/stdout"), 0, "one two", 0640).ok());
  ASSERT_TRUE(WriteFrom(At("job/stdout"), 4, "three", 0640).ok());
  EXPECT_EQ(Read("job/stdout"), "one three");
  ASSERT_TRUE(WriteFrom(At("job/stdout"), 4, "2", 0640).ok());
  EXPECT_EQ(Read("job/stdout"), "one 2");
  ASSERT_TRUE(WriteFrom(At("job/stdout"), 0, "", 0600).ok());

  EXPECT_EQ(Read("job/stdout"), "");
  EXPECT_EQ(Read("job/elsewhere"), "not mine to change");
  EXPECT_FALSE(WriteFrom(At("job/none"), 1, "x", 0600).ok());
}

TEST_F(TreeTest, RemovesATreeAndWhatIsNotThereIsRemoved) {
  fs::create_directories(home_ + "/job/a/b");
  Write("job/a/b/file", "x");
  fs::create_symlink(home_ + "/job", home_ + "/job/a/up");

  EXPECT_TRUE(RemoveTree(At("job/a")).ok());
  EXPECT_TRUE(RemoveTree(At("job/a")).ok());
  EXPECT_TRUE(Remove(At("job/none")).ok());
  EXPECT_TRUE(Remove(At("no/where")).ok());
  EXPECT_THAT(Names("job"), ElementsAre());
  EXPECT_THAT(Names(""), ElementsAre("job"));  // nothing was made on the way
}

// Whom modes keep out.  Root, whom they do not, is nobody meanwhile, and the directory nobody's.
class Nobody {
 public:
  explicit Nobody(const std::string& directory) {
    constexpr uid_t kNobody = 65534;
    CHECK(getuid() != 0 || (chown(directory.c_str(), kNobody, gid_t(-1)) == 0 && seteuid(kNobody) == 0));
  }
  ~Nobody() { CHECK(getuid() != 0 || seteuid(0) == 0); }
  Nobody(const Nobody&) = delete;
  Nobody& operator=(const Nobody&) = delete;
};

TEST_F(TreeTest, RemovesATreeWhoseOwnerHasShutItsDirectories) {
  const Nobody nobody(home_);
  fs::create_directories(home_ + "/shut/a/b");
  Write("shut/a/b/file", "x");
  for (const char* path : {"/shut/a/b", "/shut/a", "/shut"}) {
    ASSERT_EQ(chmod((home_ + path).c_str(), 0), 0);
  }

  EXPECT_TRUE(RemoveTree(At("shut")).ok());

  EXPECT_FALSE(fs::exists(home_ + "/shut"));
}

// In the tree, and in the tree's own place, a directory becomes a link out and a directory again, as fast as it can.
TEST_F(TreeTest, RemovesNothingOutsideWhileNamesAreSwapped) {
  fs::create_directories(home_ + "/precious/deep");
  fs::create_directory(home_ + "/spent");
  Write("precious/file", "x");
  Write("precious/deep/file", "x");
  std::atomic<bool> is_over = false;
  int swaps = 0;
  std::thread attacker([&] {
    const std::string trap = home_ + "/trap", tree = home_ + "/job/tree", precious = home_ + "/precious";
    for (int round = 0; !is_over; ++round) {
      if (!fs::is_symlink(trap)) {  // the link was removed, and what it stood for is left
        rename(trap.c_str(), (home_ + "/spent/" + std::to_string(round)).c_str());
        fs::create_symlink(precious, trap);
      }
      const std::string target = round % 2 == 0 ? tree : tree + "/inner";
      for (int way = 0; way < 2; ++way) {
        swaps += syscall(SYS_renameat2, AT_FDCWD, target.c_str(), AT_FDCWD, trap.c_str(), RENAME_EXCHANGE) == 0 ? 1 : 0;
      }
    }
  });

  int removed = 0;
  for (int i = 0; i < 300; ++i) {
    std::error_code error;
    fs::create_directories(home_ + "/job/tree/inner/deep", error);  // perhaps by the link: other names than those there
    std::ofstream(home_ + "/job/tree/inner/deep/made") << "y";
    removed += RemoveTree(At("job/tree")).ok() ? 1 : 0;
  }
  is_over = true;
  attacker.join();

  EXPECT_GT(swaps, 0);
  EXPECT_GT(removed, 0);
  EXPECT_EQ(Read("precious/file"), "x");
  EXPECT_EQ(Read("precious/deep/file"), "x");
}

TEST_F(TreeTest, MakesADirectoryOfItsOwnOnce) {
  EXPECT_TRUE(MakeDirectory(At("scratch/j")).ok());
  EXPECT_TRUE(MakeDirectory(At("scratch/j")).ok());
  fs::create_symlink("/tmp", home_ + "/scratch/k");
  EXPECT_FALSE(MakeDirectory(At("scratch/k")).ok());
}

TEST_F(TreeTest, KeepsASmallFileForItsOwnerAloneAndReplacesALinkThere) {
  Write("job/elsewhere", "not mine to change");
  fs::create_symlink(home_ + "/job/elsewhere", home_ + "/job/credential");

  ASSERT_TRUE(Keep(At("job/credential"), "first", ".aside").ok());
  ASSERT_TRUE(Keep(At("job/credential"), "second", ".aside").ok());

  EXPECT_EQ(Read("job/credential"), "second");
  EXPECT_EQ(Read("job/elsewhere"), "not mine to change");
  struct stat status {};
  ASSERT_EQ(lstat((home_ + "/job/credential").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode, mode_t(S_IFREG | 0600));
  EXPECT_THAT(Names("job"), ElementsAre("credential", "elsewhere"));
}

}  // namespace
}  // namespace sekisho::qserver::stager
