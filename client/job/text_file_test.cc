// SPDX-License-Identifier: Apache-2.0
#include "client/job/text_file.h"

#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::client {
namespace {

class TextFile : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = ::testing::TempDir() + "text.XXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& text) const {
    std::ofstream(folder_ + "/f") << text;
    return folder_ + "/f";
  }

  std::string folder_;
};

TEST_F(TextFile, IsReadWhole) {
  const std::string text(10'000, 'x');

  EXPECT_EQ(*ReadTextFile(Write(text)), text);
  EXPECT_EQ(*ReadTextFile(Write("")), "") << "there is nothing wrong with an empty one";
}

TEST_F(TextFile, ThatCannotBeReadIsNamedWithTheReasonAndWhatToDo) {
  const absl::Status missing = ReadTextFile(folder_ + "/none").status();
  const absl::Status folder = ReadTextFile(folder_, "name a machine file").status();

  EXPECT_EQ(Message(missing), folder_ + "/none: cannot read it: No such file or directory");
  EXPECT_EQ(Remedy(missing), "name a file that you may read");
  EXPECT_EQ(Message(folder), folder_ + ": cannot read it: Is a directory");
  EXPECT_EQ(Remedy(folder), "name a machine file");
}

}  // namespace
}  // namespace sekisho::client
