// SPDX-License-Identifier: Apache-2.0
// Nodes that meet by the PMI of who started them: here a launcher of few words, in tests/e2e those
// of users.
#include "transport/pm/pmi.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/pm.h"
#include "transport/pm/pmi_job.h"
#include "transport/pm/wire.h"

namespace {
bool mpi_has_begun = false, mpi_has_ended = false;
}  // namespace

// An MPI that says what tests want.
extern "C" {
[[gnu::visibility("default")]] int MPI_Initialized(int* flag) {
  *flag = mpi_has_begun ? 1 : 0;
  return 0;
}
[[gnu::visibility("default")]] int MPI_Finalized(int* flag) {
  *flag = mpi_has_ended ? 1 : 0;
  return 0;
}
}

namespace sekisho::pm {
namespace {

TEST(PmiValue, IsThatOfAWholeWord) {
  EXPECT_EQ(PmiValue("cmd=get_result rc=0 value=a=b", "value"), "a=b");
  EXPECT_EQ(PmiValue("cmd=get_result rc=0 value=a=b", "cmd"), "get_result");
  EXPECT_EQ(PmiValue("xrc=1 rcx=2  rc=3", "rc"), "3");
  for (const char* line : {"", " ", "rc", "rc=", "rcx=1", "a=rc=1"}) {
    EXPECT_EQ(PmiValue(line, "rc"), "") << line;
  }
}

TEST(OwnAddress, IsTheInterfacesOneOrNone) {
  Address own, loopback;
  ASSERT_FALSE(ParseAddress("127.0.0.1:0", loopback));
  EXPECT_FALSE(FindOwnAddress("lo", own));
  EXPECT_EQ(own, loopback);
  EXPECT_EQ(FindOwnAddress("no-such", own), std::errc::no_such_device);
  EXPECT_FALSE(FindOwnAddress(nullptr, own));
}

// A launcher: starts ranks, keeps their key-value space, and lets them out of a barrier when all
// are in it.
class PmiWorld : public ::testing::Test {
 protected:
  using Program = std::function<int(int rank)>;  // its exit code
  using Answer = std::function<std::string(const std::string& question)>;

  // Exit codes of so many ranks of this program.
  std::vector<int> Run(int ranks, const Program& program, const Answer& instead = nullptr) {
    std::vector<pid_t> children;
    fflush(stdout);  // children that end have nothing to add
    for (int rank = 0; rank < ranks; ++rank) {
      int ends[2];
      EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
      const pid_t child = fork();
      if (child == 0) {
        close(ends[0]);
        setenv("PMI_FD", std::to_string(ends[1]).c_str(), 1);
        setenv("PMI_RANK", std::to_string(rank).c_str(), 1);
        setenv("PMI_SIZE", std::to_string(ranks).c_str(), 1);
        setenv("PM_INTERFACE", "lo", 1);
        const int code = program(rank);
        if (ends_by_exit_) exit(code);  // as one that returns from main
        _exit(code);
      }
      close(ends[1]);
      children.push_back(child);
      ranks_.push_back(ends[0]);
    }
    Serve(instead);
    for (const int rank : ranks_) close(rank);
    if (!ranks_.empty()) {
      for (const pid_t child : children) kill(child, SIGKILL);
    }
    ranks_.clear();
    std::vector<int> codes;
    for (const pid_t child : children) {
      int status = 0;
      EXPECT_EQ(waitpid(child, &status, 0), child);
      codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
    }
    return codes;
  }

  bool refuses_ = false;  // to keep anything
  bool ends_by_exit_ = false;
  int farewells_ = 0;

 private:
  // Until all have hung up.  Who has is missed in a barrier: no launcher lets the others out for
  // it.
  void Serve(const Answer& instead) {
    std::set<int> waiting;
    const std::size_t all = ranks_.size();
    while (!ranks_.empty()) {
      std::vector<pollfd> polled;
      for (const int rank : ranks_) polled.push_back({rank, POLLIN, 0});
      ASSERT_GT(poll(polled.data(), polled.size(), 30'000), 0);
      for (const pollfd& one : polled) {
        if (one.revents == 0) continue;
        char text[4096];
        const ssize_t size = recv(one.fd, text, sizeof text, 0);
        if (size <= 0) {
          close(one.fd);
          std::erase(ranks_, one.fd);
          continue;
        }
        const std::string line(text, static_cast<std::size_t>(size) - 1);
        if (instead) {
          const std::string said = instead(line);
          (void)!write(one.fd, said.data(), said.size());
          if (said.empty()) shutdown(one.fd, SHUT_RDWR);
        } else if (line == "cmd=barrier_in") {
          waiting.insert(one.fd);
        } else {
          Say(one.fd, AnswerTo(line));
        }
      }
      if (waiting.size() == all) {
        for (const int rank : waiting) Say(rank, "cmd=barrier_out");
        waiting.clear();
      }
    }
  }

  std::string AnswerTo(const std::string& line) {
    const std::string key(PmiValue(line, "key"));
    if (line == "cmd=get_my_kvsname") return "cmd=my_kvsname kvsname=here";
    if (line == "cmd=finalize") {
      ++farewells_;
      return "cmd=finalize_ack";
    }
    EXPECT_EQ(PmiValue(line, "kvsname"), "here") << line;
    if (PmiValue(line, "cmd") == "put" && refuses_) return "cmd=put_result rc=-1 msg=full";
    if (PmiValue(line, "cmd") == "put") {
      pairs_[key] = PmiValue(line, "value");
      return "cmd=put_result rc=0 msg=success";
    }
    EXPECT_EQ(PmiValue(line, "cmd"), "get") << line;
    return pairs_.count(key) > 0 ? "cmd=get_result rc=0 value=" + pairs_[key]
                                 : "cmd=get_result rc=-1 value=unknown";
  }

  static void Say(int rank, const std::string& line) {
    (void)!send(rank, (line + "\n").data(), line.size() + 1, MSG_NOSIGNAL);
  }

  std::vector<int> ranks_;
  std::map<std::string, std::string> pairs_;
};

int Open(pmContext** context) {
  char job[] = "--job", pmi[] = "pmi";
  char* arguments[] = {job, pmi};
  return pmOpenDevice("udp", 2, arguments, context);
}

constexpr int kContexts = 2;
using Contexts = std::array<pmContext*, kContexts>;

// To the next node, the own number.
int Send(pmContext* context, int rank, int nodes) {
  void* buffer;
  const int error = pmGetSendBuffer(context, (rank + 1) % nodes, &buffer, 1);
  if (error != 0) return error;
  *static_cast<char*>(buffer) = static_cast<char>(rank);
  return pmSend(context);
}

// Of the node before, its number.
int Receive(pmContext* context, int rank, int nodes) {
  void* buffer;
  std::size_t length;
  int source;
  const int error = pmReceive(context, &buffer, &length);
  if (error == EPIPE) return ENOBUFS;  // another, who has all, has left
  if (error != 0) return error;
  const int before = (rank + nodes - 1) % nodes;
  const bool is_right = length == 1 && *static_cast<char*>(buffer) == before &&
                        pmGetSource(context, &source) == 0 && source == before;
  return is_right ? pmReleaseReceiveBuffer(context) : EBADMSG;
}

// Calls it for each context in turn, as no daemon drives them, until it has said something else
// than this.
template <typename Call>
int UntilNot(int busy, const Contexts& contexts, Call call) {
  Contexts left = contexts;
  for (int open = kContexts; open > 0;) {
    for (pmContext*& context : left) {
      if (context == nullptr) continue;
      const int said = call(context);
      if (said == busy) {
        (void)pmWait(context, 1'000);
        continue;
      }
      if (said != 0) return said;
      context = nullptr;
      --open;
    }
  }
  return 0;
}

TEST_F(PmiWorld, RanksThatKnowNothingOfEachOtherMeetAsOftenAsTheyOpenAContext) {
  constexpr int kRanks = 3;
  char folder[] = "/tmp/pm_pmi_XXXXXX";
  ASSERT_NE(mkdtemp(folder), nullptr);
  const std::string job = std::string(folder) + "/job";
  const auto program = [&job](int rank) {
    Contexts contexts;
    setenv("PM_JOB_OUT", job.c_str(), 1);
    for (pmContext*& context : contexts) {
      int node, nodes;
      if (const int error = Open(&context)) return error;
      if (pmGetNode(context, &node, &nodes) != 0 || node != rank || nodes != kRanks) return EBADMSG;
      if (const int error = Send(context, rank, nodes)) return error;
    }
    const auto receive = [rank](pmContext* context) { return Receive(context, rank, kRanks); };
    if (const int error = UntilNot(ENOBUFS, contexts, receive)) return error;
    // Who has received all may leave without having acknowledged it.
    const int error = UntilNot(EBUSY, contexts, pmIsSendDone);
    for (pmContext* context : contexts) (void)pmCloseDevice(context);
    return error == EPIPE ? 0 : error;
  };
  EXPECT_EQ(Run(kRanks, program), std::vector<int>(kRanks, 0));

  JobFile written;
  int line;
  EXPECT_FALSE(ReadJobFile(job.c_str(), written, line));
  EXPECT_EQ(written.nodes, kRanks);
  std::filesystem::remove_all(folder);
}

// A launcher that hears nothing at the end takes it for a crash, and kills the others.
TEST_F(PmiWorld, ARankThatEndsSaysFarewellOnce) {
  const auto program = [](int) {
    pmContext* context;
    if (const int error = Open(&context)) return error;
    pmCloseDevice(context);
    int status = -1;
    const pid_t child = fork();
    if (child == 0) exit(0);  // it must not speak for its parent
    return waitpid(child, &status, 0) == child ? status : EBADMSG;
  };
  EXPECT_EQ(Run(3, program), std::vector<int>(3, 0));
  EXPECT_EQ(farewells_, 0) << "that was _exit, as good as a crash";
  ends_by_exit_ = true;
  EXPECT_EQ(Run(3, program), std::vector<int>(3, 0));
  EXPECT_EQ(farewells_, 3);
}

TEST_F(PmiWorld, WhileMpiIsInUseItsProgramSaysNothing) {
  ends_by_exit_ = true;
  const auto program = [](int rank) {
    pmContext* context;
    if (const int error = Open(&context)) return error;
    pmCloseDevice(context);
    mpi_has_begun = rank != 0;
    mpi_has_ended = rank == 1;  // but not its way to close the descriptor
    return 0;
  };
  EXPECT_EQ(Run(3, program), std::vector<int>(3, 0));
  EXPECT_EQ(farewells_, 2) << "not of rank 2";
}

// As MPI_Finalize leaves it: closed, and its number perhaps given to another file.
TEST_F(PmiWorld, WhatHasTheDescriptorsNumberLaterIsLeftAlone) {
  int other[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, other), 0);
  ends_by_exit_ = true;
  const auto program = [&other](int) {
    pmContext* context;
    if (const int error = Open(&context)) return error;
    pmCloseDevice(context);
    return dup2(other[0], atoi(getenv("PMI_FD"))) >= 0 ? 0 : errno;
  };
  EXPECT_EQ(Run(1, program), std::vector<int>{0});
  char said;
  EXPECT_EQ(recv(other[1], &said, 1, MSG_DONTWAIT), -1);
  for (const int end : other) close(end);
}

TEST_F(PmiWorld, WhereOneCannotOpenAllFail) {
  const auto program = [](int rank) {
    pmContext* context;
    if (rank == 1) setenv("PM_INTERFACE", "no-such", 1);
    return Open(&context);
  };
  EXPECT_EQ(Run(3, program), (std::vector<int>{ECANCELED, ENODEV, ECANCELED}));
}

TEST_F(PmiWorld, WhatIsNoAnswerIsAnError) {
  const auto program = [](int) {
    pmContext* context;
    return Open(&context);
  };
  const std::string longest(Pmi::kLineMax + 1, 'x');
  const std::map<std::string, int> answers = {{"cmd=barrier_out\n", EPROTO},
                                              {"cmd=my_kvsname kvsname=\n", EPROTO},
                                              {"cmd=my_kvsname kvsname=a\ncmd=more\n", EPROTO},
                                              {longest, EPROTO},
                                              {"cmd=my_kvsname rc=-1 kvsname=a\n", ENOENT},
                                              {"", ECONNRESET}};
  for (const auto& [answer, error] : answers) {
    const auto instead = [&answer](const std::string&) { return answer; };
    EXPECT_EQ(Run(1, program, instead), std::vector<int>{error}) << answer;
  }
}

TEST_F(PmiWorld, WhereNoKeyCanBeKeptAllFail) {
  const auto program = [](int) {
    pmContext* context;
    return Open(&context);
  };
  // What is put is refused; barriers go on.
  refuses_ = true;
  EXPECT_EQ(Run(3, program), std::vector<int>(3, ENOENT));
}

TEST_F(PmiWorld, ALauncherThatDoesNotAnswerIsNotWaitedForForEver) {
  const auto program = [](int) {
    Pmi pmi(50 * kMillisecond);
    if (const auto error = pmi.Open()) return error.value();
    const int late = pmi.Barrier().value();
    return late == ETIMEDOUT ? pmi.Barrier().value() : late;  // its answer may come now
  };
  const auto instead = [](const std::string& question) {
    return question == "cmd=barrier_in" ? " " : "cmd=my_kvsname kvsname=a\n";
  };
  EXPECT_EQ(Run(1, program, instead), std::vector<int>{EBADF});
}

TEST(Pmi, IsNotThereForWhoHasNotBeenStartedByOne) {
  for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
  pmContext* context;
  EXPECT_EQ(Open(&context), EINVAL);
  setenv("PMI_FD", "0", 1), setenv("PMI_RANK", "2", 1), setenv("PMI_SIZE", "2", 1);
  EXPECT_EQ(Open(&context), EINVAL);
  for (const char* name : {"PMI_FD", "PMI_RANK", "PMI_SIZE"}) unsetenv(name);
}

}  // namespace
}  // namespace sekisho::pm
