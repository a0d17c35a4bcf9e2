// SPDX-License-Identifier: Apache-2.0
#include "common/identity/watched_gridmap.h"

#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using test::WriteFile;

class WatchedGridmapTest : public ::testing::Test {
 protected:
  WatchedGridmapTest() {
    WriteFile(Path(), "\"/CN=Taro\" taro\n");
    EXPECT_TRUE(map_.Read(now_).ok());
  }
  std::string Path() const { return directory_.File("grid-mapfile"); }
  bool Knows(const std::string& subject) const { return map_.gridmap().Lookup(subject, "").ok(); }

  test::TemporaryDirectory directory_;
  WatchedGridmap map_{directory_.File("grid-mapfile")};
  WatchedGridmap::Time now_{};
};

TEST_F(WatchedGridmapTest, ReadsAChangedFileAgainAndSaysSoOnce) {
  EXPECT_FALSE(map_.Refresh(now_));
  WriteFile(Path(), "\"/CN=Jiro\" jiro2\n");

  const auto said = map_.Refresh(now_);

  ASSERT_TRUE(said);
  EXPECT_TRUE(said->ok());
  EXPECT_TRUE(Knows("/CN=Jiro") && !Knows("/CN=Taro"));
  EXPECT_FALSE(map_.Refresh(now_ + std::chrono::hours(1)));
}

// As `cp -p` or a tool that restores times leaves it.
TEST_F(WatchedGridmapTest, SeesAChangeThatKeepsSizeAndTime) {
  struct stat before {};
  ASSERT_EQ(stat(Path().c_str(), &before), 0);
  const timespec times[] = {before.st_atim, before.st_mtim};

  bool is_seen = false;
  for (int i = 0; i < 10'000 && !is_seen; ++i) {  // the kernel's clock of files ticks every few milliseconds
    WriteFile(Path(), "\"/CN=Jiro\" jiro\n");
    ASSERT_EQ(utimensat(AT_FDCWD, Path().c_str(), times, 0), 0);
    is_seen = map_.Refresh(now_).has_value();
  }

  EXPECT_TRUE(is_seen);
  EXPECT_TRUE(Knows("/CN=Jiro"));
}

TEST_F(WatchedGridmapTest, KeepsTheLastGoodVersionAndComplainsAsLongAsItLasts) {
  WriteFile(Path(), "\"/CN=Jiro jiro\n");  // a quote is missing

  const auto first = map_.Refresh(now_);
  ASSERT_TRUE(first);
  EXPECT_FALSE(first->ok());
  EXPECT_TRUE(Knows("/CN=Taro"));
  EXPECT_FALSE(map_.Refresh(now_ + std::chrono::minutes(4)));
  const auto again = map_.Refresh(now_ + std::chrono::minutes(5));
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, *first);
  EXPECT_FALSE(map_.Refresh(now_ + std::chrono::minutes(6)));

  std::filesystem::remove(Path());
  EXPECT_FALSE(map_.Refresh(now_).value_or(absl::OkStatus()).ok());
  EXPECT_TRUE(Knows("/CN=Taro"));
}

}  // namespace
}  // namespace sekisho::identity
