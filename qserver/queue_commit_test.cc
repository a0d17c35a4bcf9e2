// SPDX-License-Identifier: Apache-2.0
// Jobs that may not start before their users say so.
#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;

class QueueCommitTest : public QueueTest {
 protected:
  QueueCommitTest() {
    Admitted admitted = Ask("j", "&(executable=/bin/true)");
    admitted.commit_within_s = 30;
    const proto::Decision decision = On("j", {{"n1", 1}});
    accepted_ = Keep(queue_->Accept(admitted, &decision, kNow));
  }

  Effects accepted_;
};

TEST_F(QueueCommitTest, DoesNotStartAlsoWhereItCould) {
  EXPECT_THAT(Words(accepted_), ElementsAre("submitted", "queued", "uncommitted"));
  EXPECT_TRUE(accepted_.is_pass_due);
  EXPECT_EQ(Status("j").state(), proto::PENDING);
  EXPECT_EQ(Status("j").reason(), "waits for its commit");
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_EQ(queue_->NextCommitBy(), kNow + 30'000);
}

TEST_F(QueueCommitTest, StartsOnceCommittedAndIsCommittedOnce) {
  const Effects effects = Keep(*queue_->Commit("j", kNow));

  EXPECT_THAT(Words(effects), ElementsAre("committed"));
  EXPECT_TRUE(effects.is_pass_due);
  EXPECT_THAT(Asked(), ElementsAre("j"));
  EXPECT_FALSE(queue_->NextCommitBy());
  EXPECT_THAT(Words(*queue_->Commit("j", kNow)), IsEmpty());
  EXPECT_THAT(Words(Keep(queue_->OnDecision(On("j", {{"n1", 1}}), kNow))), Contains("start@n1"));
  EXPECT_THAT(Words(queue_->EndUncommitted(kNow + 30'000)), IsEmpty());
}

TEST_F(QueueCommitTest, FailsWithGramsNumberWhenItsTimeIsOver) {
  EXPECT_THAT(Words(queue_->EndUncommitted(kNow + 29'999)), IsEmpty());

  EXPECT_THAT(Words(Keep(queue_->EndUncommitted(kNow + 30'000))), ElementsAre("ended"));

  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_EQ(Status("j").gram_code(), 111);
  EXPECT_FALSE(queue_->Commit("j", kNow).ok());
  EXPECT_FALSE(queue_->NextCommitBy());
}

TEST_F(QueueCommitTest, IsGivenMoreTime) {
  Keep(*queue_->ExtendCommit("j", 10, kNow));

  EXPECT_THAT(Words(queue_->EndUncommitted(kNow + 39'999)), IsEmpty());
  EXPECT_EQ(queue_->NextCommitBy(), kNow + 40'000);
  Keep(*queue_->Commit("j", kNow));
  EXPECT_EQ(queue_->ExtendCommit("j", 10, kNow).status().code(), absl::StatusCode::kFailedPrecondition);
}

TEST_F(QueueCommitTest, WaitsOnOverARestartAndStaysCommittedOverOne) {
  Restart();
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_EQ(queue_->NextCommitBy(), kNow + 30'000);

  Keep(*queue_->Commit("j", kNow));
  Restart();
  EXPECT_THAT(Asked(), ElementsAre("j"));
  EXPECT_FALSE(queue_->NextCommitBy());
  EXPECT_TRUE(queue_->Commit("j", kNow).ok());
}

TEST_F(QueueCommitTest, ACancelEndsIt) {
  EXPECT_THAT(Words(Keep(*queue_->Cancel("j", "by its user", kNow))), ElementsAre("cancelling", "ended"));
  EXPECT_EQ(Status("j").state(), proto::CANCELLED);
  EXPECT_FALSE(queue_->NextCommitBy());
}

TEST_F(QueueCommitTest, ItsPriorityCountsOnceItIsCommitted) {
  ASSERT_TRUE(queue_->SetPriority("j", -5).ok());
  EXPECT_THAT(Asked(), IsEmpty());

  Keep(*queue_->Commit("j", kNow));

  EXPECT_THAT(Asked(), ElementsAre("j"));
}

TEST_F(QueueCommitTest, ItsEndIsCommittedWhenItHasEnded) {
  EXPECT_FALSE(queue_->CheckCommitEnd("j").ok());
  Keep(*queue_->Cancel("j", "by its user", kNow));
  EXPECT_TRUE(queue_->CheckCommitEnd("j").ok());
}

TEST_F(QueueCommitTest, TheLongestTimesOfManyEndEachOnce) {
  Admitted admitted = Ask("long", "&(executable=/bin/true)");
  admitted.commit_within_s = 2'147'483'647;  // the most that RSL takes
  admitted.is_held = true;
  EXPECT_THAT(Words(Keep(queue_->Accept(admitted, nullptr, kNow))),
              ElementsAre("submitted", "queued", "held", "uncommitted"));
  Keep(*queue_->ExtendCommit("long", 86'400, kNow));
  const int64_t over = kNow + (2'147'483'647 + int64_t{86'400}) * 1000;

  EXPECT_THAT(Words(queue_->EndUncommitted(over - 1)), ElementsAre("ended"));  // of the other
  EXPECT_THAT(Words(queue_->EndUncommitted(over)), ElementsAre("ended"));
  EXPECT_FALSE(queue_->NextCommitBy());
}

TEST_F(QueueTest, AJobOfOnePhaseIsNotCommitted) {
  Start("other", "&(executable=/bin/true)", {{"n1", 1}});

  for (const absl::Status& status : {queue_->Commit("other", kNow).status(), queue_->CheckCommitEnd("other"),
                                     queue_->ExtendCommit("other", 5, kNow).status()}) {
    EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  }
}

}  // namespace
}  // namespace sekisho::qserver
