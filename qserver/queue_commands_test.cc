// SPDX-License-Identifier: Apache-2.0
// What users and administrators ask of jobs.
#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

TEST_F(QueueTest, CancelsAWaitingJobAtOnce) {
  const proto::Decision waits = Waits("j");
  queue_->Accept(Ask("j", "&(executable=/bin/true)"), &waits, kNow);

  EXPECT_THAT(Words(*queue_->Cancel("j", "by its user", kNow)), ElementsAre("cancelling", "ended"));
  EXPECT_EQ(Status("j").state(), proto::CANCELLED);
  EXPECT_EQ(Status("j").gram_code(), 8);
  EXPECT_EQ(queue_->pending_count(), 0u);
}

TEST_F(QueueTest, CancelsARunningJobOnAllItsNodesAndWaitsForItsTasks) {
  Start("j", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  queue_->OnStarted("n1", Key("j", 0), kNow);

  EXPECT_THAT(Words(*queue_->Cancel("j", "by its user", kNow)),
              ElementsAre("cancelling", "kill@n1", "kill@n2"));
  EXPECT_THAT(Words(*queue_->Cancel("j", "by its user", kNow)), IsEmpty());
  EXPECT_EQ(Status("j").state(), proto::ACTIVE);
  queue_->OnExited("n1", Exited("j", 0, 0), kNow);
  queue_->OnExited("n2", Exited("j", 1, 0), kNow);

  EXPECT_EQ(Status("j").state(), proto::CANCELLED);
}

TEST_F(QueueTest, ACancelledJobEndsAlsoIfItsOutputNeverComes) {
  Start("j", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  queue_->OnStarted("n1", Key("j", 0), kNow);
  queue_->OnStarted("n2", Key("j", 1), kNow);
  queue_->OnExited("n1", Exited("j", 0, 0, 1000), kNow);
  ASSERT_TRUE(queue_->Cancel("j", "by its user", kNow).ok());

  EXPECT_THAT(Words(queue_->EndStalled(kNow + 61'000)), IsEmpty());  // a task still runs
  queue_->OnExited("n2", Exited("j", 1, 0, 1000), kNow + 50'000);
  EXPECT_THAT(Words(queue_->EndStalled(kNow + 100'000)), IsEmpty());
  queue_->OnSpooled(Key("j", 1), 0, 10, kNow + 60'000);
  EXPECT_THAT(Words(queue_->EndStalled(kNow + 120'000)), IsEmpty());
  EXPECT_THAT(Words(queue_->EndStalled(kNow + 121'000)),
              ElementsAre("ended", "forget@n1", "forget@n2"));
  EXPECT_EQ(Status("j").state(), proto::CANCELLED);
}

TEST_F(QueueTest, SuspendsAndResumesOnlyWhatRuns) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  EXPECT_FALSE(queue_->Suspend("j", kNow).ok());
  queue_->OnStarted("n1", Key("j", 0), kNow);

  EXPECT_THAT(Words(*queue_->Suspend("j", kNow)), ElementsAre("suspended", "stop@n1"));
  EXPECT_EQ(Status("j").state(), proto::SUSPENDED);
  EXPECT_THAT(Words(*queue_->Resume("j", kNow)), ElementsAre("resumed", "stop@n1"));
  EXPECT_FALSE(queue_->Resume("unknown", kNow).ok());
}

TEST_F(QueueTest, LowersPriorityOfWaitingJobs) {
  for (const char* id : {"a", "b"}) {
    const proto::Decision waits = Waits(id);
    queue_->Accept(Ask(id, "&(executable=/bin/true)"), &waits, kNow);
  }
  ASSERT_TRUE(queue_->SetPriority("a", -1).ok());

  EXPECT_EQ(queue_->Ask(kNow, {}, {}).pending(0).job_id(), "b");
}

TEST_F(QueueTest, GoesOnCancellingAfterARestart) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  Keep(*queue_->Cancel("j", "by its user", kNow));
  Restart();

  EXPECT_THAT(Words(queue_->OnAttached("n1", Hello({Key("j", 0)}), kNow)), ElementsAre("kill@n1"));
}

constexpr char kLost[] = "node n2 was declared lost by /CN=Admin";

TEST_F(QueueTest, FailsTheJobsOfANodeThatIsDeclaredLostAndNoOthers) {
  Start("both", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  Start("there", "&(executable=/bin/true)", {{"n2", 1}});
  Start("elsewhere", "&(executable=/bin/true)", {{"n1", 1}});
  for (const char* job : {"both", "elsewhere"}) {
    Keep(queue_->OnStarted("n1", Key(job, 0), kNow));
  }
  Keep(queue_->OnStarted("n2", Key("both", 1), kNow));
  queue_->SetAttached("n2", false);

  EXPECT_THAT(queue_->JobsOn("n2"), ElementsAre("both", "there"));
  const Effects effects = Keep(queue_->DeclareLost("n2", kLost, kNow));

  EXPECT_TRUE(effects.is_pass_due);
  EXPECT_EQ(Status("there").state(), proto::FAILED);
  EXPECT_EQ(Status("there").gram_code(), 17);
  EXPECT_EQ(Status("there").reason(), kLost);
  EXPECT_EQ(Status("elsewhere").state(), proto::ACTIVE);
  // What is elsewhere of a job is killed, and waited for.
  EXPECT_THAT(Words(effects), ::testing::Contains("kill@n1"));
  EXPECT_EQ(Status("both").state(), proto::ACTIVE);
  Keep(queue_->OnExited("n1", Exited("both", 0, 0), kNow));
  EXPECT_EQ(Status("both").state(), proto::FAILED);
  EXPECT_EQ(Status("both").reason(), std::string("task 1 on n2: ") + kLost);
}

TEST_F(QueueTest, ALostNodeStaysLostOverARestart) {
  Start("both", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  Keep(queue_->OnStarted("n1", Key("both", 0), kNow));
  Keep(queue_->DeclareLost("n2", kLost, kNow));

  Restart();
  Keep(queue_->OnExited("n1", Exited("both", 0, 0), kNow));

  EXPECT_EQ(Status("both").state(), proto::FAILED);
}

TEST_F(QueueTest, KillsWhatALostNodeStillRunsWhenItComesBack) {
  Start("both", "&(executable=/bin/true)(count=2)", {{"n1", 1}, {"n2", 1}});
  Keep(queue_->OnStarted("n2", Key("both", 1), kNow));
  Keep(queue_->DeclareLost("n2", kLost, kNow));

  EXPECT_THAT(Words(Keep(queue_->OnAttached("n2", Hello({Key("both", 1)}), kNow))), ::testing::Contains("kill@n2"));
}

TEST_F(QueueTest, ALauncherWhoseHelpersNodeIsLostFailsWithThatReason) {
  Start("mpi", "&(executable=/bin/true)(count=2)(job_type=mpi)", {{"n1", 1}, {"n2", 1}});
  Keep(queue_->OnStarted("n1", Key("mpi", 0), kNow));

  EXPECT_THAT(Words(Keep(queue_->DeclareLost("n2", kLost, kNow))), ::testing::Contains("kill@n1"));
  proto::AgentMessage::Exited exited = Exited("mpi", 0, 0);
  exited.mutable_exit()->set_signal(15);
  Keep(queue_->OnExited("n1", exited, kNow));

  EXPECT_EQ(Status("mpi").state(), proto::FAILED);
  EXPECT_EQ(Status("mpi").reason(), kLost);
}

TEST_F(QueueTest, ACancelledJobEndsCancelledWhenItsNodeIsLost) {
  Start("there", "&(executable=/bin/true)", {{"n2", 1}});
  ASSERT_TRUE(queue_->Cancel("there", "by its user", kNow).ok());

  Keep(queue_->DeclareLost("n2", kLost, kNow));

  EXPECT_EQ(Status("there").state(), proto::CANCELLED);
}

}  // namespace
}  // namespace sekisho::qserver
