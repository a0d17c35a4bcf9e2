// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/book.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::jobmanager {
namespace {

using proto::JobEvent;
using testing::ElementsAre;

constexpr char kAlice[] = "/O=Grid/CN=Alice";
constexpr char kMallory[] = "/O=Grid/CN=Mallory";

JobEvent Submitted(const std::string& id, const std::string& subject = kAlice, int64_t time_ms = 1) {
  JobEvent event;
  event.set_job_id(id);
  event.set_time_ms(time_ms);
  event.mutable_submitted()->set_subject(subject);
  event.mutable_submitted()->set_rsl("&(executable=/bin/true)");
  event.mutable_submitted()->set_service("jobmanager");
  event.mutable_submitted()->set_request_id("r-" + id);
  return event;
}

JobEvent At(uint64_t sequence, JobEvent event) {
  event.set_sequence(sequence);
  return event;
}

JobEvent Queued(const std::string& id) {
  JobEvent event;
  event.set_job_id(id);
  event.mutable_queued();
  return event;
}

JobEvent Ended(const std::string& id, int64_t time_ms = 5) {
  JobEvent event;
  event.set_job_id(id);
  event.set_time_ms(time_ms);
  event.mutable_ended()->set_state(proto::DONE);
  return event;
}

TEST(Book, ShowsAJobToItsSubjectAndNobodyElse) {
  Book book;
  JobEvent event = Submitted("j1");
  ASSERT_TRUE(book.Add(event).ok());

  EXPECT_EQ(book.Status("j1", kAlice).state(), proto::UNSUBMITTED);
  EXPECT_EQ(book.Find("j1", kMallory), nullptr);
  EXPECT_EQ(book.List(kMallory, true).job_size(), 0);
}

TEST(Book, SaysTheSameOfAnothersJobAsOfOneThatNeverWas) {
  Book book;
  JobEvent event = Submitted("j1");
  ASSERT_TRUE(book.Add(event).ok());

  const proto::JobStatus others = book.Status("j1", kMallory);
  proto::JobStatus never = Book().Status("j1", kMallory);

  EXPECT_EQ(others.state(), proto::UNKNOWN);
  EXPECT_EQ(others.SerializeAsString(), never.SerializeAsString());
}

TEST(Book, KnowsARepeatAndRefusesAnotherRslUnderTheSameId) {
  Book book;
  JobEvent event = Submitted("j1");
  ASSERT_TRUE(book.Add(event).ok());

  EXPECT_FALSE(*book.IsRepeat(Submitted("j2")));
  EXPECT_TRUE(*book.IsRepeat(Submitted("j1")));
  JobEvent other = Submitted("j1");
  other.mutable_submitted()->set_rsl("&(executable=/bin/false)");
  const auto refused = book.IsRepeat(other);

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Message(refused.status()), "request id 'r-j1' was used before, for job j1 with another RSL");
}

TEST(Book, TakesEachEventOfTheQueueServerOnce) {
  Book book;
  JobEvent event = Submitted("j1");
  ASSERT_TRUE(book.Add(event).ok());

  EXPECT_FALSE(book.Take(At(1, Submitted("j1"))));  // known already
  EXPECT_TRUE(book.Take(At(2, Queued("j1"))));
  EXPECT_FALSE(book.Take(At(2, Queued("j1"))));
  EXPECT_TRUE(book.Take(At(5, Ended("j1"))));
  EXPECT_FALSE(book.Take(At(6, Ended("j1"))));  // nothing follows the end

  EXPECT_EQ(book.Status("j1", kAlice).state(), proto::DONE);
  EXPECT_EQ(book.position(), 6u);
}

TEST(Book, TakesOverAJobThatOnlyTheQueueServerKnows) {
  Book book;

  EXPECT_FALSE(book.Take(At(1, Queued("j9"))));  // of a job long forgotten
  EXPECT_TRUE(book.Take(At(2, Submitted("j1"))));
  EXPECT_TRUE(book.Take(At(3, Queued("j1"))));

  EXPECT_EQ(book.Status("j1", kAlice).state(), proto::PENDING);
}

TEST(Book, ReplayOfWhatWasStoredRestoresIt) {
  Book book;
  std::vector<JobEvent> stored;
  JobEvent first = Submitted("j1");
  ASSERT_TRUE(book.Add(first).ok());
  stored.push_back(first);
  for (const JobEvent& event : {At(3, Queued("j1")), At(9, Ended("j1"))}) {
    ASSERT_TRUE(book.Take(event));
    stored.push_back(event);
  }

  Book again;
  for (const JobEvent& event : stored) {
    ASSERT_TRUE(again.Replay(event).ok());
  }

  EXPECT_EQ(again.position(), 9u);
  EXPECT_EQ(again.Status("j1", kAlice).SerializeAsString(), book.Status("j1", kAlice).SerializeAsString());
}

TEST(Book, NumbersItsOwnEventsByTheLastOneTaken) {
  Book book;
  JobEvent first = Submitted("j1");
  ASSERT_TRUE(book.Add(first).ok());
  ASSERT_TRUE(book.Take(At(7, Queued("j1"))));

  JobEvent waiting;
  waiting.set_job_id("j1");
  waiting.mutable_waiting()->set_reason("so");
  ASSERT_TRUE(book.Add(waiting).ok());

  EXPECT_EQ(first.sequence(), 0u);
  EXPECT_EQ(waiting.sequence(), 7u);
}

TEST(Book, KeepsNothingOfAWithdrawnJob) {
  Book book;
  JobEvent event = Submitted("j1");
  ASSERT_TRUE(book.Add(event).ok());

  book.Withdraw("j1");

  EXPECT_EQ(book.size(), 0u);
  EXPECT_FALSE(*book.IsRepeat(Submitted("j1")));
}

TEST(Book, ListsTheNewestFirstAndEndedOnesOnRequest) {
  Book book;
  for (auto event : {Submitted("a", kAlice, 10), Submitted("b", kAlice, 20), Submitted("c", kAlice, 30)}) {
    ASSERT_TRUE(book.Add(event).ok());
  }
  JobEvent ended = Ended("b", 100);
  ASSERT_TRUE(book.Add(ended).ok());
  const auto ids = [](const proto::StatusReply& reply) {
    std::vector<std::string> result;
    for (const auto& job : reply.job()) {
      result.push_back(job.job_id());
    }
    return result;
  };

  EXPECT_THAT(ids(book.List(kAlice, false)), ElementsAre("c", "a"));
  EXPECT_THAT(ids(book.List(kAlice, true)), ElementsAre("c", "b", "a"));
  EXPECT_THAT(book.EndedBefore(100), ElementsAre());
  EXPECT_THAT(book.EndedBefore(101), ElementsAre("b"));
  EXPECT_THAT(book.Unsubmitted(), ElementsAre("a", "c"));
}

}  // namespace
}  // namespace sekisho::jobmanager
