// SPDX-License-Identifier: Apache-2.0
// Ranks of an MPI program at their agent: they stand before their exec until they are released, and
// find each other by PMI-1.
#include "agent/agent_fixture.h"

namespace sekisho::agent {
namespace {

// Puts, meets all others, gets what the other of two has put.
constexpr char kRank[] = R"(/usr/bin/python3 -c '
import os
fd = int(os.environ["PMI_FD"])
def ask(words):
    os.write(fd, (words + "\n").encode())
    line = b""
    while not line.endswith(b"\n"):
        line += os.read(fd, 1)
    return line.decode().strip()
rank = int(os.environ["PMI_RANK"])
ask("cmd=init pmi_version=1 pmi_subversion=1")
ask(f"cmd=put kvsname=world-1 key=P{rank} value=card of {rank}")
print(ask("cmd=barrier_in"), flush=True)
print(ask(f"cmd=get kvsname=world-1 key=P{1 - rank}"))
print(ask("cmd=get kvsname=world-1 key=PMI_process_mapping"))
ask("cmd=finalize")
')";

class PmiTest : public AgentTest {
 protected:
  void StartWaiting(const std::string& script, int task = 0) {
    proto::ServerMessage message = StartMessage(script, "job", task);
    proto::ServerMessage::Start& start = *message.mutable_start();
    start.set_launch_token("secret" + std::to_string(task));
    start.set_await_release(true);
    start.mutable_rank()->set_rank(task);
    start.mutable_rank()->set_ranks(2);
    start.mutable_rank()->set_local_ranks(2);
    start.mutable_rank()->set_world("world-1");
    server_.Send(message);
  }
  void Release() {
    proto::ServerMessage message;
    message.mutable_release()->set_job_id("job");
    message.mutable_release()->set_process_mapping("(vector,(0,1,2))");
    server_.Send(message);
  }
  void EndFence(const proto::RankFence& given) {
    proto::ServerMessage message;
    *message.mutable_fence() = given;
    server_.Send(message);
  }
};

TEST_F(PmiTest, AWaitingTaskRunsItsProgramOnlyOnceItIsReleased) {
  StartWaiting("echo ran >ran");
  ASSERT_TRUE(Await([&] { return Task().ready == 1; }));
  EXPECT_EQ(Task().started, 0);
  EXPECT_FALSE(Exists("ran"));

  Release();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_TRUE(Exists("ran"));
  EXPECT_EQ(Task().exited->exit().code(), 0);
}

TEST_F(PmiTest, AWaitingTaskThatIsKilledNeverRunsItsProgram) {
  StartWaiting("echo ran >ran");
  ASSERT_TRUE(Await([&] { return Task().ready == 1; }));

  Kill("job", SIGTERM, 5000);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_FALSE(Exists("ran"));
  EXPECT_EQ(Task().started, 0);
}

TEST_F(PmiTest, WhatCannotStartSaysSoInPlaceOfReady) {
  proto::ServerMessage absent = StartMessage("true");
  absent.mutable_start()->set_argument(0, "/no/such/program");
  absent.mutable_start()->set_await_release(true);
  server_.Send(absent);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->gram_code(), 5);
  EXPECT_EQ(Task().ready, 0);
}

TEST_F(PmiTest, AWaitingTaskOutlivesItsAgentAndIsSaidAgain) {
  StartWaiting("echo ran >ran");
  ASSERT_TRUE(Await([&] { return Task().ready == 1; }));

  StopAgent();
  StartAgent();
  ASSERT_TRUE(Await([&] { return Task().ready == 2; }));
  Release();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_TRUE(Exists("ran"));
}

TEST_F(PmiTest, RanksFindEachOtherByWhatTheyPutBeforeABarrier) {
  StartWaiting(kRank, 0);
  StartWaiting(kRank, 1);
  ASSERT_TRUE(Await([&] { return Task(0).ready == 1 && Task(1).ready == 1; }));
  Release();
  ASSERT_TRUE(Await([&] { return server_.fences.size() == 1; }));
  EXPECT_EQ(server_.fences[0].fence().data(), "P0=card of 0\nP1=card of 1\n");

  EndFence(server_.fences[0]);
  ASSERT_TRUE(AwaitEnd(0) && AwaitEnd(1));

  EXPECT_EQ(Task(0).output[0],
            "cmd=barrier_out rc=0\ncmd=get_result rc=0 value=card of 1\n"
            "cmd=get_result rc=0 value=(vector,(0,1,2))\n");
  EXPECT_EQ(Task(1).exited->exit().code(), 0);
}

TEST_F(PmiTest, AFenceThatGotNoAnswerIsSaidAgainAfterTheConnectionWasLost) {
  StartWaiting(kRank, 0);
  StartWaiting(kRank, 1);
  ASSERT_TRUE(Await([&] { return Task(0).ready == 1 && Task(1).ready == 1; }));
  Release();
  ASSERT_TRUE(Await([&] { return server_.fences.size() == 1; }));

  server_.DropConnection();
  ASSERT_TRUE(Await([&] { return server_.fences.size() == 2; }));
  EndFence(server_.fences[1]);

  ASSERT_TRUE(AwaitEnd(0) && AwaitEnd(1));
  EXPECT_EQ(Task(1).exited->exit().code(), 0);
}

TEST_F(PmiTest, ARankThatEndsInsideMpiHasFailedWhateverItsCode) {
  StartWaiting(R"(/usr/bin/python3 -c '
import os
fd = int(os.environ["PMI_FD"])
os.write(fd, b"cmd=init pmi_version=1 pmi_subversion=1\n")
os.read(fd, 100)
')");
  Release();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 0);
  EXPECT_EQ(Task().exited->gram_code(), 17);
  EXPECT_EQ(Task().exited->reason(), "it ended inside MPI, without MPI_Finalize");
}

// Rank 0 is the PMIx server of rank 1, and says `word` of it once that has ended, code 0, and the agent knows.
class PmiServedTest : public PmiTest {
 protected:
  const proto::AgentMessage::Exited& EndAfter(const std::string& word) {
    StartWaiting(R"(/usr/bin/python3 -c '
import os, time
fd = int(os.environ["PMI_FD"])
def say(words, answers=1):
    os.write(fd, (words + "\n").encode())
    return answers and os.read(fd, 100)
say("cmd=represent")
say("cmd=inside rank=1\ncmd=get_appnum")
open("inside", "w")
while not os.path.exists("go"):
    time.sleep(0.01)
if ")" + word + R"(":
    say(")" + word + R"(", 0)
    while not os.path.exists("end"):
        time.sleep(0.01)
')",
                 0);
    StartWaiting("while [ ! -e inside ]; do sleep 0.01; done", 1);
    Release();
    const TaskDirectory one(*TaskPath(State(), "job", 1));
    EXPECT_TRUE(Await([&] { return one.Has(task::kExitFile) && one.Supervisor() == 0; }));
    loop_.poll();
    Touch("go");
    EXPECT_TRUE(AwaitEnd(1));
    Touch("end");
    EXPECT_TRUE(AwaitEnd(0));
    return *Task(1).exited;
  }
};

TEST_F(PmiServedTest, ARankMayEndBeforeItsServerSaysThatItHasLeftMpi) {
  EXPECT_EQ(EndAfter("cmd=outside rank=1").gram_code(), 0);
}

TEST_F(PmiServedTest, ARankThatItsServerHasLostEndedInsideMpi) {
  EXPECT_EQ(EndAfter("cmd=lost rank=1").reason(), "it ended inside MPI, without MPI_Finalize");
}

TEST_F(PmiServedTest, ARankWhoseServerEndsWithoutAWordEndedInsideMpi) {
  EXPECT_EQ(EndAfter("").reason(), "it ended inside MPI, without MPI_Finalize");
}

TEST_F(PmiTest, ARankThatAbortsIsKilledAndEndsWithItsCode) {
  StartWaiting(R"(/usr/bin/python3 -c '
import os, time
fd = int(os.environ["PMI_FD"])
os.write(fd, b"cmd=init pmi_version=1 pmi_subversion=1\n")
os.read(fd, 100)
os.write(fd, b"cmd=abort exitcode=7\n")
time.sleep(60)
')");
  Release();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 7);
  EXPECT_EQ(Task().exited->exit().signal(), 0);
}

TEST_F(PmiTest, AProgramRunsUnderItsWrapper) {
  proto::ServerMessage message = StartMessage("echo $WRAPPED");
  message.mutable_start()->add_wrapper("/usr/bin/env");
  message.mutable_start()->add_wrapper("WRAPPED=yes");
  server_.Send(message);
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().output[0], "yes\n");
}

}  // namespace
}  // namespace sekisho::agent
