// SPDX-License-Identifier: Apache-2.0
#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class QueueArraysTest : public QueueTest {
 protected:
  Effects Submit(int first, int last, int at_once = 0, const std::string& rsl = "&(executable=/bin/x)(count=1)") {
    Admitted admitted = Ask("A", rsl);
    *admitted.submitted.mutable_array()->add_range() = Range(first, last);
    admitted.submitted.mutable_array()->set_at_once(at_once);
    const proto::Decision wait = Waits("A");
    return Keep(queue_->Accept(admitted, &wait, kNow));
  }
  void Begin(const std::string& id) {
    Keep(queue_->OnDecision(On(id, {{"n1", 1}}), kNow));
    Keep(queue_->OnStarted("n1", Key(id, 0), kNow));
  }
  void Finish(const std::string& id, int code) { Keep(queue_->OnExited("n1", Exited(id, 0, code), kNow)); }
  proto::ArrayStatus Counts() { return Status("A").array(); }
};

TEST_F(QueueArraysTest, WaitsAsOneJobAndIsAskedForByItsElements) {
  Submit(1, 3);

  EXPECT_EQ(queue_->pending_count(), 1u);
  EXPECT_THAT(Asked(), ElementsAre("A[1]", "A[2]", "A[3]"));
  EXPECT_EQ(Counts().waiting(), 3);
  EXPECT_EQ(Status("A[2]").state(), proto::PENDING);
  EXPECT_EQ(Status("A[4]").state(), proto::UNKNOWN);
}

TEST_F(QueueArraysTest, AnElementIsAJobOnceItStarts) {
  Submit(1, 3, 0, "&(executable=/bin/x)(arguments=\"in.\001i\001\")");

  const Effects effects = Keep(queue_->OnDecision(On("A[2]", {{"n1", 1}}), kNow));

  EXPECT_THAT(Words(effects), ElementsAre("submitted", "allocated", "start@n1"));
  const proto::ServerMessage::Start& start = effects.messages[0].message.start();
  EXPECT_EQ(start.task().job_id(), "A[2]");
  EXPECT_EQ(start.argument(1), "in.2");
  EXPECT_EQ(start.environment().at("SEKISHO_ARRAY_INDEX"), "2");
  EXPECT_EQ(start.environment().at("SEKISHO_ARRAY_JOB"), "A");
  EXPECT_THAT(Asked(), ElementsAre("A[1]", "A[3]"));
  Keep(queue_->OnStarted("n1", Key("A[2]", 0), kNow));
  EXPECT_EQ(Status("A").state(), proto::ACTIVE);
  EXPECT_EQ(Status("A[2]").state(), proto::ACTIVE);
  EXPECT_EQ(Counts().running(), 1);
}

TEST_F(QueueArraysTest, AllocatesNoMoreAtATimeThanItMay) {
  Submit(1, 5, 2);
  EXPECT_THAT(Asked(), ElementsAre("A[1]", "A[2]"));

  Begin("A[1]");
  Begin("A[2]");
  EXPECT_THAT(Asked(), ElementsAre());
  EXPECT_THAT(Words(Keep(queue_->OnDecision(On("A[3]", {{"n1", 1}}), kNow))), ElementsAre());  // as of an old question

  Finish("A[1]", 0);
  EXPECT_THAT(Asked(), ElementsAre("A[3]"));
}

TEST_F(QueueArraysTest, EndsWithItsLastElementAndTellsOfTheFirstThatFailed) {
  Submit(1, 3);
  for (const char* id : {"A[1]", "A[2]", "A[3]"}) {
    Begin(id);
  }

  Finish("A[3]", 5);
  Finish("A[2]", 4);
  EXPECT_EQ(Status("A").state(), proto::ACTIVE);
  Finish("A[1]", 0);

  EXPECT_EQ(Status("A").state(), proto::DONE);
  EXPECT_EQ(Status("A").exit().code(), 4);
  EXPECT_THAT(Status("A").reason(), HasSubstr("2 failed"));
  EXPECT_THAT(Status("A").reason(), HasSubstr("[2]"));
  EXPECT_EQ(Counts().done(), 1);
  EXPECT_EQ(queue_->UsageOf("/CN=Alice").live, 0);
}

TEST_F(QueueArraysTest, CancellingItEndsWhatRunsAndNothingElseIsEver) {
  Submit(1, 4);
  Begin("A[1]");
  Begin("A[2]");
  Finish("A[1]", 0);

  const auto effects = queue_->Cancel("A", "cancelled by its user", kNow);
  ASSERT_TRUE(effects.ok());
  Keep(*effects);
  EXPECT_THAT(Words(*effects), ElementsAre("cancelling", "cancelling", "kill@n1"));
  EXPECT_THAT(Asked(), ElementsAre());
  Finish("A[2]", 0);

  EXPECT_EQ(Status("A").state(), proto::CANCELLED);
  EXPECT_EQ(Status("A[2]").state(), proto::CANCELLED);
  EXPECT_EQ(Status("A[3]").state(), proto::CANCELLED);
  EXPECT_EQ(Counts().done(), 1);
  EXPECT_EQ(Counts().cancelled(), 3);
}

TEST_F(QueueArraysTest, WaitsWithAllItsElementsForTheFilesOfAll) {
  Admitted admitted = Ask("A", "&(executable=/bin/x)(file_stage_in=(a b))");
  admitted.submitted.mutable_array()->add_range()->set_last(1);
  admitted.submitted.mutable_array()->mutable_range(0)->set_step(1);
  admitted.has_stage_in = true;
  const proto::Decision start = On("A", {{"n1", 1}});
  EXPECT_THAT(Words(Keep(queue_->Accept(admitted, &start, kNow))), ElementsAre("submitted", "queued", "staging_in"));
  Keep(*queue_->Hold("A[1]", "", kNow));  // it exists now, and is let go before its files have come
  Keep(*queue_->LetGo("A[1]", kNow));
  EXPECT_THAT(Asked(), ElementsAre());

  Keep(queue_->OnStagedIn("A", kNow));

  EXPECT_THAT(Asked(), ::testing::UnorderedElementsAre("A[0]", "A[1]"));
}

TEST_F(QueueArraysTest, OneThatHasNotStartedIsCancelledAtOnce) {
  ASSERT_THAT(Words(Submit(7, 7)), ElementsAre("submitted", "queued", "waiting"));

  const auto effects = queue_->Cancel("A", "cancelled by its user", kNow);

  EXPECT_THAT(Words(*effects), ElementsAre("cancelling", "ended"));
}

TEST_F(QueueArraysTest, AnElementIsCancelledAloneAlsoBeforeItIs) {
  Submit(1, 3);

  const auto effects = queue_->Cancel("A[2]", "cancelled by its user", kNow);
  ASSERT_TRUE(effects.ok());
  Keep(*effects);

  EXPECT_THAT(Words(*effects), ElementsAre("submitted", "cancelling", "ended"));
  EXPECT_THAT(Asked(), ElementsAre("A[1]", "A[3]"));
  Begin("A[1]");
  Finish("A[1]", 0);
  Begin("A[3]");
  Finish("A[3]", 0);
  EXPECT_EQ(Status("A").state(), proto::CANCELLED);
  EXPECT_THAT(Status("A").reason(), HasSubstr("1 were cancelled"));
}

TEST_F(QueueArraysTest, SuspendingItStopsWhatRunsAndLetsNothingStart) {
  Submit(1, 3);
  Begin("A[1]");

  const auto suspended = queue_->Suspend("A", kNow);
  ASSERT_TRUE(suspended.ok());
  Keep(*suspended);
  EXPECT_THAT(Words(*suspended), ElementsAre("suspended", "suspended", "stop@n1"));
  EXPECT_THAT(Asked(), ElementsAre());

  const auto resumed = queue_->Resume("A", kNow);
  EXPECT_THAT(Words(*resumed), ElementsAre("resumed", "resumed", "stop@n1"));
  EXPECT_TRUE(resumed->is_pass_due);
  EXPECT_THAT(Asked(), ElementsAre("A[2]", "A[3]"));
}

TEST_F(QueueArraysTest, IsTheSameAfterARestart) {
  Submit(1, 5, 3);
  Begin("A[1]");
  Finish("A[1]", 2);
  Begin("A[2]");
  Keep(*queue_->Cancel("A[4]", "cancelled by its user", kNow));
  const std::string before = Counts().SerializeAsString();

  Restart();

  EXPECT_EQ(Counts().SerializeAsString(), before);
  EXPECT_EQ(Status("A[2]").state(), proto::ACTIVE);
  EXPECT_THAT(Asked(), ElementsAre("A[3]", "A[5]"));
  for (const char* id : {"A[3]", "A[5]"}) {
    Begin(id);
    Finish(id, 0);
  }
  Finish("A[2]", 0);
  EXPECT_EQ(Status("A").state(), proto::CANCELLED);
  Restart();
  EXPECT_EQ(Status("A").state(), proto::CANCELLED);
  EXPECT_EQ(Status("A").exit().code(), 2);
}

TEST_F(QueueArraysTest, EndsAfterARestartThatCameBetweenItsLastElementsEndAndItsOwn) {
  Submit(1, 1);
  Begin("A[1]");
  Finish("A[1]", 0);
  ASSERT_TRUE(events_.back().has_ended());
  events_.pop_back();

  Restart();

  EXPECT_EQ(Status("A").state(), proto::DONE);
}

TEST_F(QueueArraysTest, IsForgottenWithItsElementsAndNotWithoutThem) {
  Submit(1, 2);
  Begin("A[1]");
  Finish("A[1]", 0);
  EXPECT_THAT(queue_->EndedBefore(kNow + 1), ElementsAre());

  Begin("A[2]");
  Finish("A[2]", 0);
  const std::vector<std::string> gone = queue_->EndedBefore(kNow + 1);
  EXPECT_THAT(gone, ElementsAre("A"));
  EXPECT_THAT(queue_->EndedBefore(kNow + 1), ElementsAre("A"));  // it could not be forgotten yet
  queue_->Forget("A");
  EXPECT_EQ(Status("A[1]").state(), proto::UNKNOWN);
  EXPECT_EQ(queue_->UsageOf("/CN=Alice").bytes, 0u);
}

}  // namespace
}  // namespace sekisho::qserver
