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

TEST(Journal, KeepsTheLargeOfTheNewestOnly) {
  Journal journal;
  journal.Add("alice", Submitted(1, "small", 10));
  journal.Add("alice", Submitted(2, "large", 10'000));
  for (size_t i = 0; i < Journal::kWhole; ++i) {
    journal.Add("alice", Submitted(3 + i, "new", 10'000));
  }

  const auto found = journal.After("alice", 0, 3);

  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[0].is_cut);
  EXPECT_TRUE(found[1].is_cut);
  EXPECT_EQ(found[1].event.sequence(), 2u);
  EXPECT_EQ(found[1].event.job_id(), "large");
  EXPECT_FALSE(found[2].is_cut);
  EXPECT_EQ(found[2].event.submitted().rsl().size(), 10'000u);
}

TEST(Journal, ForgetsJobsOfAllAccounts) {
  Journal journal;
  journal.Add("alice", Submitted(1, "a", 10));
  journal.Add("alice", Submitted(2, "b", 10));
  journal.Add("bob", Submitted(3, "c", 10));

  journal.Forget({"a", "c"});

  EXPECT_EQ(journal.After("alice", 0, 9).size(), 1u);
  EXPECT_TRUE(journal.After("bob", 0, 9).empty());
}

}  // namespace
}  // namespace sekisho::qserver
