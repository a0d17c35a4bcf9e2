// SPDX-License-Identifier: Apache-2.0
#include "agent/pmi_journal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cstdlib>
#include <fstream>

namespace sekisho::agent {
namespace {

const std::vector<PmiEntry> kEntries = {{PmiEntry::Kind::kRelease, 0, 0, std::string("a\0b\n", 4)},
                                        {PmiEntry::Kind::kTask, 5, 2, ""},
                                        {PmiEntry::Kind::kLine, 5, 7, "cmd=put key=k value=l 0 0 3"},
                                        {PmiEntry::Kind::kFence, 0, 0, "\n\n"}};

class PmiJournalTest : public testing::Test {
 protected:
  void SetUp() override {
    char folder[] = "/tmp/sekisho-pmi-XXXXXX";
    ASSERT_NE(mkdtemp(folder), nullptr);
    folder_ = folder;
    path_ = folder_ + "/job";
    PmiJournal journal;
    std::vector<PmiEntry> none;
    ASSERT_TRUE(journal.Open(path_, none));
    EXPECT_TRUE(none.empty());
    for (const PmiEntry& entry : kEntries) {
      EXPECT_TRUE(journal.Append(entry));
    }
  }
  void TearDown() override {
    unlink(path_.c_str());
    EXPECT_EQ(rmdir(folder_.c_str()), 0);
  }
  std::vector<PmiEntry> Read() const {
    std::vector<PmiEntry> entries;
    EXPECT_TRUE(PmiJournal().Open(path_, entries));
    return entries;
  }
  std::string folder_;
  std::string path_;
};

TEST_F(PmiJournalTest, TheNextAgentReadsWhatTheLastOneWrote) { EXPECT_EQ(Read(), kEntries); }

TEST_F(PmiJournalTest, WhereverItWasCutOffItGoesOnBehindTheLastWholeEntry) {
  const PmiEntry next{PmiEntry::Kind::kLine, 6, 1, "cmd=init"};
  const std::vector<PmiEntry> before(kEntries.begin(), kEntries.end() - 1);
  const size_t last = EncodePmiEntry(kEntries.back()).size();
  for (size_t cut = 1; cut < last; ++cut) {
    struct stat info {};
    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    ASSERT_EQ(truncate(path_.c_str(), info.st_size - static_cast<off_t>(cut)), 0);
    std::vector<PmiEntry> entries;
    {
      PmiJournal journal;
      ASSERT_TRUE(journal.Open(path_, entries));
      EXPECT_EQ(entries, before) << cut;
      ASSERT_TRUE(journal.Append(next));
    }
    entries = Read();
    ASSERT_EQ(entries.size(), before.size() + 1) << cut;
    EXPECT_EQ(entries.back(), next);

    ASSERT_EQ(stat(path_.c_str(), &info), 0);
    ASSERT_EQ(truncate(path_.c_str(), info.st_size - static_cast<off_t>(EncodePmiEntry(next).size())), 0);
    PmiJournal journal;
    ASSERT_TRUE(journal.Open(path_, entries) && journal.Append(kEntries.back()));
  }
}

TEST_F(PmiJournalTest, WhatIsNoJournalHasNoEntry) {
  for (const char* bytes : {"", "x 1 1 1\na\n", "l 1 1 9999999999999999999999\na\n", "l 1 1 18446744073709551615\na\n",
                            "l 1 1 3\na\n", "l -\n", "l 1 1 1\nab"}) {
    std::string_view rest = bytes;
    PmiEntry entry;
    EXPECT_FALSE(TakePmiEntry(rest, entry)) << bytes;
    EXPECT_EQ(rest, bytes);
  }
}

TEST_F(PmiJournalTest, OneThatWouldBecomeTooLongIsNoneAnyMore) {
  PmiJournal journal;
  std::vector<PmiEntry> entries;
  ASSERT_TRUE(journal.Open(path_, entries));
  const PmiEntry large{PmiEntry::Kind::kFence, 0, 0, std::string(10 << 20, 'x')};

  EXPECT_TRUE(journal.Append(large));
  EXPECT_FALSE(journal.Append(large));

  EXPECT_FALSE(journal.is_open());
  EXPECT_NE(access(path_.c_str(), F_OK), 0);
}

}  // namespace
}  // namespace sekisho::agent
