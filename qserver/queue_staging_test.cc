// SPDX-License-Identifier: Apache-2.0
// Jobs whose files come first.
#include "common/refusal.h"
#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

class QueueStagingTest : public QueueTest {
 protected:
  void Submit(int commit_within_s = 0) {
    Admitted admitted = Ask("j", "&(executable=/bin/true)(file_stage_in=(a b))");
    admitted.has_stage_in = true;
    admitted.commit_within_s = commit_within_s;
    admitted.files.Add()->set_url("a");
    const proto::Decision decision = On("j", {{"n1", 1}});
    accepted_ = Keep(queue_->Accept(admitted, &decision, kNow));
  }

  Effects accepted_;
};

TEST_F(QueueStagingTest, TakesNoProcessorsBeforeItsFilesAreThere) {
  Submit();

  EXPECT_THAT(Words(accepted_), ElementsAre("submitted", "queued", "staging_in"));
  EXPECT_EQ(Status("j").state(), proto::STAGE_IN);
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_THAT(queue_->StagingJobs(), ElementsAre("j"));

  const Effects effects = Keep(queue_->OnStagedIn("j", kNow));

  EXPECT_THAT(Words(effects), ElementsAre("staged_in"));
  EXPECT_TRUE(effects.is_pass_due);
  EXPECT_EQ(Status("j").state(), proto::PENDING);
  EXPECT_THAT(Asked(), ElementsAre("j"));
  EXPECT_THAT(queue_->StagingJobs(), IsEmpty());
  EXPECT_THAT(Words(queue_->OnStagedIn("j", kNow)), IsEmpty());
  EXPECT_THAT(Words(Keep(queue_->OnDecision(On("j", {{"n1", 1}}), kNow))), Contains("start@n1"));
}

TEST_F(QueueStagingTest, SaysOnceWhatItWaitsFor) {
  Submit();

  EXPECT_THAT(Words(queue_->OnStillStaging("j", "waits for a file", kNow)), ElementsAre("staging_in"));
  EXPECT_THAT(Words(queue_->OnStillStaging("j", "waits for a file", kNow)), IsEmpty());
  EXPECT_EQ(Status("j").reason(), "waits for a file");
}

TEST_F(QueueStagingTest, SaysNothingMoreOfOneThatHasEndedMeanwhile) {
  Submit();
  Keep(*queue_->Cancel("j", "cancelled by its user", kNow));

  EXPECT_THAT(Words(queue_->OnStillStaging("j", "its stager does not answer", kNow)), IsEmpty());
  EXPECT_EQ(Status("j").reason(), "cancelled by its user");
}

TEST_F(QueueStagingTest, WaitsForItsFilesAndItsCommit) {
  Submit(30);
  Keep(*queue_->Commit("j", kNow));
  EXPECT_THAT(Asked(), IsEmpty());
  Keep(queue_->OnStagedIn("j", kNow));
  EXPECT_THAT(Asked(), ElementsAre("j"));
}

TEST_F(QueueStagingTest, FailsWithTheReasonIfTheyCannotBePutInPlace) {
  Submit();
  Keep(queue_->OnStagingFailed("j", Refuse(absl::StatusCode::kInvalidArgument, 0, "no room", "make some"), kNow));

  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_EQ(Status("j").gram_code(), 135);
  EXPECT_EQ(Status("j").remedy(), "make some");
  EXPECT_THAT(queue_->StagingJobs(), IsEmpty());
  EXPECT_THAT(Words(queue_->OnStagedIn("j", kNow)), IsEmpty());
}

TEST_F(QueueStagingTest, EndsWhenTheyDoNotComeInTime) {
  Submit();
  EXPECT_THAT(Words(queue_->EndUnstaged(3'600'000, kNow + 3'600'000)), IsEmpty());
  EXPECT_THAT(Words(Keep(queue_->EndUnstaged(3'600'000, kNow + 3'600'001))), ElementsAre("ended"));
  EXPECT_THAT(Status("j").reason(), HasSubstr("did not come within 1 h"));
}

TEST_F(QueueStagingTest, EndsAtOnceWhenItIsCancelled) {
  Submit();
  Keep(*queue_->Cancel("j", "cancelled by its user", kNow));
  EXPECT_EQ(Status("j").state(), proto::CANCELLED);
  EXPECT_THAT(queue_->StagingJobs(), IsEmpty());
}

TEST_F(QueueStagingTest, WaitsOnAfterARestart) {
  Submit();
  Restart();
  EXPECT_THAT(Asked(), IsEmpty());
  EXPECT_THAT(queue_->StagingJobs(), ElementsAre("j"));
  Keep(queue_->OnStagedIn("j", kNow));
  Restart();
  EXPECT_THAT(Asked(), ElementsAre("j"));
}

class QueueStageOutTest : public QueueTest {
 protected:
  void Run(int code) {
    Admitted admitted = Ask("j", "&(executable=/bin/true)(file_stage_out=(a client:///b))");
    admitted.has_stage_out = true;
    const proto::Decision decision = On("j", {{"n1", 1}});
    Keep(queue_->Accept(admitted, &decision, kNow));
    Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
    ended_ = Keep(queue_->OnExited("n1", Exited("j", 0, code), kNow));
  }
  static proto::StagedFile File() {
    proto::StagedFile file;
    file.set_destination("client:///b");
    file.set_is_kept(true);
    return file;
  }

  Effects ended_;
};

TEST_F(QueueStageOutTest, AJobHasNotEndedBeforeItsFilesAreWhereTheyAreToGo) {
  Run(3);

  EXPECT_THAT(Words(ended_), ElementsAre("task_exited", "staging_out"));
  EXPECT_EQ(Status("j").state(), proto::STAGE_OUT);
  EXPECT_TRUE(queue_->IsToGo("j", 0, false));  // whatever its exit code
  Keep(queue_->OnStagedOut("j", File(), kNow));
  EXPECT_FALSE(queue_->IsToGo("j", 0, false));
  const Effects done = Keep(queue_->OnStageOutDone("j", absl::OkStatus(), kNow));

  EXPECT_THAT(Words(done), ElementsAre("ended", "forget@n1"));
  EXPECT_EQ(Status("j").state(), proto::DONE);
  EXPECT_EQ(Status("j").exit().code(), 3);
  EXPECT_EQ(Status("j").staged_out(0).destination(), "client:///b");
  EXPECT_THAT(queue_->StagingOutJobs(), IsEmpty());
}

TEST_F(QueueStageOutTest, GoesOnAfterARestartBehindWhatHasGone) {
  Run(0);
  Keep(queue_->OnStagedOut("j", File(), kNow));
  Restart();

  EXPECT_THAT(queue_->StagingOutJobs(), ElementsAre("j"));
  EXPECT_EQ(Status("j").staged_out_size(), 1);
  EXPECT_FALSE(queue_->IsToGo("j", 0, false));
  EXPECT_TRUE(queue_->IsToGo("j", 1, false));
  EXPECT_THAT(Words(Keep(queue_->OnStageOutDone("j", absl::OkStatus(), kNow))), Contains("ended"));
  EXPECT_TRUE(queue_->Find("j")->has_place);
}

TEST_F(QueueStageOutTest, AFileThatCannotGoFailsTheJobWhichKeepsItsExitCode) {
  Run(2);

  Keep(queue_->OnStageOutDone("j", Refuse(absl::StatusCode::kNotFound, 155, "file_stage_out: a: none", "look"), kNow));

  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_EQ(Status("j").gram_code(), 155);
  EXPECT_EQ(Status("j").exit().code(), 2);
  EXPECT_THAT(Status("j").reason(), HasSubstr("file_stage_out: a"));
}

TEST_F(QueueStageOutTest, SaysForWhatItWaitsOnceForEachReason) {
  Run(0);

  EXPECT_THAT(Words(Keep(queue_->OnStillStagingOut("j", "trying again: h is down", kNow))), ElementsAre("staging_out"));
  EXPECT_THAT(Words(queue_->OnStillStagingOut("j", "trying again: h is down", kNow)), IsEmpty());
  Restart();
  EXPECT_EQ(Status("j").state(), proto::STAGE_OUT);
  EXPECT_EQ(Status("j").reason(), "trying again: h is down");
}

TEST_F(QueueStageOutTest, WhatAKilledJobHasSaidGoesOutItsFilesDoNot) {
  Admitted admitted = Ask("j", "&(executable=/bin/true)(file_stage_out=(a b))(stdout=client:///o)");
  admitted.has_stage_out = true;
  const proto::Decision decision = On("j", {{"n1", 1}});
  Keep(queue_->Accept(admitted, &decision, kNow));
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  proto::AgentMessage::Exited killed = Exited("j", 0, 0);
  killed.mutable_exit()->set_signal(9);
  Keep(queue_->OnExited("n1", killed, kNow));

  EXPECT_FALSE(queue_->IsToGo("j", 0, false));
  EXPECT_TRUE(queue_->IsToGo("j", 1, true));
  Keep(queue_->OnStageOutDone("j", Refuse(absl::StatusCode::kNotFound, 155, "stdout: client:///o: full", ""), kNow));
  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_EQ(Status("j").reason(), "the program was killed by signal 9; stdout: client:///o: full");
}

TEST_F(QueueStageOutTest, ATaskThatEndsBeforeItsStartIsHeardHasSpoken) {
  Admitted admitted = Ask("j", "&(executable=/bin/true)(stdout=client:///o)");
  admitted.has_stage_out = true;
  const proto::Decision decision = On("j", {{"n1", 1}});
  Keep(queue_->Accept(admitted, &decision, kNow));

  Keep(queue_->OnExited("n1", Exited("j", 0, 0), kNow));

  EXPECT_TRUE(queue_->IsToGo("j", 0, true));
}

TEST_F(QueueStageOutTest, OfACancelledJobNothingGoesOut) {
  Admitted admitted = Ask("j", "&(executable=/bin/true)(scratch_dir=s)");
  admitted.has_stage_out = true;
  const proto::Decision waits = Waits("j");
  Keep(queue_->Accept(admitted, &waits, kNow));

  EXPECT_THAT(Words(Keep(*queue_->Cancel("j", "cancelled by its user", kNow))), ElementsAre("cancelling", "staging_out"));
  EXPECT_FALSE(queue_->HasSpoken("j"));
  EXPECT_FALSE(queue_->IsToGo("j", 0, true));
  EXPECT_EQ(queue_->Ask(kNow, {}, {}).pending_size(), 0);
  EXPECT_THAT(Words(Keep(queue_->OnDecision(On("j", {{"n1", 1}}), kNow))), IsEmpty()) << "as of an old question";
  Keep(queue_->OnStageOutDone("j", absl::OkStatus(), kNow));
  EXPECT_EQ(Status("j").state(), proto::CANCELLED);
}

}  // namespace
}  // namespace sekisho::qserver
