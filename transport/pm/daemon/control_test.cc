// SPDX-License-Identifier: Apache-2.0
// Jobs that are stopped, saved and let go, and who asks sekisho-pmd for it.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>

#include <filesystem>
#include <fstream>
#include <future>
#include <sstream>

#include "transport/pm/daemon/daemon_test.h"

namespace sekisho::pm {
namespace {

// Sends numbers and checks those that come, for ever.
void Chatter(Board& board, pmContext* context, int to) {
  for (;;) {
    while (board.stop) {  // between two messages: the board says all that there is to say
      board.resting = 1;
      usleep(1000);
    }
    const std::uint64_t next = board.accepted.load();
    if (DaemonTest::SendNumber(context, to, next, 8 + next * 37 % 4000) == 0) ++board.accepted;
    void* buffer;
    std::size_t length;
    if (pmReceive(context, &buffer, &length) != 0) continue;
    std::uint64_t number;
    std::memcpy(&number, buffer, sizeof number);
    if (number != board.received.load()) ++board.wrong;
    ++board.received;
    pmReleaseReceiveBuffer(context);
  }
}

TEST_F(DaemonTest, AStoppedJobIsSilentAndGoesOn) {
  const pid_t programs[2] = {Spawn(0, [this](pmContext* c) { Chatter(board_[0], c, 1); }),
                             Spawn(1, [this](pmContext* c) { Chatter(board_[1], c, 0); })};
  const auto received = [&] { return board_[0].received + board_[1].received; };
  Nanos slowest = 0;
  for (int stop = 0; stop < Rounds(10); ++stop) {
    const std::uint64_t before = received();
    ASSERT_TRUE(Until(20 * kSecond, [&] { return received() > before + 200; })) << Top(0) << Top(1);
    const Nanos begin = Wire::Now();
    ASSERT_EQ(Control(Ask::kStop, 0), 0);
    ASSERT_EQ(Control(Ask::kStop, 1), 0);
    slowest = std::max(slowest, Wire::Now() - begin);
    const std::uint64_t flushed = received();
    EXPECT_TRUE(Until(60 * kSecond, [&] {  // perhaps a last acknowledgement of credits
      const std::string silent = Datagrams(Top(0)) + Datagrams(Top(1));
      usleep(20'000);
      return Datagrams(Top(0)) + Datagrams(Top(1)) == silent;
    }));
    EXPECT_LE(received(), flushed + 2) << "more than what each program had in its hands";
    ASSERT_EQ(Control(Ask::kGo, 0), 0);
    ASSERT_EQ(Control(Ask::kGo, 1), 0);
  }
  std::printf("slowest stop of two nodes %.3f ms\n", static_cast<double>(slowest) / 1e6);
  EXPECT_EQ(board_[0].wrong + board_[1].wrong, 0u);
  for (const pid_t pid : programs) Kill(pid);
}

// Its keeper believes for 4 ms that a program that waits takes what comes.  How soon it is rung is
// not asserted: a busy machine runs the program when it likes.
TEST_F(DaemonTest, AProgramThatWaitsTellsItsKeeperThatTheJobStops) {
  setenv("PM_WAIT", "spin", 1);
  const pid_t other = Spawn(1, [](pmContext* context) {
    for (;;) (void)pmWait(context, 1'000'000);
  });
  unsetenv("PM_WAIT");
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  ASSERT_EQ(SendNumber(own, 1, 0, 100), 0);
  ASSERT_TRUE(Until(20 * kSecond, [&] { return pmIsSendDone(own) == 0; }));
  const auto rings = [&] {
    unsigned count = 0;
    const std::string top = Top(1);
    EXPECT_EQ(sscanf(top.c_str() + top.find("rings "), "rings %u", &count), 1) << top;
    return count;
  };
  for (int stop = 0; stop < 5; ++stop) {
    const unsigned before = rings();
    ASSERT_EQ(Control(Ask::kStop, 0), 0);
    EXPECT_TRUE(Until(20 * kSecond, [&] { return rings() > before; })) << "stop " << stop;
    ASSERT_EQ(Control(Ask::kGo, 0), 0);
  }
  Kill(other);
  pmCloseDevice(own);
}

// Both sleep meanwhile, and are rung when all is settled, and when it goes on.
TEST_F(DaemonTest, CheckpointsOfAllProgramsStopTheJobAndLetItGo) {
  const auto checkpoint = [](pmContext* context) {
    while (pmCheckpoint(context, nullptr, nullptr) == EBUSY) {
    }
    int error;
    while ((error = pmRestartUser(context)) == EBUSY) {
    }
    return error;
  };
  const int rounds = Rounds(50);
  const pid_t other = Spawn(1, [&](pmContext* context) {
    for (int i = 0; i < rounds; ++i) {
      if (checkpoint(context) != 0) _exit(1);
      while (SendNumber(context, 0, static_cast<std::uint64_t>(i), 100) != 0) {
      }
    }
    while (pmIsSendDone(context) == EBUSY) {
    }
    _exit(0);
  });
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  Nanos all = 0;
  for (int i = 0; i < rounds; ++i) {
    const Nanos begin = Wire::Now();
    ASSERT_EQ(checkpoint(own), 0);
    all += Wire::Now() - begin;
    std::uint64_t number = 0;
    int error;
    ASSERT_TRUE(Until(20 * kSecond, [&] { return ReceiveNumber(own, number, error); }));
    EXPECT_EQ(number, static_cast<std::uint64_t>(i));
  }
  std::printf("a checkpoint %.3f ms\n", static_cast<double>(all) / rounds / 1e6);
  int status = -1;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  pmCloseDevice(own);
}

// A job of which nobody is node 0, which leads: a stop does not come.
class NearStopTest : public DaemonTest {
 protected:
  // Asks for one while a program sends to another.  What `then` says, which is called as soon as
  // that one finds no room although all that it sent was received; false: it always found some.
  template <typename Then>
  bool Refuses(Then then) {
    WriteJob(3);
    board_->received = 0;
    const pid_t other = Spawn(2, [this](pmContext* context) {
      std::uint64_t number;
      for (int error;;) board_->received += ReceiveNumber(context, number, error) ? 1 : 0;
    });
    pmContext* own = Open(1);
    if (own == nullptr) {
      Kill(other);
      return false;
    }
    std::future<int> stop =
        std::async(std::launch::async, [this] { return Control(Ask::kStop, 2, nullptr, -1, 100); });
    bool refused = false;
    std::uint64_t sent = 0;
    while (!refused && stop.wait_for(std::chrono::seconds(0)) != std::future_status::ready) {
      if (pmIsSendDone(own) != 0 || board_->received != sent) continue;
      const int error = SendNumber(own, 2, sent, 100);
      refused = error == ENOBUFS;
      if (error == 0) ++sent;
    }
    const bool good = refused && then(own);
    // Where all this took seconds, node 0 was given up, and the job is stopped.
    const int error = stop.get();
    Kill(other);
    pmCloseDevice(own);
    return good && error == ETIMEDOUT;
  }
};

// Else what the programs of this host send meanwhile would have to be waited for.
TEST_F(NearStopTest, ProgramsBeginNothingUntilItIsClearThatItDoesNotCome) {
  EXPECT_TRUE(Until(60 * kSecond, [&] {
    return Refuses([&](pmContext* own) {
      return Until(20 * kSecond, [&] { return SendNumber(own, 2, 0, 100) == 0; });
    });
  }));
}

TEST_F(NearStopTest, WhoFoundNoRoomIsWoken) {
  const auto wakes = [](pmContext* own) {
    int descriptor;
    void* buffer;
    std::size_t length;
    EXPECT_EQ(pmGetDescriptor(own, &descriptor), 0);
    EXPECT_EQ(pmBeforeSelect(own), 0);
    EXPECT_EQ(pmReceive(own, &buffer, &length), ENOBUFS);
    pollfd waiting = {descriptor, POLLIN, 0};
    const bool woken = poll(&waiting, 1, 1500) == 1;  // before node 0 is given up
    EXPECT_EQ(pmAfterSelect(own), 0);
    return woken;
  };
  int tries = 0, good = 0;
  EXPECT_TRUE(Until(60 * kSecond, [&] {
    (void)Refuses([&](pmContext* own) {
      bool woken;
      do {
        woken = wakes(own);
      } while (woken && SendNumber(own, 2, 0, 100) != 0);
      ++tries;
      good += woken ? 1 : 0;
      return true;
    });
    return tries == 8;
  }));
  EXPECT_GE(good, 6) << "what else arrives wakes now and then, too";
}

TEST_F(NearStopTest, ProgramsGoOnAfterIt) {
  WriteJob(3);
  const pid_t programs[2] = {Spawn(1, [this](pmContext* c) { Chatter(board_[0], c, 2); }),
                             Spawn(2, [this](pmContext* c) { Chatter(board_[1], c, 1); })};
  const auto received = [&] { return board_[0].received + board_[1].received; };
  for (int stop = 0; stop < Rounds(10); ++stop) {
    const std::uint64_t before = received();
    const int error = Control(Ask::kStop, 1, nullptr, -1, 20);
    // As above.
    if (error != ETIMEDOUT) {
      ASSERT_EQ(error, 0);
      ASSERT_EQ(Control(Ask::kGo, 1), 0);
    }
    ASSERT_TRUE(Until(20 * kSecond, [&] { return received() > before + 200; })) << Top(1) << Top(2);
  }
  EXPECT_EQ(board_[0].wrong + board_[1].wrong, 0u);
  for (const pid_t pid : programs) Kill(pid);
}

TEST_F(DaemonTest, AStopThatTookTooLongIsTakenBack) {
  const pid_t first = Spawn(1, [this](pmContext* c) { Chatter(board_[1], c, 0); });
  ASSERT_TRUE(Until(20 * kSecond, [&] { return IsListed("node 1"); }));
  EXPECT_EQ(Control(Ask::kStop, 1, nullptr, -1, 200), ETIMEDOUT)
      << "its leader, node 0, is not here";

  const pid_t leader = Spawn(0, [this](pmContext* c) { Chatter(board_[0], c, 1); });

  EXPECT_TRUE(
      Until(20 * kSecond, [&] { return board_[0].received > 2000 && board_[1].received > 2000; }))
      << Top(0) << Top(1);
  EXPECT_EQ(board_[0].wrong + board_[1].wrong, 0u);
  Kill(first);
  Kill(leader);
}

TEST_F(DaemonTest, WhoAsksOfAContextThatEndsHearsThatItIsOver) {
  pid_t program = Spawn(1, [](pmContext*) { pause(); });
  ASSERT_TRUE(Until(20 * kSecond, [&] { return IsListed("node 1"); }));
  std::future<int> stop = std::async(std::launch::async, [this] {
    return Control(Ask::kStop, 1, nullptr, -1, 9000);  // it waits for its leader, node 0
  });
  ASSERT_TRUE(Until(60 * kSecond, [&] { return Control(Ask::kGo, 1) == EBUSY; }));
  Kill(program);
  EXPECT_EQ(stop.get(), ENOENT);

  for (int round = 0; round < Rounds(30); ++round) {
    program = Spawn(1, [](pmContext*) { pause(); });
    ASSERT_TRUE(Until(20 * kSecond, [&] { return Control(Ask::kTop, 1) == 0; }));
    std::future<int> top = std::async(std::launch::async, [this] {
      int error;
      while ((error = Control(Ask::kTop, 1)) == 0) continue;
      return error;
    });
    Kill(program);
    EXPECT_EQ(top.get(), ENOENT) << "round " << round;
  }
}

TEST_F(DaemonTest, AStoppedJobWhoseProgramsHaveEndedIsLetGoAndOver) {
  const pid_t programs[2] = {Spawn(0, [](pmContext*) { pause(); }),
                             Spawn(1, [](pmContext*) { pause(); })};
  for (std::uint16_t node : {0, 1}) {
    ASSERT_TRUE(Until(20 * kSecond, [&] { return Control(Ask::kTop, node) == 0; }));
  }
  ASSERT_EQ(Control(Ask::kStop, 0), 0);
  for (const pid_t pid : programs) Kill(pid);
  ASSERT_TRUE(Until(20 * kSecond, [&] {
    return Top(0).find("gone 1") != std::string::npos && Top(1).find("gone 1") != std::string::npos;
  }));
  EXPECT_EQ(Control(Ask::kGo, 0), 0);
  EXPECT_TRUE(Until(20 * kSecond, [&] { return !IsListed("node"); }));
}

TEST_F(DaemonTest, WhoAsksOfAKilledKeeperIsToldByTheNextOne) {
  const pid_t program = Spawn(1, [](pmContext*) { pause(); });
  ASSERT_TRUE(Until(20 * kSecond, [&] { return IsListed("node 1"); }));
  for (int round = 0; round < Rounds(30); ++round) {
    ASSERT_EQ(kill(Keeper(), SIGKILL), 0);
    int error;  // what is on its way to the old one is lost with it
    ASSERT_TRUE(Until(20 * kSecond, [&] { return (error = Control(Ask::kTop, 1)) != ECONNRESET; }));
    EXPECT_EQ(error, 0) << strerror(error);
  }
  Kill(program);
}

// A debugger, or whoever may, stops the keeper of one context; the daemon serves the others.
TEST_F(DaemonTest, AKeeperThatIsStoppedHoldsNobodyUp) {
  const pid_t program = Spawn(1, [](pmContext*) { pause(); });
  ASSERT_TRUE(Until(20 * kSecond, [&] { return Control(Ask::kTop, 1) == 0; }));
  const pid_t keeper = Keeper();
  ASSERT_EQ(kill(keeper, SIGSTOP), 0);

  // More than wait in the keeper's queue; nobody stays for the answer.
  const int key = open((folder_ + "/key").c_str(), O_RDONLY | O_CLOEXEC);
  AskMessage ask;
  ask.ask = Ask::kTop;
  ask.config.context = 5;
  ask.config.node = 1;
  for (int i = 0; i < 2000; ++i) {
    const int fd = ConnectDaemon((folder_ + "/pmd").c_str());
    ASSERT_GE(fd, 0) << i << " " << strerror(errno);
    ASSERT_EQ(SendMessage(fd, BytesOf(ask), std::span(&key, 1)), 0) << i;
    close(fd);
  }
  close(key);
  EXPECT_TRUE(IsListed("node 1"));
  EXPECT_EQ(Control(Ask::kTop, 1), EAGAIN);

  ASSERT_EQ(kill(keeper, SIGCONT), 0);
  EXPECT_TRUE(Until(20 * kSecond, [&] { return Control(Ask::kTop, 1) == 0; }));
  Kill(program);
}

TEST_F(DaemonTest, ASavedContextGoesOnInAnotherProgramUnderAnotherDaemon) {
  const pid_t own = Spawn(0, [this](pmContext* c) { Chatter(board_[0], c, 1); });
  const pid_t first = Spawn(1, [this](pmContext* c) { Chatter(board_[1], c, 0); });
  ASSERT_TRUE(Until(20 * kSecond, [&] { return board_[1].received > 500; }));
  board_[1].stop = 1;  // its own state is saved by someone else: here it is on the board
  ASSERT_TRUE(Until(20 * kSecond, [&] { return board_[1].resting == 1; }));
  kill(first, SIGSTOP);
  ASSERT_EQ(Control(Ask::kStop, 1), 0);
  ASSERT_EQ(Control(Ask::kStop, 0), 0);
  const std::string name = folder_ + "/saved";
  const int file = open(name.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  unlink(name.c_str());
  ASSERT_EQ(Control(Ask::kSave, 1, nullptr, file), 0);
  StopDaemon(SIGKILL);
  Kill(first);

  StartDaemon();
  // The keeper that was killed may still have the port.
  ASSERT_TRUE(Until(20 * kSecond, [&] { return Control(Ask::kRestore, 1, nullptr, file) == 0; }));
  EXPECT_TRUE(IsListed("parked 1"));
  ASSERT_EQ(Control(Ask::kGo, 1), 0);
  ASSERT_TRUE(Until(20 * kSecond, [&] { return IsListed("node 0"); }));
  ASSERT_EQ(Control(Ask::kGo, 0), 0);
  const std::string job = folder_ + "/job";
  const auto size = std::filesystem::file_size(job);
  std::ofstream(job, std::ios::app) << "authenticate headers\n";
  pmContext* none = nullptr;
  EXPECT_EQ(TryOpen(1, none), EINVAL) << "it was saved with all authenticated";
  std::filesystem::resize_file(job, size);
  board_[1].stop = 0;
  const pid_t second = Spawn(1, [this](pmContext* c) { Chatter(board_[1], c, 0); });
  const std::uint64_t before[2] = {board_[0].received, board_[1].received};
  EXPECT_TRUE(Until(
      20 * kSecond,
      [&] { return board_[0].received > before[0] + 500 && board_[1].received > before[1] + 500; }))
      << Top(0) << Top(1);

  EXPECT_EQ(board_[0].wrong + board_[1].wrong, 0u);
  Kill(second);
  Kill(own);
  close(file);
}

// Whose answers do not fit into one message.
TEST_F(DaemonTest, AllOfManyContextsAreListedAndAllPeersShown) {
  constexpr int kNodes = 80;
  WriteJob(kNodes);
  const pid_t program = Spawn(0, [this](pmContext* first) {
    for (int node = 1; node < kNodes; ++node) (void)Open(node);
    for (int node = 1; node < kNodes; ++node) {
      while (SendNumber(first, node, 1, 8) != 0) continue;
    }
    board_[0].stop = 1;
    for (;;) pmWait(first, 1000);
  });
  ASSERT_TRUE(Until(20 * kSecond, [&] { return board_[0].stop == 1; }));

  const auto lines = [](const std::string& text, const char* begin) {
    std::istringstream all(text);
    int count = 0;
    for (std::string line; std::getline(all, line);) count += line.starts_with(begin) ? 1 : 0;
    return count;
  };
  EXPECT_EQ(lines(List(), "context "), kNodes);
  EXPECT_TRUE(Until(20 * kSecond, [&] { return lines(Top(0), "peer ") == kNodes - 1; })) << Top(0);
  EXPECT_EQ(lines(Top(0), "context "), 1);
  Kill(program);
}

// A context takes several descriptors, and login sessions allow few.
TEST_F(DaemonTest, TheDaemonHasAllDescriptorsThatItMayHave) {
  StopDaemon(SIGKILL);
  rlimit usual;
  ASSERT_EQ(getrlimit(RLIMIT_NOFILE, &usual), 0);
  const rlimit few = {64, usual.rlim_max};
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &few), 0);
  StartDaemon();
  ASSERT_EQ(setrlimit(RLIMIT_NOFILE, &usual), 0);

  rlimit its;
  ASSERT_EQ(prlimit(daemon_, RLIMIT_NOFILE, nullptr, &its), 0);
  EXPECT_EQ(its.rlim_cur, usual.rlim_max);
}

}  // namespace
}  // namespace sekisho::pm
