// SPDX-License-Identifier: Apache-2.0
// A job from its request to its end.
#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(QueueTest, AJobThatFitsStartsAtOnce) {
  const Effects effects = Start("j", "&(executable=/bin/true)", {{"n1", 1}});

  EXPECT_THAT(Words(effects), ElementsAre("submitted", "queued", "allocated", "start@n1"));
  EXPECT_EQ(Status("j").state(), proto::PENDING);
}

TEST_F(QueueTest, AJobIsActiveFromItsFirstTaskAndDoneWithItsLast) {
  Start("j", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});

  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  EXPECT_EQ(Status("j").state(), proto::ACTIVE);
  EXPECT_THAT(Words(queue_->OnExited("n1", Exited("j", 0, 0), kNow)), ElementsAre("task_exited"));
  const Effects last = queue_->OnExited("n2", Exited("j", 1, 3), kNow);

  EXPECT_THAT(Words(last), ElementsAre("task_exited", "ended", "forget@n1", "forget@n2"));
  EXPECT_TRUE(last.is_pass_due);
  EXPECT_EQ(Status("j").state(), proto::DONE);
  EXPECT_EQ(Status("j").exit().code(), 3);
}

TEST_F(QueueTest, AJobHasNotEndedBeforeItsOutputHasCome) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});

  EXPECT_THAT(Words(queue_->OnExited("n1", Exited("j", 0, 0, 10), kNow)),
              ElementsAre("task_exited"));
  EXPECT_THAT(Words(queue_->OnSpooled(Key("j", 0), 0, 9, kNow)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnSpooled(Key("j", 0), 0, 10, kNow)),
              ElementsAre("ended", "forget@n1"));
}

TEST_F(QueueTest, AJobWhoseOutputFindsNoRoomFailsAndSaysSo) {
  Start("j", "&(executable=/bin/yes)", {{"n1", 1}});
  queue_->OnStarted("n1", Key("j", 0), kNow);

  EXPECT_THAT(Words(queue_->OnSpoolFull(Key("j", 0), kNow)), ElementsAre("waiting", "kill@n1"));
  EXPECT_THAT(Words(queue_->OnSpoolFull(Key("j", 0), kNow)), IsEmpty());
  queue_->OnExited("n1", Exited("j", 0, 0, 1 << 30), kNow);

  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_THAT(Status("j").reason(), HasSubstr("no room for more output"));
}

TEST_F(QueueTest, ThatThereIsNoRoomForOutputOutlivesARestart) {
  Start("j", "&(executable=/bin/yes)", {{"n1", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  Keep(queue_->OnSpoolFull(Key("j", 0), kNow));

  Restart();

  EXPECT_THAT(Words(queue_->OnAttached("n1", Hello({Key("j", 0)}), kNow)), ElementsAre("kill@n1"));
  proto::AgentMessage::Exited killed = Exited("j", 0, 0);
  killed.mutable_exit()->set_signal(15);
  queue_->OnExited("n1", killed, kNow);
  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_THAT(Status("j").reason(), HasSubstr("no room for more output"));
}

TEST_F(QueueTest, StartsEachTaskOnceHoweverManyNodesThereAre) {
  const Effects effects = Start("j", "&(executable=/bin/true)(count=4)", {{"n1", 2}, {"n2", 2}});

  EXPECT_THAT(Words(effects), ElementsAre("submitted", "queued", "allocated", "start@n1", "start@n1",
                                          "start@n2", "start@n2"));
}

TEST_F(QueueTest, ARepeatedExitChangesNothing) {
  Start("j", "&(executable=/bin/true)(count=2)", {{"n1", 2}});
  queue_->OnExited("n1", Exited("j", 0, 5), kNow);

  EXPECT_THAT(Words(queue_->OnExited("n1", Exited("j", 0, 5), kNow)), IsEmpty());
  queue_->OnExited("n1", Exited("j", 1, 0), kNow);
  EXPECT_THAT(Words(queue_->OnExited("n1", Exited("j", 1, 0), kNow)), ElementsAre("forget@n1"));
}

TEST_F(QueueTest, AJobThatCannotStartFailsWithItsNumberAndTakesTheRestAlong) {
  Start("j", "&(executable=/no)(count=2)", {{"n1", 1}, {"n2", 1}});
  queue_->OnStarted("n2", Key("j", 1), kNow);
  proto::AgentMessage::Exited failed = Exited("j", 0, 0);
  failed.set_gram_code(5);
  failed.set_reason("/no: no such file");

  EXPECT_THAT(Words(queue_->OnExited("n1", failed, kNow)),
              ElementsAre("task_exited", "kill@n1", "kill@n2"));
  queue_->OnExited("n2", Exited("j", 1, 0), kNow);

  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_EQ(Status("j").gram_code(), 5);
  EXPECT_THAT(Status("j").reason(), HasSubstr("/no: no such file"));
}

TEST_F(QueueTest, WhateverFailsATaskItsUserIsToldWhatToDo) {
  for (const int code : {3, 4, 5, 11, 17, 46, 71, 72, 73, 74, 98, 167, 165}) {
    const std::string id = "j" + std::to_string(code);
    Start(id, "&(executable=/no)", {{"n1", 1}});
    proto::AgentMessage::Exited failed = Exited(id, 0, 0);
    failed.set_gram_code(code);
    failed.set_reason("why");

    queue_->OnExited("n1", failed, kNow);

    EXPECT_EQ(Status(id).gram_code(), code);
    EXPECT_NE(Status(id).remedy(), "") << code;
  }
}

TEST_F(QueueTest, AWaitingJobStartsWhenTheAllocatorSaysSo) {
  const proto::Decision waits = Waits("j");
  EXPECT_THAT(Words(queue_->Accept(Ask("j", "&(executable=/bin/true)"), &waits, kNow)),
              ElementsAre("submitted", "queued", "waiting"));
  EXPECT_EQ(Status("j").reason(), "waits for 1 more processor on R");
  EXPECT_EQ(queue_->Ask(kNow, {}, {}).pending(0).resource(), "R");

  EXPECT_THAT(Words(queue_->OnDecision(On("j", {{"n2", 1}}), kNow)),
              ElementsAre("allocated", "start@n2"));
  EXPECT_THAT(Words(queue_->OnDecision(On("j", {{"n1", 1}}), kNow)), IsEmpty());
}

TEST_F(QueueTest, AsksAgainWhatIsBehindItsWindowWhenAJobHasStarted) {
  for (int i = 0; i < 100; ++i) {
    const std::string id = "j" + std::to_string(i);
    const proto::Decision waits = Waits(id);
    Keep(queue_->Accept(Ask(id, "&(executable=/bin/true)"), &waits, kNow));
  }
  const proto::DecideRequest question = queue_->Ask(kNow, {}, {});
  ASSERT_LT(question.pending_size(), 100);  // it does not show them all
  proto::DecideReply answer;
  for (const proto::Demand& demand : question.pending()) {
    *answer.add_decision() = Waits(demand.job_id());
  }

  EXPECT_FALSE(queue_->HasMoreToAsk(question, answer));
  *answer.mutable_decision(0) = On(question.pending(0).job_id(), {{"n1", 1}});
  EXPECT_TRUE(queue_->HasMoreToAsk(question, answer));
}

TEST_F(QueueTest, AsksAboutFewOfAKindAndForMoreOfItWhenAllOfThemHaveStarted) {
  for (int i = 0; i < 20; ++i) {
    const std::string id = "j" + std::to_string(i);
    const proto::Decision waits = Waits(id);
    const char* count = i < 15 ? "1" : "2";
    Keep(queue_->Accept(Ask(id, std::string("&(executable=/bin/true)(count=") + count + ")"), &waits, kNow));
  }

  const proto::DecideRequest question = queue_->Ask(kNow, {}, {}, Queue::Breadth::kFew);
  std::vector<std::string> ids;
  proto::DecideReply answer;
  for (const proto::Demand& demand : question.pending()) {
    ids.push_back(demand.job_id());
    *answer.add_decision() = demand.processes() == 1 ? On(demand.job_id(), {{"n1", 1}}) : Waits(demand.job_id());
  }
  EXPECT_THAT(ids, ElementsAre("j0", "j1", "j2", "j3", "j15", "j16", "j17", "j18"));

  EXPECT_TRUE(queue_->HasMoreToAsk(question, answer));
  *answer.mutable_decision(3) = Waits("j3");
  EXPECT_FALSE(queue_->HasMoreToAsk(question, answer));
}

TEST_F(QueueTest, RecordsAChangedReasonOnlyWhenAllAreAskedAbout) {
  proto::Decision waits = Waits("j");
  Keep(queue_->Accept(Ask("j", "&(executable=/bin/true)"), &waits, kNow));
  waits.mutable_wait()->set_reason("waits for 2 more processors on R");

  EXPECT_THAT(Words(queue_->OnDecision(waits, kNow, Queue::Breadth::kFew)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnDecision(waits, kNow)), ElementsAre("waiting"));
}

TEST_F(QueueTest, HoldsTasksBackThatShareAFileUntilTheFirstHasEmptiedIt) {
  EXPECT_THAT(
      Words(Start("j", "&(executable=/bin/true)(count=2)(stdout=out)", {{"n1", 1}, {"n2", 1}})),
      ElementsAre("submitted", "queued", "allocated", "start@n1"));

  EXPECT_THAT(Words(queue_->OnStarted("n1", Key("j", 0), kNow)),
              ElementsAre("task_started", "start@n2"));
}

TEST_F(QueueTest, KnowsWhatASubjectsJobsTakeAlsoAfterARestart) {
  Start("a", "&(executable=/bin/true)(arguments=one)", {{"n1", 1}});
  Start("b", "&(executable=/bin/true)", {{"n1", 1}});
  Keep(queue_->OnExited("n1", Exited("a", 0, 0), kNow));
  const Queue::Usage before = queue_->UsageOf("/CN=Alice");
  EXPECT_EQ(before.live, 1);
  EXPECT_GT(before.bytes, 80u);
  Restart();

  EXPECT_EQ(queue_->UsageOf("/CN=Alice").live, 1);
  EXPECT_EQ(queue_->UsageOf("/CN=Alice").bytes, before.bytes);
  EXPECT_EQ(queue_->UsageOf("/CN=Bob").live, 0);
  queue_->Forget("a");
  EXPECT_LT(queue_->UsageOf("/CN=Alice").bytes, before.bytes);
}

TEST_F(QueueTest, ForgetsEndedJobsAfterTheirTime) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  queue_->OnExited("n1", Exited("j", 0, 0), kNow);

  EXPECT_THAT(queue_->EndedBefore(kNow), IsEmpty());
  EXPECT_THAT(queue_->EndedBefore(kNow + 1), ElementsAre("j"));
  EXPECT_THAT(queue_->EndedBefore(kNow + 1, 1, [](const std::string& id) { return id == "j"; }), IsEmpty());
  queue_->Forget("j");
  EXPECT_EQ(Status("j").state(), proto::UNKNOWN);
}

}  // namespace
}  // namespace sekisho::qserver
