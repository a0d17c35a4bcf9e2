// SPDX-License-Identifier: Apache-2.0
#include "allocator/tree_file.h"

#include <cstdlib>
#include <fstream>

#include <gmock/gmock.h>

namespace sekisho::allocator {
namespace {

namespace fs = std::filesystem;

class TreeFileTest : public ::testing::Test {
 protected:
  TreeFileTest() {
    std::string name = (fs::temp_directory_path() / "treefileXXXXXX").string();
    directory_ = mkdtemp(name.data());
  }
  ~TreeFileTest() override { fs::remove_all(directory_); }

  std::string Path() const { return (directory_ / "tree").string(); }
  // As those do it that write trees: beside, and renamed.
  void Write(const std::string& text) const {
    std::ofstream(Path() + ".new") << text;
    fs::rename(Path() + ".new", Path());
  }

  fs::path directory_;
};

TEST_F(TreeFileTest, IsReadWhenItIsAnotherAndOnlyThen) {
  TreeFile file(Path());
  EXPECT_FALSE(file.Changed());

  Write("n1 s0 20\nn2 s0 20\n");
  const auto first = file.Changed();
  EXPECT_FALSE(file.Changed());
  Write("n1 s0 20\nn2 s0 20\nn3 s0 20\n");
  const auto second = file.Changed();

  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->tree.host_count, 2);
  EXPECT_THAT(second->names, ::testing::ElementsAre("n1", "n2", "n3", "s0"));
  EXPECT_FALSE(file.Changed());
}

TEST_F(TreeFileTest, ThatCannotBeReadOrIsGoneChangesNothing) {
  TreeFile file(Path());
  Write("n1 s0 20\nn2 s0 20\n");
  ASSERT_TRUE(file.Changed());

  for (const char* nonsense : {"n1 s0 20\nn2 s9 20\n", "n1\n", "\xff\n", "n1 s0 -3\n"}) {
    Write(nonsense);
    EXPECT_FALSE(file.Changed()) << nonsense;
  }
  fs::remove(Path());
  EXPECT_FALSE(file.Changed());
  fs::create_directory(Path());
  EXPECT_FALSE(file.Changed());
  fs::remove(Path());
  Write("n1 s0 20\nn2 s0 20\nn3 s0 20\n");

  EXPECT_TRUE(file.Changed());
}

}  // namespace
}  // namespace sekisho::allocator
