// SPDX-License-Identifier: Apache-2.0
#include "qserver/journal.h"

#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

proto::JobEvent Submitted(uint64_t sequence, const std::string& job_id, size_t bytes) {
  proto::JobEvent event;
  event.set_sequence(sequence);
  event.set_job_id(job_id);
  event.mutable_submitted()->set_rsl(std::string(bytes, 'x'));
  return event;
}

TEST(Journal, KeepsTheNewestOnly) {
  Journal journal;
  const size_t size = Journal::kBytes / 3;  // and some more: there is room for two
  for (uint64_t sequence = 1; sequence <= 4; ++sequence) {
    journal.Add("alice", Submitted(sequence, "j" + std::to_string(sequence), size));
  }

  const auto found = journal.After("alice", 1, 2);

  ASSERT_EQ(found.size(), 2u);
  EXPECT_TRUE(found[0].is_cut);
  EXPECT_EQ(found[0].event.sequence(), 2u);
  EXPECT_EQ(found[0].event.job_id(), "j2");
  EXPECT_FALSE(found[1].is_cut);
  EXPECT_EQ(found[1].event.sequence(), 3u);
  EXPECT_EQ(found[1].event.submitted().rsl().size(), size);
}

TEST(Journal, KeepsTheNewestHoweverLarge) {
  Journal journal;
  journal.Add("alice", Submitted(1, "huge", 2 * Journal::kBytes));

  EXPECT_FALSE(journal.After("alice", 0, 9)[0].is_cut);
}

TEST(Journal, ForgetsJobsOfAllAccounts) {
  Journal journal;
  journal.Add("alice", Submitted(1, "a", 10));
  journal.Add("alice", Submitted(2, "b", 10));
  journal.Add("bob", Submitted(3, "c", 10));

  journal.Forget({"a", "c"});

  ASSERT_EQ(journal.After("alice", 0, 9).size(), 1u);
  EXPECT_EQ(journal.After("alice", 0, 9)[0].event.job_id(), "b");
  EXPECT_EQ(journal.After("alice", 0, 9)[0].event.submitted().rsl().size(), 10u);
  EXPECT_TRUE(journal.After("bob", 0, 9).empty());
}

}  // namespace
}  // namespace sekisho::qserver
