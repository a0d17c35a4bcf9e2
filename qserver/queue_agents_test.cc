// SPDX-License-Identifier: Apache-2.0
// Restarts, of the server and of its nodes: who knows what of a job.
#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

TEST_F(QueueTest, AJobEndsWithWhatItsNodeCanStillSend) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  queue_->OnExited("n1", Exited("j", 0, 0, 1000), kNow);
  queue_->OnSpooled(Key("j", 0), 0, 400, kNow);

  EXPECT_THAT(Words(queue_->OnExited("n1", Exited("j", 0, 0, 400), kNow)),
              ElementsAre("ended", "forget@n1"));
}

TEST_F(QueueTest, KnowsAfterARestartWhatItKnewBefore) {
  Start("j", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  const proto::Decision waits = Waits("w");
  Keep(queue_->Accept(Ask("w", "&(executable=/bin/true)"), &waits, kNow));
  const std::string before = Status("j").DebugString() + Status("w").DebugString();

  Restart();

  EXPECT_EQ(Status("j").DebugString() + Status("w").DebugString(), before);
  EXPECT_EQ(queue_->running_count(), 1u);
  EXPECT_EQ(queue_->pending_count(), 1u);
}

TEST_F(QueueTest, StartsAfterARestartWhatItsAgentNeverGot) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Restart();

  EXPECT_THAT(Words(queue_->OnAttached("n1", Hello({}), kNow)), ElementsAre("start@n1"));
}

TEST_F(QueueTest, DoesNotStartTwiceWhatItsAgentHolds) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Restart();

  EXPECT_THAT(Words(queue_->OnAttached("n1", Hello({Key("j", 0)}), kNow)), IsEmpty());
  EXPECT_EQ(queue_->Welcome("n1", Hello({Key("j", 0)})).resume_size(), 1);
}

TEST_F(QueueTest, FailsAJobWhoseRunningTaskItsAgentHasLost) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  Restart();

  EXPECT_THAT(Words(queue_->OnAttached("n1", Hello({}), kNow)),
              ElementsAre("task_exited", "ended", "forget@n1"));
  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_THAT(Status("j").reason(), HasSubstr("node n1 has lost it"));
}

TEST_F(QueueTest, AJobThatLostATaskFailsHoweverOftenTheServerIsRestarted) {
  Start("j", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  Keep(queue_->OnStarted("n2", Key("j", 1), kNow));
  const size_t first = events_.size();
  EXPECT_THAT(Words(Keep(queue_->OnAttached("n1", Hello({}), kNow))),
              ElementsAre("task_exited", "kill@n1", "kill@n2"));
  Keep(queue_->OnExited("n2", Exited("j", 1, 0), kNow));
  const std::vector<proto::JobEvent> all = events_;

  for (size_t known = first; known <= all.size(); ++known) {
    events_.assign(all.begin(), all.begin() + long(known));
    Restart();
    queue_->OnAttached("n1", Hello({}), kNow);
    queue_->OnAttached("n2", Hello({Key("j", 1)}), kNow);
    queue_->OnExited("n2", Exited("j", 1, 0), kNow);

    EXPECT_EQ(Status("j").state(), proto::FAILED) << known;
    EXPECT_EQ(Status("j").gram_code(), 17) << known;
    EXPECT_THAT(Status("j").reason(), HasSubstr("node n1 has lost it")) << known;
  }
}

TEST_F(QueueTest, KnowsALostTaskInTheEventsOfEarlierVersions) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  proto::JobEvent lost;
  lost.set_job_id("j");
  lost.mutable_task_exited()->set_reason("node n1 has lost it");
  events_.push_back(lost);
  Restart();

  queue_->OnAttached("n1", Hello({}), kNow);

  EXPECT_EQ(Status("j").state(), proto::FAILED);
}

TEST_F(QueueTest, WaitsAfterARestartForTheAgentsWordOnHowATaskEnded) {
  Start("j", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  Keep(queue_->OnExited("n1", Exited("j", 0, 7), kNow));
  Restart();

  EXPECT_THAT(Words(queue_->OnExited("n2", Exited("j", 1, 0), kNow)), ElementsAre("task_exited"));
  EXPECT_THAT(Words(queue_->OnExited("n1", Exited("j", 0, 7), kNow)),
              ElementsAre("ended", "forget@n1", "forget@n2"));
  EXPECT_EQ(Status("j").exit().code(), 7);
}

// ---- Hello again, on a stream that stands

TEST_F(QueueTest, WhatMayBeOnItsWayIsNeitherLostNorStartedAgain) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});

  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({}), kNow)), IsEmpty());
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({Key("j", 0)}), kNow)), IsEmpty());
  queue_->OnExited("n1", Exited("j", 0, 0, 1000), kNow);
  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({Key("j", 0)}), kNow)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({Key("j", 0)}), kNow)), IsEmpty());

  EXPECT_EQ(Status("j").state(), proto::ACTIVE);  // its output is still to come
}

TEST_F(QueueTest, AStartThatIsMissingTwiceIsSaidAgain) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  queue_->OnHelloAgain("n1", Hello({}), kNow);

  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({}), kNow)), ElementsAre("start@n1"));
}

TEST_F(QueueTest, MissingTwiceIsTwiceInARowOnOneStream) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  queue_->OnHelloAgain("n1", Hello({}), kNow);
  queue_->OnHelloAgain("n1", Hello({Key("j", 0)}), kNow);
  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({}), kNow)), IsEmpty());

  queue_->OnAttached("n1", Hello({}), kNow);  // the Start goes out again

  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({}), kNow)), IsEmpty());
}

TEST_F(QueueTest, ATaskThatIsHeldBackIsNotMissing) {
  Start("j", "&(executable=/bin/true)(count=2)(stdout=out)", {{"n1", 1}, {"n2", 1}});
  queue_->OnHelloAgain("n2", Hello({}), kNow);
  EXPECT_THAT(Words(queue_->OnHelloAgain("n2", Hello({}), kNow)), IsEmpty());
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));  // its Start goes out now

  EXPECT_THAT(Words(queue_->OnHelloAgain("n2", Hello({}), kNow)), IsEmpty());
}

TEST_F(QueueTest, ARunningTaskThatIsMissingTwiceIsLost) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));

  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({}), kNow)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({}), kNow)), ElementsAre("task_exited", "ended", "forget@n1"));

  EXPECT_THAT(Status("j").reason(), HasSubstr("node n1 has lost it"));
}

TEST_F(QueueTest, AJobThatEndedStaysAsItEndedThoughItsNodeHasYetToForgetIt) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Keep(queue_->OnExited("n1", Exited("j", 0, 7), kNow));

  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({Key("j", 0)}), kNow)), ElementsAre("kill@n1", "forget@n1"));

  EXPECT_EQ(Status("j").state(), proto::DONE);
  EXPECT_EQ(Status("j").exit().code(), 7);
}

TEST_F(QueueTest, TheRestOfAFailedJobIsKilledOnce) {
  Start("j", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  proto::AgentMessage::Exited failed = Exited("j", 0, 0);
  failed.set_gram_code(5);
  EXPECT_THAT(Words(queue_->OnExited("n1", failed, kNow)), ElementsAre("task_exited", "kill@n1", "kill@n2"));

  EXPECT_THAT(Words(queue_->OnExited("n1", failed, kNow)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelloAgain("n2", Hello({Key("j", 1)}), kNow)), IsEmpty());
}

TEST_F(QueueTest, OutputThatItsNodeHasLostIsNotWaitedFor) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Keep(queue_->OnExited("n1", Exited("j", 0, 0, 1000), kNow));
  queue_->OnHelloAgain("n1", Hello({}), kNow);

  EXPECT_THAT(Words(queue_->OnHelloAgain("n1", Hello({}), kNow)), ElementsAre("ended", "forget@n1"));
}

TEST_F(QueueTest, RepeatsOfAnEndDoNotProlongTheWaitForTheOutputOfACancelledJob) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  ASSERT_TRUE(queue_->Cancel("j", "by its user", kNow).ok());
  queue_->OnExited("n1", Exited("j", 0, 0, 1000), kNow);
  queue_->OnExited("n1", Exited("j", 0, 0, 1000), kNow + 50'000);

  EXPECT_THAT(Words(queue_->EndStalled(kNow + 61'000)), ElementsAre("ended", "forget@n1"));
}

TEST_F(QueueTest, ClearsANodeOfJobsThatItDoesNotKnow) {
  EXPECT_THAT(Words(queue_->OnAttached("n1", Hello({Key("zz", 0)}), kNow)),
              ElementsAre("kill@n1", "forget@n1"));
}

TEST_F(QueueTest, EndsAJobWhoseStoredDescriptionItDoesNotUnderstand) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Start("k", "&(executable=/bin/true)", {{"n1", 1}});
  events_[0].mutable_submitted()->set_rsl("&(executable=/bin/true)(of_the_future=1)");
  queue_ = MakeQueue();
  for (const proto::JobEvent& event : events_) {
    ASSERT_TRUE(queue_->Replay(event).ok());
  }

  const Effects effects =
      queue_->FinishReplay([](const std::string&, int, int) { return 0; }, kNow);

  EXPECT_THAT(Words(effects), ElementsAre("ended", "forget@n1"));
  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_THAT(Status("j").reason(), HasSubstr("does not understand"));
  EXPECT_EQ(Status("k").state(), proto::PENDING);
}

TEST_F(QueueTest, ANodeThatMissedTheResumeIsToldWhenItComesBack) {
  Start("j", "&(executable=/bin/x)", {{"n1", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  ASSERT_TRUE(queue_->Suspend("j", kNow).ok());
  ASSERT_TRUE(queue_->Resume("j", kNow).ok());

  const Effects effects = queue_->OnAttached("n1", Hello({Key("j", 0)}), kNow);

  ASSERT_THAT(Words(effects), ElementsAre("stop@n1"));
  EXPECT_TRUE(effects.messages[0].message.stop().resume());
}

TEST_F(QueueTest, AStartThatWasNotAnsweredIsLostWithItsNodesBoot) {
  proto::AgentMessage::Hello hello;
  hello.set_boot_id("boot-1");
  queue_->OnAttached("n1", hello, kNow);
  Start("same", "&(executable=/bin/x)", {{"n1", 1}});
  Start("other", "&(executable=/bin/x)", {{"n1", 1}});
  EXPECT_THAT(Words(queue_->OnAttached("n1", hello, kNow)), ElementsAre("start@n1", "start@n1"));

  Restart();
  hello = Hello({Key("same", 0)});
  hello.set_boot_id("boot-2");
  queue_->OnAttached("n1", hello, kNow);

  EXPECT_EQ(Status("same").state(), proto::PENDING);  // the node has its record, and will say more
  EXPECT_EQ(Status("other").state(), proto::FAILED);
  EXPECT_EQ(Status("other").gram_code(), 17);
  EXPECT_THAT(Status("other").reason(), HasSubstr("node n1 was restarted before"));
}

}  // namespace
}  // namespace sekisho::qserver
