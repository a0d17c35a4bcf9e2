// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr char kRsl[] = "&(executable=/bin/x)(count=1)";

class QueueHoldsTest : public QueueTest {
 protected:
  Effects Submit(Admitted admitted) {
    const proto::Decision wait = Waits(admitted.job_id);
    return Keep(queue_->Accept(admitted, &wait, kNow));
  }
  static Admitted After(const std::string& id, const std::string& other, bool takes_any = false) {
    Admitted admitted = Ask(id, kRsl);
    (takes_any ? admitted.after_any : admitted.after).push_back(other);
    *(takes_any ? admitted.submitted.add_after_any() : admitted.submitted.add_after()) = other;
    return admitted;
  }
  Effects End(const std::string& id, int code) {
    Keep(queue_->OnStarted("n1", Key(id, 0), kNow));
    return Keep(queue_->OnExited("n1", Exited(id, 0, code), kNow));
  }
};

TEST_F(QueueHoldsTest, AHeldJobWaitsUntilItIsLetGo) {
  Submit(Ask("A", kRsl));
  Keep(*queue_->Hold("A", "", kNow));
  EXPECT_THAT(Asked(), ElementsAre());
  EXPECT_EQ(Status("A").reason(), "is held by its user");
  EXPECT_THAT(Words(*queue_->Hold("A", "", kNow)), ElementsAre());

  Restart();
  EXPECT_THAT(Asked(), ElementsAre());

  const auto effects = queue_->LetGo("A", kNow);
  EXPECT_THAT(Words(*effects), ElementsAre("let_go"));
  EXPECT_TRUE(effects->is_pass_due);
  EXPECT_THAT(Asked(), ElementsAre("A"));
}

TEST_F(QueueHoldsTest, AJobThatWasHeldWhileItsPlaceWasSoughtDoesNotStart) {
  Submit(Ask("A", kRsl));
  Keep(*queue_->Hold("A", "", kNow));

  const Effects effects = Keep(queue_->OnDecision(On("A", {{"n1", 1}}), kNow));
  EXPECT_THAT(Words(effects), ElementsAre());
  EXPECT_TRUE(effects.is_pass_due) << "others may have that place";
  EXPECT_THAT(Words(Keep(queue_->OnDecision(Waits("A"), kNow))), ElementsAre());
  EXPECT_EQ(Status("A").reason(), "is held by its user");
}

TEST_F(QueueHoldsTest, AJobWhoseForerunnerFailedWhileItsPlaceWasSoughtNeverRuns) {
  Start("A", kRsl, {{"n1", 1}});
  const Admitted after = After("B", "A");
  ASSERT_TRUE(queue_->CheckAfter(after).ok());
  End("A", 3);

  const proto::Decision start = On("B", {{"n1", 1}});
  Keep(queue_->Accept(after, &start, kNow));
  EXPECT_EQ(Status("B").state(), proto::FAILED);
  EXPECT_THAT(Status("B").reason(), HasSubstr("A"));
}

TEST_F(QueueHoldsTest, ARunningJobCannotBeHeld) {
  Start("A", kRsl, {{"n1", 1}});

  EXPECT_THAT(std::string(queue_->Hold("A", "", kNow).status().message()), HasSubstr("hold"));
}

TEST_F(QueueHoldsTest, AJobMayBeHeldFromTheFirst) {
  Admitted admitted = Ask("A", kRsl);
  admitted.is_held = true;

  EXPECT_THAT(Words(Submit(admitted)), ElementsAre("submitted", "queued", "held"));
  EXPECT_THAT(Asked(), ElementsAre());
}

TEST_F(QueueHoldsTest, AJobRunsAfterAnotherThatEndsWell) {
  Start("A", kRsl, {{"n1", 1}});
  Submit(After("B", "A"));
  EXPECT_EQ(Status("B").reason(), "waits for the end of A");
  EXPECT_THAT(Asked(), ElementsAre());

  EXPECT_TRUE(End("A", 0).is_pass_due);

  EXPECT_THAT(Asked(), ElementsAre("B"));
}

TEST_F(QueueHoldsTest, AndNeverAfterOneThatFailed) {
  Start("A", kRsl, {{"n1", 1}});
  Submit(After("B", "A"));
  Submit(After("C", "B"));
  Submit(After("D", "A", true));

  End("A", 3);

  EXPECT_EQ(Status("B").state(), proto::FAILED);
  EXPECT_THAT(Status("B").reason(), HasSubstr("job A, which it was to run after, ended DONE"));
  EXPECT_EQ(Status("C").state(), proto::FAILED);
  EXPECT_THAT(Asked(), ElementsAre("D"));
  Restart();
  EXPECT_EQ(Status("C").state(), proto::FAILED);
  EXPECT_THAT(Asked(), ElementsAre("D"));
}

TEST_F(QueueHoldsTest, ALongRowEndsWithoutTellingTheWholeStoryEachTime) {
  constexpr int kJobs = 3000;
  Start("J0", kRsl, {{"n1", 1}});
  for (int i = 1; i < kJobs; ++i) {
    Submit(After(fmt::format("J{}", i), fmt::format("J{}", i - 1)));
  }

  End("J0", 1);

  EXPECT_EQ(Status(fmt::format("J{}", kJobs - 1)).state(), proto::FAILED);
  EXPECT_LT(Status(fmt::format("J{}", kJobs - 1)).reason().size(), 500u);
}

TEST_F(QueueHoldsTest, AnArrayThatNeverBeginsEndsWithItsHeldElement) {
  Start("A", kRsl, {{"n1", 1}});
  Admitted array = After("B", "A");
  *array.submitted.mutable_array()->add_range() = Range(1, 3);
  Submit(array);
  Keep(*queue_->Hold("B[2]", "", kNow));

  End("A", 1);

  EXPECT_EQ(Status("B").state(), proto::FAILED);
  EXPECT_EQ(Status("B[2]").state(), proto::FAILED);
  EXPECT_EQ(queue_->UsageOf("/CN=Alice").live, 0);
}

TEST_F(QueueHoldsTest, ARestartForgetsNoOrder) {
  Start("A", kRsl, {{"n1", 1}});
  Submit(After("B", "A"));
  Restart();
  EXPECT_THAT(Asked(), ElementsAre());

  Keep(queue_->OnAttached("n1", Hello({Key("A", 0)}), kNow));
  End("A", 0);

  EXPECT_THAT(Asked(), ElementsAre("B"));
  Restart();
  EXPECT_THAT(Asked(), ElementsAre("B"));
}

TEST_F(QueueHoldsTest, IsDoneAlsoAfterARestartThatCameBeforeTheFollowersEnd) {
  Start("A", kRsl, {{"n1", 1}});
  Submit(After("B", "A"));
  End("A", 1);
  ASSERT_EQ(events_.back().job_id(), "B");
  events_.pop_back();

  Restart();

  EXPECT_EQ(Status("B").state(), proto::FAILED);
}

TEST_F(QueueHoldsTest, OnlyOwnJobsThatHaveNotFailedCanBeFollowed) {
  EXPECT_THAT(std::string(queue_->CheckAfter(After("B", "A")).message()), HasSubstr("you have no job A here"));
  Start("A", kRsl, {{"n1", 1}});
  EXPECT_TRUE(queue_->CheckAfter(After("B", "A")).ok());
  Admitted strangers = After("B", "A");
  strangers.submitted.set_subject("/CN=Bob");
  EXPECT_THAT(std::string(queue_->CheckAfter(strangers).message()), HasSubstr("you have no job A here"));
  End("A", 1);
  EXPECT_EQ(queue_->CheckAfter(After("B", "A")).code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(queue_->CheckAfter(After("B", "A", true)).ok());
}

TEST_F(QueueHoldsTest, AnElementThatNeverIsFreesWhoFollowsItWithItsArray) {
  Admitted array = Ask("A", kRsl);
  *array.submitted.mutable_array()->add_range() = Range(1, 3);
  Submit(array);
  Submit(After("B", "A[2]", true));
  Submit(After("C", "A[3]"));

  Keep(*queue_->Cancel("A", "cancelled by its user", kNow));

  EXPECT_THAT(Asked(), ElementsAre("B"));
  EXPECT_EQ(Status("C").state(), proto::FAILED);
}

TEST_F(QueueHoldsTest, AnAccountsPriorityCountsWithTheJobsOwn) {
  Submit(Ask("A", kRsl));
  Admitted bobs = Ask("B", kRsl);
  bobs.submitted.set_account("bob");
  Submit(bobs);
  EXPECT_THAT(Asked(), ElementsAre("A", "B"));

  queue_->SetAccountPriorities({{"bob", 10}});
  EXPECT_THAT(Asked(), ElementsAre("B", "A"));
  ASSERT_TRUE(queue_->SetPriority("B", -20).ok());
  EXPECT_THAT(Asked(), ElementsAre("A", "B"));
}

}  // namespace
}  // namespace sekisho::qserver
