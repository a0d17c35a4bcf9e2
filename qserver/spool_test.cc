// SPDX-License-Identifier: Apache-2.0
#include "qserver/spool.h"

#include <cstdlib>
#include <filesystem>

#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

class SpoolTest : public ::testing::Test {
 protected:
  SpoolTest() {
    char name[] = "/tmp/sekisho-spool-XXXXXX";
    directory_ = mkdtemp(name);
  }
  ~SpoolTest() override { std::filesystem::remove_all(directory_); }

  std::string directory_;
};

TEST_F(SpoolTest, KeepsWhatItIsGivenAtItsPlace) {
  Spool spool(directory_ + "/spool");
  ASSERT_TRUE(spool.Prepare().ok());

  EXPECT_EQ(*spool.Append("j", 0, 0, 0, "hello "), 6u);
  EXPECT_EQ(*spool.Append("j", 0, 0, 6, "world"), 11u);

  EXPECT_EQ(*spool.Read("j", 0, 0, 0, 100), "hello world");
  EXPECT_EQ(*spool.Read("j", 0, 0, 6, 3), "wor");
  EXPECT_EQ(*spool.Read("j", 0, 0, 11, 3), "");
  EXPECT_EQ(*spool.Read("j", 0, 1, 0, 3), "");
}

TEST_F(SpoolTest, TakesNothingWhileTheReserveIsNotFree) {
  Spool spool(directory_, uint64_t{1} << 60);

  const absl::StatusOr<uint64_t> size = spool.Append("j", 0, 0, 0, "abc");

  EXPECT_TRUE(absl::IsResourceExhausted(size.status())) << size.status();
  EXPECT_EQ(spool.Size("j", 0, 0), 0u);
}

TEST_F(SpoolTest, TakesARepeatOnceAndNothingBeyondAGap) {
  Spool spool(directory_);
  spool.Append("j", 0, 0, 0, "abc").IgnoreError();

  EXPECT_EQ(*spool.Append("j", 0, 0, 1, "bcd"), 4u);
  EXPECT_EQ(*spool.Append("j", 0, 0, 0, "ab"), 4u);
  EXPECT_EQ(*spool.Append("j", 0, 0, 9, "z"), 4u);
  EXPECT_EQ(*spool.Read("j", 0, 0, 0, 9), "abcd");
}

TEST_F(SpoolTest, KnowsSizesAfterARestart) {
  { Spool(directory_).Append("j", 3, 1, 0, "err").IgnoreError(); }
  Spool spool(directory_);

  EXPECT_EQ(spool.Size("j", 3, 1), 3u);
  EXPECT_EQ(spool.Size("j", 3, 0), 0u);
  EXPECT_EQ(*spool.Append("j", 3, 1, 3, "or"), 5u);
}

TEST_F(SpoolTest, RemovesAJobWithAllThatItWrote) {
  Spool spool(directory_);
  spool.Append("j", 0, 0, 0, "x").IgnoreError();
  spool.Append("k", 0, 0, 0, "x").IgnoreError();

  spool.Remove("j");

  EXPECT_FALSE(std::filesystem::exists(directory_ + "/j"));
  EXPECT_EQ(*spool.Read("k", 0, 0, 0, 9), "x");
}

TEST_F(SpoolTest, ServesMoreFilesThanItKeepsOpen) {
  Spool spool(directory_);
  for (int task = 0; task < 600; ++task) {
    ASSERT_TRUE(spool.Append("j", task, 0, 0, std::to_string(task)).ok());
  }

  EXPECT_EQ(*spool.Read("j", 5, 0, 0, 9), "5");
  EXPECT_EQ(*spool.Append("j", 5, 0, 1, "!"), 2u);
}

}  // namespace
}  // namespace sekisho::qserver
