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

TEST(Journal, CutsWhatIsLargeOfAJobThatHasEnded) {
  Journal journal;
  journal.Add("alice", Submitted(1, "small", 10));
  journal.Add("alice", Submitted(2, "large", 10'000));
  journal.Add("alice", Submitted(3, "runs", 10'000));
  journal.Cut("alice", "small");
  journal.Cut("alice", "large");

  const auto found = journal.After("alice", 0, 10);

  ASSERT_EQ(found.size(), 3u);
  EXPECT_FALSE(found[0].is_cut);
  EXPECT_TRUE(found[1].is_cut);
  EXPECT_EQ(found[1].event.sequence(), 2u);
  EXPECT_EQ(found[1].event.job_id(), "large");
  EXPECT_FALSE(found[2].is_cut);
  EXPECT_EQ(found[2].event.submitted().rsl().size(), 10'000u);
}

}  // namespace
}  // namespace sekisho::qserver
