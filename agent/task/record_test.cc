// SPDX-License-Identifier: Apache-2.0
#include "agent/task/record.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>
#include <cerrno>
#include <cstdlib>
#include <filesystem>

namespace sekisho::agent::task {
namespace {

TEST(Record, KeepsAnyValueWithoutNul) {
  const Fields fields{{"a", ""}, {"b", "x=y\nz"}, {"b", "\xff"}};

  EXPECT_EQ(Decode(Encode(fields)), fields);
}

TEST(Record, RefusesWhatIsCutOff) {
  const std::string whole = Encode({{"key", "value"}, {"other", "1"}});

  for (size_t size = 1; size < whole.size(); ++size) {
    const auto fields = Decode(std::string_view(whole).substr(0, size));
    EXPECT_TRUE(!fields || fields->size() < 2) << size;
  }
  EXPECT_FALSE(Decode(std::string_view("=x\0", 3)));
  EXPECT_FALSE(Decode(std::string_view("novalue\0", 8)));
}

TEST(Record, ReadsNumbersWholeOrNotAtAll) {
  const Fields fields{{"a", "12"}, {"b", "12x"}, {"c", ""}, {"d", "99999999999999999999"}};

  EXPECT_EQ(GetNumber(fields, "a"), 12);
  EXPECT_FALSE(GetNumber(fields, "b"));
  EXPECT_FALSE(GetNumber(fields, "c"));
  EXPECT_FALSE(GetNumber(fields, "d"));
  EXPECT_FALSE(GetNumber(fields, "absent"));
}

TEST(Record, FileAppearsWholeAndReplacesTheOldOne) {
  char path[] = "/tmp/record-XXXXXX";
  ASSERT_NE(mkdtemp(path), nullptr);
  const int dir = open(path, O_RDONLY | O_DIRECTORY);

  EXPECT_TRUE(WriteFile(dir, "f", "one", Durability::kProcess));
  EXPECT_TRUE(WriteFile(dir, "f", "two", Durability::kMachine));
  std::string content;
  EXPECT_TRUE(ReadFile(dir, "f", content));

  EXPECT_EQ(content, "two");
  int files = 0;
  for ([[maybe_unused]] const auto& entry : std::filesystem::directory_iterator(path)) {
    ++files;
  }
  EXPECT_EQ(files, 1);
  EXPECT_FALSE(ReadFile(dir, "absent", content));
  EXPECT_EQ(errno, ENOENT);
  close(dir);
  std::filesystem::remove_all(path);
}

TEST(Record, AReservedFileIsWrittenIntoItsRoom) {
  char path[] = "/tmp/record-XXXXXX";
  ASSERT_NE(mkdtemp(path), nullptr);
  const int dir = open(path, O_RDONLY | O_DIRECTORY);

  EXPECT_TRUE(ReserveFile(dir, "f", 4096));
  EXPECT_EQ(std::filesystem::file_size(std::string(path) + "/.f.new"), 4096u);
  EXPECT_TRUE(WriteFile(dir, "f", "short", Durability::kMachine));

  std::string content;
  EXPECT_TRUE(ReadFile(dir, "f", content));
  EXPECT_EQ(content, "short");
  EXPECT_FALSE(std::filesystem::exists(std::string(path) + "/.f.new"));
  close(dir);
  std::filesystem::remove_all(path);
}

}  // namespace
}  // namespace sekisho::agent::task
