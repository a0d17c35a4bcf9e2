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

void Sign(JobEvent& event, const std::string& rsl) {
  proto::RequestBody body;
  body.mutable_submit()->set_rsl(rsl);
  event.mutable_submitted()->mutable_request()->set_body(body.SerializeAsString());
}

JobEvent Submitted(const std::string& id, const std::string& subject = kAlice, int64_t time_ms = 1) {
  JobEvent event;
  event.set_job_id(id);
  event.set_time_ms(time_ms);
  event.mutable_submitted()->set_subject(subject);
  event.mutable_submitted()->set_rsl("&(executable=/bin/true)");
  event.mutable_submitted()->set_service("jobmanager");
  event.mutable_submitted()->set_request_id("r-" + id);
  Sign(event, "&(executable=/bin/true)");
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
  Sign(other, "&(executable=/bin/false)");
  const auto refused = book.IsRepeat(other);

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kAlreadyExists);
  EXPECT_EQ(Message(refused.status()), "request id 'r-j1' was used before, for job j1 with another RSL");
}

TEST(Book, KnowsARepeatOfAJobThatItHasFromTheQueueServer) {
  Book book;
  JobEvent event = At(7, Submitted("j1"));
  event.mutable_submitted()->set_rsl("&(executable=/bin/true)(environment=(X509_USER_PROXY /home/alice/x))");
  ASSERT_TRUE(book.Take(event));

  EXPECT_TRUE(*book.IsRepeat(Submitted("j1")));
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

TEST(Book, TakesLateWhatWasPassedOverAndNothingTwice) {
  Book book;
  ASSERT_TRUE(book.Take(At(1, Submitted("j1"))));
  ASSERT_TRUE(book.Take(At(2, Queued("j1"))));
  ASSERT_TRUE(book.Take(At(4, Submitted("j2"))));

  EXPECT_TRUE(book.Take(At(3, Ended("j1"))));
  EXPECT_FALSE(book.Take(At(3, Ended("j1"))));
  EXPECT_FALSE(book.Take(At(4, Submitted("j2"))));

  EXPECT_EQ(book.Status("j1", kAlice).state(), proto::DONE);
  EXPECT_EQ(book.position(), 4u);
  EXPECT_EQ(book.LastSequence("j1"), 3u);
}

TEST(Book, DoesNotTakeUpAForgottenJobWhenItsEventsComeAgain) {
  Book book;
  ASSERT_TRUE(book.Take(At(1, Submitted("j1"))));
  ASSERT_TRUE(book.Take(At(2, Ended("j1"))));
  book.Withdraw("j1");

  EXPECT_FALSE(book.Take(At(1, Submitted("j1"))));
  EXPECT_FALSE(book.Take(At(2, Ended("j1"))));

  EXPECT_FALSE(book.Has("j1"));
}

TEST(Book, KeepsNothingOfAWithdrawnJob) {
  Book book;
  JobEvent event = Submitted("j1");
  ASSERT_TRUE(book.Add(event).ok());

  book.Withdraw("j1");

  EXPECT_EQ(book.size(), 0u);
  EXPECT_FALSE(*book.IsRepeat(Submitted("j1")));
}

// A subject may have ten thousand jobs of a quarter megabyte each.
TEST(Book, KeepsNoDescriptionAndKnowsARepeatAllTheSame) {
  auto large = Submitted("j1");
  const std::string rsl = "&(executable=/bin/true)(arguments=" + std::string(100'000, 'x') + ")";
  large.mutable_submitted()->set_rsl(rsl);
  Sign(large, rsl);
  auto other = large;
  Sign(other, rsl + " ");

  Book book, replayed;
  ASSERT_TRUE(book.Add(large).ok());
  ASSERT_TRUE(replayed.Replay(large).ok());

  for (const Book* one : {&book, &replayed}) {
    EXPECT_LT(one->FindAny("j1")->ByteSizeLong(), 1'000u);
    EXPECT_TRUE(*one->IsRepeat(large));
    EXPECT_EQ(one->IsRepeat(other).status().code(), absl::StatusCode::kAlreadyExists);
  }
}

TEST(Book, AListFitsAMessageHoweverManyJobsThereAre) {
  Book book;
  for (int number = 0; number < 20'000; ++number) {
    auto submitted = Submitted(std::to_string(number), kAlice, number);
    submitted.mutable_submitted()->set_rsl(std::string(1'000, 'x'));
    submitted.mutable_submitted()->set_executable(std::string(200, 'x'));
    ASSERT_TRUE(book.Add(submitted).ok());
  }

  const proto::StatusReply reply = book.List(kAlice, true);

  EXPECT_LT(reply.ByteSizeLong(), 4u << 20);
  EXPECT_TRUE(reply.is_cut());
  EXPECT_EQ(reply.job(0).job_id(), "19999");
}

TEST(Book, TheQueueServersEndReplacesOneOfOurOwn) {
  Book book;
  auto submitted = Submitted("j1");
  ASSERT_TRUE(book.Add(submitted).ok());
  JobEvent cancelled = Ended("j1", 50);
  cancelled.mutable_ended()->set_state(proto::CANCELLED);
  ASSERT_TRUE(book.Add(cancelled).ok());
  EXPECT_TRUE(book.IsEndedHere("j1"));

  JobEvent started;
  started.set_job_id("j1");
  started.set_sequence(7);
  started.mutable_task_started();
  EXPECT_FALSE(book.Take(started));
  EXPECT_EQ(book.FindAny("j1")->state(), proto::CANCELLED);
  JobEvent done = Ended("j1", 60);
  done.set_sequence(8);
  EXPECT_TRUE(book.Take(done));

  EXPECT_EQ(book.FindAny("j1")->state(), done.ended().state());
  EXPECT_FALSE(book.IsEndedHere("j1"));
  Book replayed;
  for (const auto& event : {submitted, cancelled, done}) {
    EXPECT_TRUE(replayed.Replay(event).ok());
  }
  EXPECT_EQ(replayed.FindAny("j1")->SerializeAsString(), book.FindAny("j1")->SerializeAsString());
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
}

}  // namespace
}  // namespace sekisho::jobmanager
