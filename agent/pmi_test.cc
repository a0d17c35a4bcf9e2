// SPDX-License-Identifier: Apache-2.0
// Ranks of an MPI program at their agent: they stand before their exec until they are released, and
// find each other by PMI-1.
#include <sys/socket.h>
#include <sys/un.h>

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
  void Forget() {
    proto::ServerMessage message;
    message.mutable_forget()->set_job_id("job");
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

// As kRank; stands still where the file `on.WORD` is not there yet, having said so.
std::string SteppingRank() {
  std::string rank = kRank;
  const auto step = [&rank](const std::string& before, const std::string& word) {
    rank.insert(rank.find(before), "step(\"" + word + "\")\n");
  };
  step("print(ask(\"cmd=barrier_in", "put");
  step("print(ask(f\"cmd=get", "met");
  step("ask(\"cmd=finalize", "done");
  rank.insert(rank.find("rank = int"), R"(import time
def step(word):
    open(word + os.environ["PMI_RANK"], "w")
    while not os.path.exists("on." + word):
        time.sleep(0.01)
)");
  return rank;
}

class PmiRestartTest : public PmiTest {
 protected:
  // Both ranks, and the agent, to where they stand still.
  void Begin() {
    StartWaiting(SteppingRank(), 0);
    StartWaiting(SteppingRank(), 1);
    ASSERT_TRUE(Await([&] { return Task(0).ready == 1 && Task(1).ready == 1; }));
    Release();
    AwaitAt("put");
  }
  void AwaitAt(const std::string& word) {
    ASSERT_TRUE(Await([&] { return Exists(word + "0") && Exists(word + "1"); })) << word;
  }
  void AwaitFence(size_t fences) {
    ASSERT_TRUE(Await([&] { return server_.fences.size() == fences; }));
  }
  void ExpectGoodEnd() {
    ASSERT_TRUE(AwaitEnd(0) && AwaitEnd(1));
    for (const int rank : {0, 1}) {
      EXPECT_EQ(Task(rank).exited->exit().code(), 0);
      EXPECT_EQ(Task(rank).exited->gram_code(), 0) << Task(rank).exited->reason();
      EXPECT_EQ(Task(rank).output[0], "cmd=barrier_out rc=0\ncmd=get_result rc=0 value=card of " +
                                          std::to_string(1 - rank) + "\ncmd=get_result rc=0 value=(vector,(0,1,2))\n");
    }
  }
  // What its ranks have said goes with it, also if they run still and want answers.
  void TearDown() override {
    EXPECT_TRUE(fs::exists(State() + "/.pmi/job"));
    Forget();
    EXPECT_TRUE(Await([&] { return ListTaskDirectories(State()).empty(); }));
    EXPECT_FALSE(fs::exists(State() + "/.pmi/job"));
    PmiTest::TearDown();
  }
};

TEST_F(PmiRestartTest, RanksThatHavePutFindEachOtherThroughTheNextAgent) {
  Begin();
  StopAgent();
  StartAgent();
  Touch("on.put");
  AwaitFence(1);
  EXPECT_EQ(server_.fences.at(0).fence().data(), "P0=card of 0\nP1=card of 1\n");
  EndFence(server_.fences.at(0));
  Touch("on.met");
  Touch("on.done");
  ExpectGoodEnd();
}

TEST_F(PmiRestartTest, RanksInABarrierLeaveItThroughTheNextAgentWhichSaysTheirGiftAgain) {
  Begin();
  Touch("on.put");
  AwaitFence(1);
  StopAgent();
  StartAgent();
  AwaitFence(2);
  EXPECT_EQ(server_.fences.at(1).fence().data(), server_.fences.at(0).fence().data());
  EndFence(server_.fences.at(1));
  Touch("on.met");
  Touch("on.done");
  ExpectGoodEnd();
}

TEST_F(PmiRestartTest, WhatANodeGaveToACollectiveThatIsOverIsSaidAgainForThoseWithoutItsResult) {
  Begin();
  Touch("on.put");
  AwaitFence(1);
  EndFence(server_.fences.at(0));
  AwaitAt("met");

  server_.DropConnection();

  AwaitFence(2);
  EXPECT_EQ(server_.fences.at(1).fence().SerializeAsString(), server_.fences.at(0).fence().SerializeAsString());
  Touch("on.met");
  Touch("on.done");
  ExpectGoodEnd();
}

TEST_F(PmiRestartTest, WhatACollectiveHasGivenIsKnownToTheNextAgent) {
  Begin();
  Touch("on.put");
  AwaitFence(1);
  EndFence(server_.fences.at(0));
  AwaitAt("met");
  StopAgent();
  StartAgent();
  Touch("on.met");
  AwaitAt("done");
  StopAgent();
  Touch("on.done");
  loop_.run_for(300ms);
  StartAgent();
  ExpectGoodEnd();
  EXPECT_EQ(server_.fences.size(), 3u) << "no other than the first, by each agent";
  EXPECT_EQ(server_.fences.at(2).fence().id(), server_.fences.at(0).fence().id());
}

TEST_F(PmiRestartTest, NothingIsLeftOfAJobThatIsForgottenWhileItsRanksMeet) {
  Begin();
  Touch("on.put");
  AwaitFence(1);
}

// A rank's supervisor (agent/task/pmi_lines.h), as a test has it speak.
class PmiByHandTest : public PmiRestartTest {
 protected:
  void SetUp() override {
    PmiRestartTest::SetUp();
    for (const int rank : {0, 1}) {
      StartWaiting("sleep 60", rank);
      ASSERT_TRUE(Await([&] { return Task(rank).ready == 1; }));
    }
    Release();
    ASSERT_TRUE(Await([&] { return Task(0).started == 1 && Task(1).started == 1; }));
  }
  void TearDown() override {
    for (const int fd : fds_) {
      close(fd);
    }
    PmiRestartTest::TearDown();
  }
  int Dial(const std::string& text) {
    sockaddr_un address{AF_UNIX, {}};
    (root_ + "/pmi").copy(address.sun_path, sizeof address.sun_path - 1);
    const int fd = fds_.emplace_back(socket(AF_UNIX, SOCK_STREAM, 0));
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    Say(fd, text);
    return fd;
  }
  static void Say(int fd, const std::string& text) {
    EXPECT_EQ(write(fd, text.data(), text.size()), static_cast<ssize_t>(text.size()));
  }
  std::string HearLine(int fd) {
    std::string line;
    const auto is_whole = [&] {
      char c = 0;
      while (!line.ends_with('\n') && recv(fd, &c, 1, MSG_DONTWAIT) == 1) {
        line += c;
      }
      return line.ends_with('\n');
    };
    EXPECT_TRUE(Await(is_whole)) << line;
    return line;
  }
  std::vector<int> fds_;
};

TEST_F(PmiByHandTest, ARankThatHasYetToSayAgainThatItIsInABarrierLeavesItOnce) {
  Dial("sekisho job 0 secret0 1\ncmd=get_appnum\ncmd=barrier_in\n");
  Dial("sekisho job 1 secret1 1\ncmd=barrier_in\n");
  AwaitFence(1);
  StopAgent();
  StartAgent();
  AwaitFence(2);

  const int rank = Dial("sekisho job 0 secret0 1\ncmd=get_appnum\n");
  EXPECT_EQ(HearLine(rank), "1 cmd=appnum rc=0 appnum=0\n");
  const auto known = fs::file_size(State() + "/.pmi/job");
  EndFence(server_.fences.at(1));
  ASSERT_TRUE(Await([&] { return fs::file_size(State() + "/.pmi/job") > known; }));
  Say(rank, "cmd=barrier_in\ncmd=get_appnum\n");

  EXPECT_EQ(HearLine(rank), "2 cmd=barrier_out rc=0\n");
  EXPECT_EQ(HearLine(rank), "3 cmd=appnum rc=0 appnum=0\n");
}

TEST_F(PmiByHandTest, ARankOfAJobThatIsForgottenIsAStrangerBeforeItHasEnded) {
  ASSERT_NE(agent_->tasks->FindByToken("job", "secret0"), nullptr);
  proto::ServerMessage forget;
  forget.mutable_forget()->set_job_id("job");

  agent_->tasks->Handle(forget);

  ASSERT_EQ(agent_->tasks->running(), 2u);
  EXPECT_EQ(agent_->tasks->FindByToken("job", "secret0"), nullptr);
}

TEST_F(PmiByHandTest, ARankOfWhichNothingWasKeptGetsTheEndOfItsAnswers) {
  EXPECT_EQ(HearLine(Dial("sekisho job 0 secret0 7\ncmd=barrier_in\n")), "end\n");
  EXPECT_EQ(HearLine(Dial("sekisho job 1 secret1 1\ncmd=get_appnum\n")), "1 cmd=appnum rc=0 appnum=0\n");
}

// Says `word` to its agent, which is gone, and exits with 0 once it has its answer, if it waits for one.
constexpr char kWhileAway[] = R"(/usr/bin/python3 -c '
import os, time
fd = int(os.environ["PMI_FD"])
os.write(fd, b"cmd=init pmi_version=1 pmi_subversion=1\n")
os.read(fd, 100)
open("inside", "w")
while not os.path.exists("go"):
    time.sleep(0.01)
WORD
')";

class PmiAwayTest : public PmiTest {
 protected:
  const proto::AgentMessage::Exited& EndAway(const std::string& word) {
    std::string script = kWhileAway;
    script.replace(script.find("WORD"), 4, word);
    StartWaiting(script);
    Release();
    EXPECT_TRUE(Await([&] { return Exists("inside"); }));
    StopAgent();
    Touch("go");
    loop_.run_for(300ms);
    StartAgent();
    EXPECT_TRUE(AwaitEnd());
    return *Task().exited;
  }
};

TEST_F(PmiAwayTest, ARankThatEndsInsideMpiHasFailed) {
  EXPECT_EQ(EndAway("").reason(), "it ended inside MPI, without MPI_Finalize");
}

TEST_F(PmiAwayTest, ARankThatFinalizesWaitsForTheNextAgentAndHasEndedWell) {
  EXPECT_EQ(EndAway("os.write(fd, b\"cmd=finalize\\n\")\nos.read(fd, 100)").gram_code(), 0);
}

TEST_F(PmiAwayTest, ARankThatAbortsIsKilledByTheNextAgent) {
  EXPECT_EQ(EndAway("os.write(fd, b\"cmd=abort exitcode=7\\n\")\ntime.sleep(60)").exit().code(), 7);
}

TEST_F(PmiTest, ARankThatSaysWhatIsNoPmiGetsTheEndOfItsAnswersAndMayGoOn) {
  StartWaiting(R"(/usr/bin/python3 -c '
import os
fd = int(os.environ["PMI_FD"])
os.write(fd, b"GET / HTTP/1.0\n")
assert os.read(fd, 100) == b""
os.write(fd, b"more\n" * 100)
')");
  Release();
  ASSERT_TRUE(AwaitEnd());

  EXPECT_EQ(Task().exited->exit().code(), 0);
  EXPECT_EQ(Task().exited->gram_code(), 0);
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
