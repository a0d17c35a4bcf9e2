// SPDX-License-Identifier: Apache-2.0
#include "qserver/relay_renewal.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr size_t kMost = 10;

class RelayRenewalTest : public testing::Test {
 protected:
  static identity::Time At(int second) { return identity::Time(seconds(1'000'000 + second)); }

  RelayRenewal renewal_{seconds(100)};
};

TEST_F(RelayRenewalTest, IsDueAtHalfOfTheLifeOfTheOldestToken) {
  renewal_.OnStarted("j", At(0));
  renewal_.OnStarted("j", At(40));  // a later task

  EXPECT_THAT(renewal_.Due(At(49), kMost), IsEmpty());
  EXPECT_THAT(renewal_.Due(At(50), kMost), ElementsAre("j"));
}

TEST_F(RelayRenewalTest, IsDueAgainHalfALifeAfterItWasRenewed) {
  renewal_.OnStarted("j", At(0));
  renewal_.OnRenewed("j", At(50));

  EXPECT_THAT(renewal_.Due(At(99), kMost), IsEmpty());
  EXPECT_THAT(renewal_.Due(At(100), kMost), ElementsAre("j"));
}

TEST_F(RelayRenewalTest, IsDueAgainSoonAfterItCouldNotBeRenewed) {
  renewal_.OnStarted("j", At(0));
  renewal_.OnFailed("j", At(50));

  EXPECT_THAT(renewal_.Due(At(55), kMost), IsEmpty());
  EXPECT_THAT(renewal_.Due(At(56), kMost), ElementsAre("j"));
}

TEST_F(RelayRenewalTest, IsDueAtOnceWhereANodeWasAway) {
  renewal_.OnStarted("j", At(0));
  renewal_.OnReturned("j");
  renewal_.OnReturned("from before a restart");

  EXPECT_THAT(renewal_.Due(At(1), kMost), ElementsAre("from before a restart", "j"));
}

TEST_F(RelayRenewalTest, AJobThatHasEndedIsNeverDue) {
  renewal_.OnStarted("j", At(0));
  renewal_.OnEnded("j");

  EXPECT_THAT(renewal_.Due(At(1000), kMost), IsEmpty());
}

TEST_F(RelayRenewalTest, AClockThatIsSetBackMakesItDue) {
  renewal_.OnStarted("j", At(0));

  EXPECT_THAT(renewal_.Due(At(-3600), kMost), ElementsAre("j"));
}

TEST_F(RelayRenewalTest, GivesNoMoreThanWasAskedFor) {
  for (const char* job : {"a", "b", "c"}) {
    renewal_.OnReturned(job);
  }

  EXPECT_THAT(renewal_.Due(At(0), 2), ElementsAre("a", "b"));
}

TEST_F(RelayRenewalTest, LooksOftenEnough) {
  EXPECT_EQ(RelayRenewal(seconds(4)).Interval(), seconds(1));
  EXPECT_EQ(RelayRenewal(seconds(160)).Interval(), seconds(10));
  EXPECT_EQ(RelayRenewal(seconds(86400)).Interval(), seconds(60));
}

TEST(TokenHolders, AreTasksThatRunOrStandReadyAndHelpers) {
  Job job;
  job.has_processors = true;
  job.tasks.resize(4);
  for (Task& task : job.tasks) {
    task.node = "n1";
  }
  job.tasks[1].is_started = true;
  job.tasks[2].is_started = job.tasks[2].is_ended = true;
  job.part = std::make_unique<Part>(proto::Charter());
  job.part->ready.insert(3);
  job.helpers[{"n2", kFirstHelper}];
  job.helpers[{"n2", kFirstHelper + 1}].is_ended = true;

  EXPECT_THAT(TokenHolders(job), ElementsAre(TokenHolder{"n1", 1}, TokenHolder{"n1", 3}, TokenHolder{"n2", kFirstHelper}));
}

TEST(TokenHolders, AreNoneOfAJobWithoutProcessors) {
  Job job;
  job.tasks.resize(1);
  job.tasks[0].is_started = true;

  EXPECT_THAT(TokenHolders(job), IsEmpty());
}

}  // namespace
}  // namespace sekisho::qserver
