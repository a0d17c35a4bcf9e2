// SPDX-License-Identifier: Apache-2.0
#include "qserver/queue.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "qserver/demand.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr int64_t kNow = 1'000'000;

// What the effects are, a word each: events by kind, messages as KIND@NODE.
std::vector<std::string> Words(const Effects& effects) {
  std::vector<std::string> words;
  for (const proto::JobEvent& event : effects.events) {
    words.push_back(event.GetDescriptor()->FindFieldByNumber(int(event.kind_case()))->name());
  }
  for (const Effects::Outgoing& out : effects.messages) {
    words.push_back(
        out.message.GetDescriptor()->FindFieldByNumber(int(out.message.kind_case()))->name() + "@" +
        out.node);
  }
  return words;
}

class QueueTest : public ::testing::Test {
 protected:
  QueueTest() : queue_(MakeQueue()) {
    queue_->SetAttached("n1", true);
    queue_->SetAttached("n2", true);
  }

  static std::unique_ptr<Queue> MakeQueue() {
    TaskSettings settings;
    settings.site = "siteA";
    return std::make_unique<Queue>(settings, 0);
  }

  static Admitted Ask(const std::string& id, const std::string& rsl) {
    Admitted admitted;
    admitted.job_id = id;
    admitted.gatekeeper_subject = "/CN=host/gate.example.org";
    admitted.submitted.set_rsl(rsl);
    admitted.submitted.set_account("alice");
    admitted.submitted.set_subject("/CN=Alice");
    proto::RequestBody body;
    body.set_gatekeeper_subject(admitted.gatekeeper_subject);
    body.mutable_submit();
    admitted.submitted.mutable_request()->set_body(body.SerializeAsString());
    admitted.demand = MakeDemand(id, *rsl::ParseAndDescribe(rsl, {}), 0);
    return admitted;
  }
  static proto::Decision On(const std::string& id,
                            const std::vector<std::pair<std::string, int>>& places) {
    proto::Decision decision;
    decision.set_job_id(id);
    decision.mutable_start()->set_resource("R");
    for (const auto& [node, processes] : places) {
      proto::Placement& place = *decision.mutable_start()->add_placement();
      place.set_node(node);
      place.set_processes(processes);
    }
    return decision;
  }
  static proto::Decision Waits(const std::string& id) {
    proto::Decision decision;
    decision.set_job_id(id);
    decision.mutable_wait()->set_resource("R");
    decision.mutable_wait()->set_reason("waits for 1 more processor on R");
    return decision;
  }
  static proto::TaskKey Key(const std::string& id, int task) {
    proto::TaskKey key;
    key.set_job_id(id);
    key.set_task(task);
    return key;
  }
  static proto::AgentMessage::Exited Exited(const std::string& id, int task, int code,
                                            uint64_t out = 0) {
    proto::AgentMessage::Exited exited;
    *exited.mutable_task() = Key(id, task);
    exited.mutable_exit()->set_code(code);
    exited.set_stdout_size(out);
    return exited;
  }
  static proto::AgentMessage::Hello Hello(const std::vector<proto::TaskKey>& held) {
    proto::AgentMessage::Hello hello;
    for (const proto::TaskKey& key : held) {
      *hello.add_held() = key;
    }
    return hello;
  }

  Effects Keep(Effects effects) {
    events_.insert(events_.end(), effects.events.begin(), effects.events.end());
    return effects;
  }
  Effects Start(const std::string& id, const std::string& rsl,
                const std::vector<std::pair<std::string, int>>& places) {
    const proto::Decision decision = On(id, places);
    return Keep(queue_->Accept(Ask(id, rsl), &decision, kNow));
  }
  // As after a kill -9: only the events are left.
  void Restart() {
    queue_ = MakeQueue();
    std::set<std::string> ended;
    for (const proto::JobEvent& event : events_) {
      if (event.has_ended()) {
        ended.insert(event.job_id());
      }
    }
    for (const proto::JobEvent& event : events_) {
      ASSERT_TRUE(queue_->Replay(event, ended.count(event.job_id()) > 0).ok());
    }
    queue_->FinishReplay([](const std::string&, int, int) { return 0; }, kNow);
    queue_->SetAttached("n1", true);
    queue_->SetAttached("n2", true);
  }
  const proto::JobStatus Status(const std::string& id) { return queue_->StatusOf(id); }

  std::unique_ptr<Queue> queue_;
  std::vector<proto::JobEvent> events_;
};

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

  EXPECT_THAT(Words(queue_->OnSpoolFull(Key("j", 0), kNow)), ElementsAre("kill@n1"));
  EXPECT_THAT(Words(queue_->OnSpoolFull(Key("j", 0), kNow)), IsEmpty());
  queue_->OnExited("n1", Exited("j", 0, 0, 1 << 30), kNow);

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

TEST_F(QueueTest, AJobEndsWithWhatItsNodeCanStillSend) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  queue_->OnExited("n1", Exited("j", 0, 0, 1000), kNow);
  queue_->OnSpooled(Key("j", 0), 0, 400, kNow);

  EXPECT_THAT(Words(queue_->OnExited("n1", Exited("j", 0, 0, 400), kNow)),
              ElementsAre("ended", "forget@n1"));
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

TEST_F(QueueTest, HoldsTasksBackThatShareAFileUntilTheFirstHasEmptiedIt) {
  EXPECT_THAT(
      Words(Start("j", "&(executable=/bin/true)(count=2)(stdout=out)", {{"n1", 1}, {"n2", 1}})),
      ElementsAre("submitted", "queued", "allocated", "start@n1"));

  EXPECT_THAT(Words(queue_->OnStarted("n1", Key("j", 0), kNow)),
              ElementsAre("task_started", "start@n2"));
}

// ---- Restart of the queue server

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

TEST_F(QueueTest, GoesOnCancellingAfterARestart) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  Keep(*queue_->Cancel("j", "by its user", kNow));
  Restart();

  EXPECT_THAT(Words(queue_->OnAttached("n1", Hello({Key("j", 0)}), kNow)), ElementsAre("kill@n1"));
}

TEST_F(QueueTest, ClearsANodeOfJobsThatItDoesNotKnow) {
  EXPECT_THAT(Words(queue_->OnAttached("n1", Hello({Key("zz", 0)}), kNow)),
              ElementsAre("kill@n1", "forget@n1"));
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

TEST_F(QueueTest, ForgetsEndedJobsAfterTheirTime) {
  Start("j", "&(executable=/bin/true)", {{"n1", 1}});
  queue_->OnExited("n1", Exited("j", 0, 0), kNow);

  EXPECT_THAT(queue_->EndedBefore(kNow), IsEmpty());
  EXPECT_THAT(queue_->EndedBefore(kNow + 1), ElementsAre("j"));
  queue_->Forget("j");
  EXPECT_EQ(Status("j").state(), proto::UNKNOWN);
}

// ---- Helpers

class HelperTest : public QueueTest {
 protected:
  HelperTest() {
    Start("j", "&(executable=/bin/true)(count=2)(job_type=mpi)", {{"n1", 1}, {"n2", 1}});
    queue_->OnStarted("n1", Key("j", 0), kNow);
  }
  Effects Launch(const std::string& from, const std::string& to) {
    proto::AgentMessage::Launch launch;
    launch.set_id(42);
    launch.set_job_id("j");
    launch.set_node(to);
    launch.add_argument("hydra_pmi_proxy");
    return queue_->OnLaunch(from, launch);
  }
};

TEST_F(HelperTest, StartsAHelperOnANodeOfTheJob) {
  const Effects effects = Launch("n1", "n2");

  ASSERT_THAT(Words(effects), ElementsAre("start@n2"));
  EXPECT_TRUE(effects.messages[0].message.start().is_helper());
  EXPECT_EQ(effects.messages[0].message.start().account(), "alice");
}

TEST_F(HelperTest, RefusesAHelperElsewhereOrFromElsewhere) {
  EXPECT_THAT(Words(Launch("n1", "n3")), ElementsAre("launch_ended@n1"));
  EXPECT_THAT(Words(Launch("n3", "n1")), ElementsAre("launch_ended@n3"));
}

TEST_F(HelperTest, EndsALaunchThatIsSaidAgainAfterARestart) {
  proto::AgentMessage::Launch launch;
  launch.set_id(7);
  launch.set_job_id("j");
  launch.set_node("n2");
  launch.add_argument("hydra_pmi_proxy");
  launch.set_again(true);

  const Effects effects = queue_->OnLaunch("n1", launch);

  ASSERT_THAT(Words(effects), ElementsAre("launch_ended@n1"));
  EXPECT_EQ(effects.messages[0].message.launch_ended().exit().code(), 255);
}

TEST_F(HelperTest, PassesOutputOnceAndTheEndAfterIt) {
  Launch("n1", "n2");
  proto::AgentMessage::Output output;
  *output.mutable_task() = Key("j", kFirstHelper);
  output.set_data("hello");

  EXPECT_THAT(Words(queue_->OnExited("n2", Exited("j", kFirstHelper, 3, 5), kNow)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelperOutput("n2", output)),
              ElementsAre("launch_output@n1", "launch_ended@n1"));
  const Effects again = queue_->OnHelperOutput("n2", output);
  ASSERT_THAT(Words(again), ElementsAre("output_taken@n2"));
  EXPECT_EQ(again.messages[0].message.output_taken().offset(), 0u);  // the launcher has taken nothing yet
}

TEST_F(HelperTest, AcknowledgesOutputOnlyWhenTheLauncherHasTakenIt) {
  Launch("n1", "n2");
  proto::AgentMessage::Output output;
  *output.mutable_task() = Key("j", kFirstHelper);
  output.set_data("hello");
  queue_->OnHelperOutput("n2", output);

  proto::AgentMessage::LaunchTaken taken;
  taken.set_id(42);
  taken.set_offset(1000);  // more than there was
  const Effects effects = queue_->OnLaunchTaken("n1", taken);

  ASSERT_THAT(Words(effects), ElementsAre("output_taken@n2"));
  EXPECT_EQ(effects.messages[0].message.output_taken().offset(), 5u);
}

TEST_F(HelperTest, TellsTheLauncherHowMuchInputWasTaken) {
  Launch("n1", "n2");
  proto::AgentMessage::LaunchInput input;
  input.set_id(42);
  input.set_data("abc");
  queue_->OnLaunchInput("n1", input);

  proto::AgentMessage::InputTaken taken;
  *taken.mutable_task() = Key("j", kFirstHelper);
  taken.set_offset(2);
  const Effects effects = queue_->OnHelperInputTaken("n2", taken);

  ASSERT_THAT(Words(effects), ElementsAre("launch_input_taken@n1"));
  EXPECT_EQ(effects.messages[0].message.launch_input_taken().id(), 42u);
  EXPECT_EQ(effects.messages[0].message.launch_input_taken().offset(), 2u);
}

TEST_F(HelperTest, EndsALaunchWhoseOutputWasLostWithTheConnection) {
  Launch("n1", "n2");
  proto::AgentMessage::Output output;
  *output.mutable_task() = Key("j", kFirstHelper);
  output.set_data("hello");
  queue_->OnHelperOutput("n2", output);

  EXPECT_THAT(Words(Launch("n1", "n2")), ElementsAre("launch_ended@n1"));
}

TEST_F(HelperTest, ForgetsAHelperThatHasEndedAndNobodyWaitsFor) {
  proto::AgentMessage::LaunchInput left;
  left.set_id(42);
  left.set_cancel(true);

  const int first = Launch("n1", "n2").messages[0].message.start().task().task();
  queue_->OnExited("n2", Exited("j", first, 0), kNow);
  const Effects after = queue_->OnLaunchInput("n1", left);
  ASSERT_THAT(Words(after), ElementsAre("forget@n2"));
  EXPECT_EQ(after.messages[0].message.forget().task(), first);
  EXPECT_TRUE(queue_->Find("j")->helpers.empty());

  const int second = Launch("n1", "n2").messages[0].message.start().task().task();
  EXPECT_THAT(Words(queue_->OnLaunchInput("n1", left)), ElementsAre("input@n2"));  // it still runs
  EXPECT_THAT(Words(queue_->OnExited("n2", Exited("j", second, 0), kNow)), ElementsAre("forget@n2"));
  EXPECT_TRUE(queue_->Find("j")->helpers.empty());
}

TEST_F(HelperTest, SaysTheEndOfAHelperAgainIfItIsAskedAgain) {
  Launch("n1", "n2");
  queue_->OnExited("n2", Exited("j", kFirstHelper, 3), kNow);

  const Effects effects = Launch("n1", "n2");

  ASSERT_THAT(Words(effects), ElementsAre("launch_ended@n1"));
  EXPECT_EQ(effects.messages[0].message.launch_ended().exit().code(), 3);
}

TEST_F(HelperTest, EndsHelpersThatItDoesNotKnowAfterARestart) {
  events_.clear();
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  const Effects effects = queue_->OnAttached("n2", Hello({Key("j", kFirstHelper + 7)}), kNow);

  ASSERT_FALSE(effects.messages.empty());
  EXPECT_EQ(effects.messages[0].message.forget().task(), kFirstHelper + 7);
}

TEST_F(HelperTest, EndsHelpersWithTheirJob) {
  Launch("n1", "n2");

  EXPECT_THAT(Words(queue_->OnExited("n1", Exited("j", 0, 0), kNow)),
              ElementsAre("task_exited", "ended", "kill@n1", "kill@n2", "forget@n1", "forget@n2"));
}

TEST_F(QueueTest, HelpersHaveNewNumbersAfterARestart) {
  Start("j", "&(executable=/bin/x)(count=2)(job_type=mpi)", {{"n1", 1}, {"n2", 1}});
  Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
  proto::AgentMessage::Launch launch;
  launch.set_id(1);
  launch.set_job_id("j");
  launch.set_node("n2");
  const int first = queue_->OnLaunch("n1", launch).messages[0].message.start().task().task();

  Restart();
  queue_->OnAttached("n1", Hello({Key("j", 0)}), kNow);
  queue_->OnAttached("n2", Hello({Key("j", first)}), kNow);
  launch.set_id(2);
  const int second = queue_->OnLaunch("n1", launch).messages[0].message.start().task().task();

  EXPECT_GE(first, kFirstHelper);
  EXPECT_GT(second, first);
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
