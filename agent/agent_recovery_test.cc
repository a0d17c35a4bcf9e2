// SPDX-License-Identifier: Apache-2.0
// What connections, agents, supervisors and machines that fail do to tasks: nothing.
#include <sys/mount.h>
#include <sys/prctl.h>

#include "agent/agent_fixture.h"
#include "agent/task/group.h"
#include "agent/task/record.h"
#include "tests/support/full_disk.h"

namespace sekisho::agent {
namespace {

TEST_F(AgentTest, MuchOutputComesWholeThroughASmallWindow) {
  Start("head -c 20000000 /dev/zero | tr '\\0' x");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], std::string(20000000, 'x'));
}

TEST_F(AgentTest, WithoutAcknowledgementNoMoreThanTheWindowIsSent) {
  server_.is_acknowledging = false;
  Start("head -c 5000000 /dev/zero");
  ASSERT_TRUE(Await([&] { return Task().exited.has_value(); }));

  ASSERT_TRUE(Await([&] { return Task().output[0].size() > kUnacknowledgedMost - kChunkLeast; }));
  EXPECT_LE(Task().output[0].size(), kUnacknowledgedMost);
  EXPECT_EQ(Task().exited->stdout_size(), 5000000U);
}

TEST_F(AgentTest, OutputResumesAtTheRightByteAfterALostConnection) {
  server_.drop_after = 3000000;
  Start("head -c 9000000 /dev/urandom > random; cat random");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], TextOf("random"));
  EXPECT_EQ(server_.hello->held_size(), 1);
}

TEST_F(AgentTest, TaskOutlivesTheAgentAndItsEndIsNotLost) {
  Start(std::string(kUntilGo) + "echo after; exit 9");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));

  StopAgent();
  Touch("go");
  for (int i = 0; i < 1000 && !fs::exists(State() + "/job/0/exit"); ++i) {
    usleep(10000);
  }
  StartAgent();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 9);
  EXPECT_EQ(Task().output[0], "ready\nafter\n");
}

// As a machine leaves it that lost its power: what was synced is there, what was only written is not.
TEST_F(AgentTest, AnEndOutlivesItsRecordThatTheMachineLost) {
  Start("echo out; exit 9");
  ASSERT_TRUE(AwaitEnd());
  StopAgent();
  fs::resize_file(State() + "/job/0/spec", 0);

  server_.seen.clear();
  boot_id_ = "boot-2";
  StartAgent();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 9);
  EXPECT_EQ(Task().output[0], "out\n");
}

TEST_F(AgentTest, ATaskWhoseRecordTheMachineLostHasEndedWithTheMachine) {
  fs::create_directories(State() + "/job/0");
  std::ofstream(State() + "/job/0/pid") << "";
  StopAgent();
  StartAgent();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->gram_code(), 17);
  EXPECT_EQ(Task().exited->reason(), "the node was restarted while the task ran");
}

TEST_F(AgentTest, ADirectoryOfAJobThatHasNoTaskIsRemoved) {
  StopAgent();
  fs::create_directories(State() + "/job");
  fs::create_directories(State() + "/element[7]");
  StartAgent();

  EXPECT_FALSE(fs::exists(State() + "/job"));
  EXPECT_FALSE(fs::exists(State() + "/element[7]"));
}

TEST_F(AgentTest, AnEndedTaskHoldsNoDescriptorUntilItIsForgotten) {
  Start("echo out");
  ASSERT_TRUE(AwaitEnd());

  EXPECT_TRUE(Await([&] {
    const fs::directory_iterator descriptors("/proc/self/fd");
    return std::none_of(begin(descriptors), end(descriptors), [&](const fs::directory_entry& one) {
      std::error_code gone;
      return fs::read_symlink(one.path(), gone).string().starts_with(State() + "/job");
    });
  }));
  EXPECT_TRUE(fs::exists(State() + "/job/0"));
}

TEST_F(AgentTest, RunningTaskIsAdoptedAndStillObeys) {
  Start(std::string("trap 'echo bye; exit 3' TERM; ") + kUntilGo);
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));

  StopAgent();
  StartAgent();
  EXPECT_EQ(agent_->tasks->running(), 1U);
  Kill("job", SIGTERM, 10000);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 3);
  EXPECT_EQ(Task().output[0], "ready\nbye\n");
}

TEST_F(AgentTest, InputComesOnceWhateverIsRepeated) {
  auto start = StartMessage("cat; echo end");
  start.mutable_start()->set_has_input(true);
  server_.Send(start);
  const auto input = [&](uint64_t offset, const std::string& data, bool end) {
    proto::ServerMessage message;
    *message.mutable_input()->mutable_task() = start.start().task();
    message.mutable_input()->set_offset(offset);
    message.mutable_input()->set_data(data);
    message.mutable_input()->set_end(end);
    server_.Send(message);
  };

  input(0, "hello ", false);
  input(3, "lo wo", false);
  input(100, "from the future", false);
  ASSERT_TRUE(Await([&] { return Task().output[0] == "hello wo"; }));
  StopAgent();
  StartAgent();
  ASSERT_TRUE(Await([&] { return Task().input_taken == 8; }));
  input(6, "world\n", true);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "hello world\nend\n");
}

TEST_F(AgentTest, InputThatFindsNoRoomOnTheDiskComesOnceThereIsSome) {
  auto start = StartMessage("echo ready; cat; echo end");
  start.mutable_start()->set_has_input(true);
  server_.Send(start);
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));
  const auto take = [&](uint64_t offset, const std::string& data, bool end) {
    proto::ServerMessage message;
    *message.mutable_input()->mutable_task() = start.start().task();
    message.mutable_input()->set_offset(offset);
    message.mutable_input()->set_data(data);
    message.mutable_input()->set_end(end);
    agent_->tasks->Handle(message);
  };

  take(0, "hello ", false);
  {
    const test::FullDisk disk;
    take(6, "wor", false);
    take(9, "ld\n", true);
    agent_->tasks->Check();
  }
  agent_->tasks->Check();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "ready\nhello world\nend\n");
}

TEST_F(AgentTest, TasksOfAnEarlierBootHaveEnded) {
  Start("echo ready; exec sleep 1000");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));
  StopAgent();
  const auto running = TaskDirectory(State() + "/job/0").ReadRunning();
  kill(running->supervisor, SIGKILL);  // as a reboot would
  while (kill(running->supervisor, 0) == 0) {
    usleep(1000);
  }
  if (!place_.parent.empty()) {
    task::Group group(place_.grouping, place_.parent + "/job.0", 0);
    while (!group.Remove()) {
      group.KillOnce(false);
      usleep(1000);
    }
  }

  boot_id_ = "boot-2";
  StartAgent();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->gram_code(), 17);
  EXPECT_EQ(Task().exited->reason(), "the node was restarted while the task ran");
  EXPECT_EQ(Task().output[0], "ready\n");
}

TEST_F(AgentTest, KilledSupervisorIsNoticedAndTheTaskEnded) {
  Start(
      "(setsid sh -c 'echo $$ > pid; exec sleep 1000' &); while [ ! -s pid ]; do sleep 0.01; done; "
      "echo ready; exec sleep 1000");
  ASSERT_TRUE(Await([&] { return Task().output[0] == "ready\n"; }));

  kill(TaskDirectory(State() + "/job/0").Supervisor().value(), SIGKILL);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->reason(), "the task's supervisor was killed");
  if (place_.grouping != task::Grouping::kNone) {
    EXPECT_NE(kill(std::atoi(TextOf("pid").c_str()), 0), 0);
  }
}

// As it finds a task whose session's number is somebody else's by now.
TEST_F(AgentTest, WhoHasTheNumberOfALostTasksSessionLives) {
  const pid_t stranger = fork();
  if (stranger == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setsid();
    pause();
    _exit(0);
  }
  StopAgent();
  fs::create_directories(State() + "/job/0");
  const TaskDirectory lost(State() + "/job/0");
  task::Spec spec;
  spec.job_id = "job";
  spec.boot_id = boot_id_;
  spec.uid = getuid();
  spec.launch_token = "t";
  ASSERT_TRUE(lost.WriteSpec(spec).ok());
  ASSERT_TRUE(task::WriteFile(lost.fd(), task::kPidFile, task::EncodeRunning({1, stranger, 1}),
                              task::Durability::kProcess));
  while (task::SessionMembers(stranger).empty()) {
    usleep(1000);
  }

  StartAgent();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->reason(), "the task's supervisor was killed");
  EXPECT_FALSE(task::SessionMembers(stranger).empty());
  kill(stranger, SIGKILL);
}

TEST_F(AgentTest, ATaskThatCannotBeginForWantOfRoomSaysSoAndBeginsNoMore) {
  StopAgent();
  const std::string path = State() + "/job/0";
  fs::create_directories(path);
  if (mount("tmpfs", path.c_str(), "tmpfs", 0, "size=64k,mode=0711") != 0) {
    fs::remove_all(State() + "/job");
    GTEST_SKIP() << "cannot mount a small disk";
  }
  {
    task::Spec spec;
    spec.job_id = "job";
    spec.boot_id = boot_id_;
    spec.argument = {"/bin/true"};
    ASSERT_TRUE(TaskDirectory(path).WriteSpec(spec).ok());
    std::ofstream filler(path + "/filler");
    while (filler << std::string(4096, 'x') << std::flush) {
    }
  }

  StartAgent();
  EXPECT_TRUE(Await([&] {
    agent_->tasks->Check();
    return server_.IsComplete({"job", 0});
  }));

  EXPECT_EQ(Task().exited->gram_code(), task::kNoResources);
  EXPECT_EQ(Task().exited->reason(), "cannot use directory " + path + ": No space left on device");
  EXPECT_FALSE(fs::exists(path + "/pid") || fs::exists(path + "/spec"));
  EXPECT_EQ(umount2(path.c_str(), MNT_DETACH), 0);
}

TEST_F(AgentTest, ForgetLeavesNothing) {
  Start("true");
  ASSERT_TRUE(AwaitEnd());
  proto::ServerMessage forget;
  forget.mutable_forget()->set_job_id("job");
  server_.Send(forget);

  EXPECT_TRUE(Await([&] { return !fs::exists(State() + "/job"); }));
}

TEST_F(AgentTest, AnEndThatWasNotHeardIsSaidAgainOnTheStreamThatStands) {
  StopAgent();
  hello_every_ = 50ms;
  StartAgent();
  server_.unheard_exits = 1;
  Start("exit 7");

  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(server_.unheard_exits, 0);
  EXPECT_EQ(Task().exited->exit().code(), 7);
  ASSERT_EQ(server_.hello->held_size(), 1);
  EXPECT_EQ(server_.hello->held(0).job_id(), "job");
  EXPECT_GE(server_.hellos, 1);
}

}  // namespace
}  // namespace sekisho::agent
