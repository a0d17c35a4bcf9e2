// SPDX-License-Identifier: Apache-2.0
// Helpers of an mpirun, on other nodes of its job.
#include <limits>

#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

class HelperTest : public QueueTest {
 protected:
  HelperTest() {
    Attach("n1", {});
    Attach("n2", {});
    Start("j", "&(executable=/bin/true)(count=2)(job_type=mpi)", {{"n1", 1}, {"n2", 1}});
    queue_->OnStarted("n1", Key("j", 0), kNow);
  }
  // As agents of now do.
  Effects Attach(const std::string& node, const std::vector<proto::TaskKey>& held) {
    proto::AgentMessage::Hello hello = Hello(held);
    hello.set_relaunches(true);
    return queue_->OnAttached(node, hello, kNow);
  }
  static proto::AgentMessage::LaunchInput Left() {
    proto::AgentMessage::LaunchInput left;
    left.set_id(42);
    left.set_job_id("j");
    left.set_cancel(true);
    return left;
  }
  static proto::AgentMessage::Launch Request(const std::string& to) {
    proto::AgentMessage::Launch launch;
    launch.set_id(42);
    launch.set_job_id("j");
    launch.set_node(to);
    launch.add_argument("hydra_pmi_proxy");
    return launch;
  }
  Effects Launch(const std::string& from, const std::string& to) { return queue_->OnLaunch(from, Request(to)); }
  // By a launcher that has heard of its helper, and has so much of its standard output.
  Effects LaunchAgain(uint64_t taken) {
    proto::AgentMessage::Launch launch = Request("n2");
    launch.set_again(true);
    launch.mutable_taken()->set_stdout_offset(taken);
    return queue_->OnLaunch("n1", launch);
  }
  static proto::AgentMessage::Output Output(uint64_t offset, const std::string& data) {
    proto::AgentMessage::Output output;
    *output.mutable_task() = Key("j", kFirstHelper);
    output.set_offset(offset);
    output.set_data(data);
    return output;
  }
  // n2 as it attaches, with a helper that runs for `launch`.
  Effects AttachHelper(const std::string& launch) {
    proto::AgentMessage::Hello hello = Hello({Key("j", kFirstHelper)});
    *hello.add_helper()->mutable_task() = Key("j", kFirstHelper);
    hello.mutable_helper(0)->set_launch(launch);
    hello.set_relaunches(true);
    return queue_->OnAttached("n2", hello, kNow);
  }
  void RestartUnderTheJob() {
    events_.clear();
    queue_ = MakeQueue();
    queue_->SetAttached("n1", true);
    queue_->SetAttached("n2", true);
    Start("j", "&(executable=/bin/true)(count=2)(job_type=mpi)", {{"n1", 1}, {"n2", 1}});
    Keep(queue_->OnStarted("n1", Key("j", 0), kNow));
    Restart();
    Attach("n1", {Key("j", 0)});
  }
};

TEST_F(HelperTest, ANumberThatIsNoneOfOursGivesNoOtherItsPlace) {
  for (const int held : {std::numeric_limits<int>::max() - 1, std::numeric_limits<int>::max()}) {
    Attach("n2", {Key("j", held)});
  }

  const Effects effects = Launch("n1", "n2");
  ASSERT_FALSE(effects.messages.empty());
  EXPECT_EQ(effects.messages[0].message.start().task().task(), kFirstHelper);
}

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

TEST_F(HelperTest, KnowsANodeByItsHost) {
  Start("j2", "&(executable=/bin/true)(count=3)(job_type=mpi)", {{"b1.j2", 1}, {"b2.x.org", 1}, {"b2.y.org", 1}});
  const auto launch = [this](const std::string& to) {
    proto::AgentMessage::Launch launch = Request(to);
    launch.set_job_id("j2");
    return Words(queue_->OnLaunch("b2.x.org", launch));
  };
  for (const char* node : {"b1.j2", "b2.x.org", "b2.y.org"}) {
    queue_->SetAttached(node, true);
  }

  EXPECT_THAT(launch("b"), ElementsAre("launch_ended@b2.x.org"));
  EXPECT_THAT(launch("b2"), ElementsAre("launch_ended@b2.x.org"));  // which of them?
  EXPECT_THAT(launch("b2.y"), ElementsAre("start@b2.y.org"));
}

TEST_F(HelperTest, KnowsAPilotByItsHost) {
  Start("j2", "&(executable=/bin/true)(count=2)(job_type=mpi)", {{"b1.j2", 1}, {"b2.j2", 1}});
  queue_->SetAttached("b1.j2", true);
  queue_->SetAttached("b2.j2", true);
  proto::AgentMessage::Launch launch = Request("b2");
  launch.set_job_id("j2");

  EXPECT_THAT(Words(queue_->OnLaunch("b1.j2", launch)), ElementsAre("start@b2.j2"));
}

TEST_F(HelperTest, RefusesALaunchOfAnotherJob) {
  Launch("n1", "n2");
  Start("other", "&(executable=/bin/true)(count=2)(job_type=mpi)", {{"n1", 1}, {"n2", 1}});
  proto::AgentMessage::Launch launch = Request("n2");
  launch.set_job_id("other");

  EXPECT_THAT(Words(queue_->OnLaunch("n1", launch)), ElementsAre("launch_ended@n1"));
}

TEST_F(HelperTest, AfterARestartTheHelperThatItsNodeHoldsIsTakenUp) {
  RestartUnderTheJob();
  EXPECT_THAT(Words(AttachHelper("n1:42")), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelperOutput("n2", Output(0, "hello"))), IsEmpty());  // who waits for it is not known

  const Effects effects = LaunchAgain(3);

  ASSERT_THAT(Words(effects), ElementsAre("resume@n2"));
  EXPECT_EQ(effects.messages[0].message.resume().task().task(), kFirstHelper);
  EXPECT_EQ(effects.messages[0].message.resume().stdout_offset(), 3u);
  const Effects output = queue_->OnHelperOutput("n2", Output(0, "hello"));
  ASSERT_THAT(Words(output), ElementsAre("launch_output@n1"));
  EXPECT_EQ(output.messages[0].message.launch_output().offset(), 3u);
  EXPECT_EQ(output.messages[0].message.launch_output().data(), "lo");
}

TEST_F(HelperTest, AfterARestartALaunchWaitsForItsHelpersNode) {
  RestartUnderTheJob();
  queue_->SetAttached("n2", false);
  EXPECT_THAT(Words(LaunchAgain(3)), IsEmpty());
  queue_->SetAttached("n2", true);

  const Effects effects = AttachHelper("n1:42");

  ASSERT_THAT(Words(effects), ElementsAre("launch_again@n1"));
  EXPECT_EQ(effects.messages[0].message.launch_again().id(), 42u);
  EXPECT_THAT(Words(LaunchAgain(3)), ElementsAre("resume@n2"));
}

TEST_F(HelperTest, EndsALaunchWhoseHelperItsNodeHasLost) {
  RestartUnderTheJob();
  Attach("n2", {});

  const Effects effects = LaunchAgain(0);

  ASSERT_THAT(Words(effects), ElementsAre("launch_ended@n1"));
  EXPECT_EQ(effects.messages[0].message.launch_ended().exit().code(), 255);
  EXPECT_EQ(effects.messages[0].message.launch_ended().reason(), "node n2 has lost it");
}

TEST_F(HelperTest, StartsAHelperWhoseNodeWasAway) {
  queue_->SetAttached("n2", false);
  EXPECT_THAT(Words(Launch("n1", "n2")), IsEmpty());
  queue_->SetAttached("n2", true);

  EXPECT_THAT(Words(Attach("n2", {})), ElementsAre("launch_again@n1"));
  EXPECT_THAT(Words(Launch("n1", "n2")), ElementsAre("start@n2"));
}

TEST_F(HelperTest, StartsAHelperAnewWhoseStartDidNotArrive) {
  const int first = Launch("n1", "n2").messages[0].message.start().task().task();

  EXPECT_THAT(Words(Attach("n2", {})), ElementsAre("launch_again@n1"));
  const Effects effects = Launch("n1", "n2");

  ASSERT_THAT(Words(effects), ElementsAre("start@n2"));
  EXPECT_NE(effects.messages[0].message.start().task().task(), first);
}

TEST_F(HelperTest, EndsALaunchOfAnAgentThatDoesNotSayHowFarItIs) {
  Launch("n1", "n2");
  proto::AgentMessage::Launch launch = Request("n2");
  launch.set_again(true);

  EXPECT_THAT(Words(queue_->OnLaunch("n1", launch)), ElementsAre("launch_ended@n1"));
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

TEST_F(HelperTest, HasOutputThatWasLostWithTheConnectionSentAgain) {
  Launch("n1", "n2");
  queue_->OnHelperOutput("n2", Output(0, "hello"));

  const Effects effects = LaunchAgain(2);

  ASSERT_THAT(Words(effects), ElementsAre("resume@n2"));
  EXPECT_EQ(effects.messages[0].message.resume().stdout_offset(), 2u);
  const Effects again = queue_->OnHelperOutput("n2", Output(2, "llo"));
  ASSERT_THAT(Words(again), ElementsAre("launch_output@n1"));
  EXPECT_EQ(again.messages[0].message.launch_output().offset(), 2u);
}

TEST_F(HelperTest, AfterItsNodeWasAwayNothingIsPassedOnBeforeTheLauncherSaysHowFarItIs) {
  Launch("n1", "n2");
  queue_->OnHelperOutput("n2", Output(0, "hello"));

  EXPECT_THAT(Words(Attach("n2", {Key("j", kFirstHelper)})), ElementsAre("launch_again@n1"));
  EXPECT_THAT(Words(queue_->OnHelperOutput("n2", Output(0, "hello world"))), IsEmpty());
  EXPECT_THAT(Words(queue_->OnExited("n2", Exited("j", kFirstHelper, 3, 11), kNow)), IsEmpty());

  EXPECT_THAT(Words(LaunchAgain(5)), ElementsAre("resume@n2"));
  const Effects rest = queue_->OnHelperOutput("n2", Output(5, " world"));
  ASSERT_THAT(Words(rest), ElementsAre("launch_output@n1", "launch_ended@n1"));
  EXPECT_EQ(rest.messages[0].message.launch_output().data(), " world");
  EXPECT_EQ(rest.messages[1].message.launch_ended().stdout_size(), 11u);
}

TEST_F(HelperTest, AfterTheLaunchersNodeWasAwayNothingIsPassedOnBeforeItSaysHowFarItIs) {
  Launch("n1", "n2");

  EXPECT_THAT(Words(Attach("n1", {Key("j", 0)})), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelperOutput("n2", Output(0, "hello"))), IsEmpty());
  EXPECT_THAT(Words(queue_->OnExited("n2", Exited("j", kFirstHelper, 3, 5), kNow)), IsEmpty());

  EXPECT_THAT(Words(LaunchAgain(0)), ElementsAre("resume@n2"));
  EXPECT_THAT(Words(queue_->OnHelperOutput("n2", Output(0, "hello"))), ElementsAre("launch_output@n1", "launch_ended@n1"));
}

TEST_F(HelperTest, EndsTheInputOfAHelperWhoseLauncherLeftWhileItsNodeWasAway) {
  Launch("n1", "n2");
  queue_->OnLaunchInput("n1", Left());

  const Effects effects = Attach("n2", {Key("j", kFirstHelper)});

  ASSERT_THAT(Words(effects), ElementsAre("input@n2"));
  EXPECT_TRUE(effects.messages[0].message.input().end());
  EXPECT_EQ(effects.messages[0].message.input().offset(), 0u);  // whatever has come: no gap is waited for
}

TEST_F(HelperTest, ALauncherThatIsBackHasNotLeft) {
  Launch("n1", "n2");
  queue_->OnLaunchInput("n1", Left());
  LaunchAgain(0);

  EXPECT_THAT(Words(queue_->OnExited("n2", Exited("j", kFirstHelper, 3), kNow)), ElementsAre("launch_ended@n1"));
}

TEST_F(HelperTest, ForgetsALaunchWhoseLauncherLeavesWhileItWaits) {
  queue_->SetAttached("n2", false);
  Launch("n1", "n2");
  queue_->OnLaunchInput("n1", Left());

  EXPECT_TRUE(queue_->Find("j")->waiting_launches.empty());
}

TEST_F(HelperTest, HearsNothingOfALaunchFromAnotherJob) {
  Launch("n1", "n2");
  queue_->OnHelperOutput("n2", Output(0, "hello"));
  proto::AgentMessage::LaunchInput input = Left();
  input.set_job_id("other");
  proto::AgentMessage::LaunchTaken taken;
  taken.set_id(42);
  taken.set_job_id("other");
  taken.set_offset(5);

  EXPECT_THAT(Words(queue_->OnLaunchInput("n1", input)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnLaunchTaken("n1", taken)), IsEmpty());
  EXPECT_FALSE(queue_->Find("j")->helpers.at({"n2", kFirstHelper}).is_left);
}

// ---- Agents of before.
TEST_F(HelperTest, ALauncherThatCannotSayItAgainDoesNotWait) {
  queue_->OnAttached("n1", Hello({Key("j", 0)}), kNow);
  queue_->SetAttached("n2", false);

  EXPECT_THAT(Words(Launch("n1", "n2")), ElementsAre("launch_ended@n1"));
}

TEST_F(HelperTest, ALauncherThatCannotSayItAgainKeepsItsHelperOrHearsThatItIsLost) {
  queue_->OnAttached("n1", Hello({Key("j", 0)}), kNow);
  Launch("n1", "n2");

  EXPECT_THAT(Words(Attach("n2", {Key("j", kFirstHelper)})), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelperOutput("n2", Output(0, "hello"))), ElementsAre("launch_output@n1"));
  EXPECT_THAT(Words(Attach("n2", {})), ElementsAre("launch_ended@n1"));
}

TEST_F(HelperTest, AHelperWhoseNodeCannotSayOutputAgainIsTakenUpOnlyIfNoneIsLost) {
  queue_->OnAttached("n2", Hello({}), kNow);
  Launch("n1", "n2");
  queue_->OnHelperOutput("n2", Output(0, "hello"));

  EXPECT_THAT(Words(queue_->OnAttached("n2", Hello({Key("j", kFirstHelper)}), kNow)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelperOutput("n2", Output(0, "hello"))), ElementsAre("output_taken@n2"));
  EXPECT_THAT(Words(LaunchAgain(5)), IsEmpty());
  EXPECT_THAT(Words(queue_->OnHelperOutput("n2", Output(5, " world"))), ElementsAre("launch_output@n1"));

  const Effects refused = LaunchAgain(5);
  ASSERT_THAT(Words(refused), ElementsAre("launch_ended@n1"));
  EXPECT_EQ(refused.messages[0].message.launch_ended().exit().code(), 255);
}

TEST_F(HelperTest, TellsTheLauncherThatItsHelperHasBegun) {
  Launch("n1", "n2");

  EXPECT_THAT(Words(queue_->OnStarted("n2", Key("j", kFirstHelper), kNow)), ElementsAre("launch_input_taken@n1"));
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

  const Effects effects = LaunchAgain(0);

  ASSERT_THAT(Words(effects), ElementsAre("resume@n2", "launch_ended@n1"));
  EXPECT_EQ(effects.messages[1].message.launch_ended().exit().code(), 3);
}

TEST_F(HelperTest, EndsHelpersAfterARestartOfWhichNobodyCanSayForWhomTheyAre) {
  RestartUnderTheJob();

  const Effects effects = AttachHelper("");

  ASSERT_THAT(Words(effects), ElementsAre("forget@n2"));
  EXPECT_EQ(effects.messages[0].message.forget().task(), kFirstHelper);
}

TEST_F(HelperTest, EndsAHelperThatWasForgottenWhileItsNodeSaidThatItHoldsIt) {
  Launch("n1", "n2");
  proto::AgentMessage::LaunchInput left;
  left.set_id(42);
  left.set_cancel(true);
  queue_->OnExited("n2", Exited("j", kFirstHelper, 0), kNow);
  queue_->OnLaunchInput("n1", left);

  EXPECT_THAT(Words(queue_->OnHelloAgain("n2", Hello({Key("j", kFirstHelper)}), kNow)), ElementsAre("forget@n2"));
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

}  // namespace
}  // namespace sekisho::qserver
