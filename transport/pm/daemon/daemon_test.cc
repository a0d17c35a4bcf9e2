// SPDX-License-Identifier: Apache-2.0
// Programs that stop and die, with sekisho-pmd behind them.
#include "transport/pm/daemon/daemon_test.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <thread>
#include <vector>

namespace sekisho::pm {
namespace {

TEST_F(DaemonTest, AStoppedProgramGoesOnAcknowledging) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const pid_t other = Spawn(1, [this](pmContext* context) {
    std::uint64_t number;
    int error;
    for (;;) {
      if (!ReceiveNumber(context, number, error)) continue;
      if (number != board_->received.load()) ++board_->wrong;
      ++board_->received;
    }
  });
  ASSERT_EQ(SendNumber(own, 1, 0, 100), 0);
  ASSERT_TRUE(Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0; }));
  std::uint64_t sent = 1;
  for (int stop = 0; stop < Rounds(20); ++stop) {
    kill(other, SIGSTOP);
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(SendNumber(own, 1, sent++, 1000), 0);
      EXPECT_TRUE(Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0; })) << "stop " << stop;
    }
    kill(other, SIGCONT);
    EXPECT_TRUE(Until(60 * kSecond,
                      [&] {
                        pmIsSendDone(own);
                        return board_->received.load() == sent;
                      }))
        << "stop " << stop << " received " << board_->received.load() << " of " << sent;
  }
  EXPECT_EQ(board_->wrong.load(), 0u);
  Kill(other);
  pmCloseDevice(own);
}

// Sends without a pause: most stops hit it with the owner word in its hands.
TEST_F(DaemonTest, AProgramStoppedInTheMiddleOfACallLosesAndRepeatsNothing) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const pid_t other = Spawn(1, [this](pmContext* context) {
    std::uint64_t number;
    int error;
    board_->ready = 1;
    for (std::uint64_t i = 0;; ++i) {
      while (SendNumber(context, 0, i, 8 + i * 37 % 4000) != 0) {
        if (!ReceiveNumber(context, number, error)) continue;
        if (number != board_->received.load()) ++board_->wrong;
        ++board_->received;
      }
      board_->accepted.store(i + 1);
      if (!ReceiveNumber(context, number, error)) continue;
      if (number != board_->received.load()) ++board_->wrong;
      ++board_->received;
    }
  });
  ASSERT_TRUE(Until(60 * kSecond, [&] { return board_->ready.load() != 0; }));
  unsigned seed = static_cast<unsigned>(getpid());
  std::uint64_t sent = 0, got = 0, number = 0;
  int error;
  const auto drain = [&] {
    while (ReceiveNumber(own, number, error)) {
      ASSERT_EQ(number, got);
      ++got;
    }
  };
  for (int stop = 0; stop < Rounds(50); ++stop) {
    const Nanos stop_at = Wire::Now() + rand_r(&seed) % 2000 * kMicrosecond;
    while (Wire::Now() < stop_at) drain();
    kill(other, SIGSTOP);
    const std::uint64_t accepted = board_->accepted.load();
    const std::uint64_t goal = sent + 16;
    ASSERT_TRUE(Until(60 * kSecond,
                      [&] {
                        drain();
                        if (sent < goal && SendNumber(own, 1, sent, 100) == 0) ++sent;
                        return got >= accepted && sent == goal && pmIsSendDone(own) == 0;
                      }))
        << "stop " << stop << " got " << got << " of " << accepted << "\n"
        << Top(1);
    kill(other, SIGCONT);
    ASSERT_TRUE(Until(60 * kSecond,
                      [&] {
                        drain();
                        return board_->received.load() == sent;
                      }))
        << "stop " << stop << " received " << board_->received.load() << " of " << sent << "\n"
        << Top(1);
    if (HasFatalFailure()) break;
  }
  std::printf("%s", Top(1).c_str());
  EXPECT_EQ(board_->wrong.load(), 0u);
  Kill(other);
  pmCloseDevice(own);
}

// It holds several messages of one peer and gives them back in another order.
TEST_F(DaemonTest, AStoppedProgramKeepsWhatItHasOpen) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const pid_t other = Spawn(1, [this](pmContext* context) {
    constexpr int kMost = 5;
    int open[kMost];
    const unsigned char* bytes[kMost];
    std::size_t lengths[kMost];
    std::uint64_t numbers[kMost];
    for (int count = 0;;) {
      void* buffer;
      if (pmxReceive(context, &buffer, &lengths[count], &open[count]) == 0) {
        bytes[count] = static_cast<unsigned char*>(buffer);
        std::memcpy(&numbers[count], buffer, sizeof numbers[count]);
        if (numbers[count] != board_->received.load()) ++board_->wrong;
        ++board_->received;
        ++count;
      }
      if (count < kMost) continue;
      for (const int i : {3, 0, 4, 2, 1}) {
        for (std::size_t at = 8; at < lengths[i]; ++at) {
          if (bytes[i][at] != static_cast<unsigned char>(numbers[i])) ++board_->wrong;
        }
        if (pmxReleaseReceiveBuffer(context, open[i]) != 0) ++board_->wrong;
      }
      count = 0;
    }
  });
  unsigned seed = static_cast<unsigned>(getpid());
  std::uint64_t sent = 0;
  for (int stop = 0; stop < Rounds(50); ++stop) {
    const Nanos stop_at = Wire::Now() + rand_r(&seed) % 2000 * kMicrosecond;
    while (Wire::Now() < stop_at) {
      const bool fits = sent - board_->received.load() < 40;  // into the ring, behind what is open
      if (fits && SendNumber(own, 1, sent, 8 + sent * 37 % 4000) == 0) ++sent;
      (void)pmIsSendDone(own);
    }
    kill(other, SIGSTOP);
    ASSERT_TRUE(Until(60 * kSecond, [&] { return stop % 2 == 0 || pmIsSendDone(own) == 0; }))
        << "not taken by the keeper\n"
        << Top(1);
    kill(other, SIGCONT);
    ASSERT_TRUE(Until(60 * kSecond,
                      [&] {
                        (void)pmIsSendDone(own);
                        return board_->received.load() == sent;
                      }))
        << "stop " << stop << " received " << board_->received.load() << " of " << sent << "\n"
        << Top(1);
  }
  EXPECT_EQ(board_->wrong.load(), 0u);
  Kill(other);
  pmCloseDevice(own);
}

// In the middle of operations on remote memory, of either size, from afar or near.
TEST_F(DaemonTest, AStoppedProgramsOperationsAreWhole) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  std::vector<unsigned char> shared(60'000);
  pmHandle handle;
  ASSERT_EQ(pmMLock(own, 1, shared.data(), shared.size(), &handle), 0);
  const pid_t other = Spawn(1, [this, handle](pmContext* context) {
    std::vector<unsigned char> source(60'000), back(60'000);
    pmHandle from, to;
    if (pmMLock(context, 1, source.data(), source.size(), &from) != 0) ++board_->wrong;
    if (pmMLock(context, 1, back.data(), back.size(), &to) != 0) ++board_->wrong;
    int operation = -1;
    const auto finish = [&](int error) {
      while (error == 0 && (error = pmxIsSendDone(context, operation)) == EBUSY) error = 0;
      if (error != 0 || pmxReleaseSendDesc(context, operation) != 0) ++board_->wrong;
    };
    for (unsigned round = 0;; ++round) {
      const std::size_t size = round % 3 == 0 ? 60'000 : 100 + round % 3000;
      std::fill(source.begin(), source.end(), static_cast<unsigned char>(round));
      finish(pmxWrite(context, 0, &handle, &from, size, &operation));
      finish(pmxRead(context, 0, &handle, &to, size, &operation));
      if (!std::equal(back.begin(), back.begin() + static_cast<long>(size), source.begin())) {
        ++board_->wrong;
      }
      board_->accepted = round + 1;
    }
  });
  unsigned seed = static_cast<unsigned>(getpid());
  for (int stop = 0; stop < Rounds(50); ++stop) {
    const std::uint64_t before = board_->accepted;
    const Nanos stop_at = Wire::Now() + rand_r(&seed) % 2000 * kMicrosecond;
    while (Wire::Now() < stop_at) (void)pmIsSendDone(own);
    kill(other, SIGSTOP);
    const Nanos go_at = Wire::Now() + rand_r(&seed) % 3000 * kMicrosecond;
    while (Wire::Now() < go_at) (void)pmIsSendDone(own);
    kill(other, SIGCONT);
    ASSERT_TRUE(Until(60 * kSecond,
                      [&] {
                        (void)pmIsSendDone(own);
                        return board_->accepted > before;
                      }))
        << "stop " << stop << "\n"
        << Top(1);
  }
  EXPECT_EQ(board_->wrong, 0u);
  Kill(other);
  pmCloseDevice(own);
}

// In a stopped job pmSend waits, and all other threads may go on calling.
TEST_F(DaemonTest, AThreadThatWaitsInAStoppedJobHoldsUpNoOther) {
  pmContext* one = Open(0);
  pmContext* two = Open(1);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  int descriptor;
  void* buffer;
  ASSERT_EQ(pmxGetSendBuffer(one, 1, &buffer, 8, &descriptor), 0);
  std::memset(buffer, 7, 8);
  ASSERT_EQ(Control(Ask::kStop, 0), 0);

  std::atomic<int> sent{-1};
  std::thread sender([&] { sent = pmxSend(one, descriptor); });
  int waiting, gone;
  ASSERT_TRUE(Until(60 * kSecond, [&] { return pmGetStopState(one, &waiting, &gone) == 0; }));
  for (int i = 0; i < 100; ++i) EXPECT_EQ(pmGetStopState(one, &waiting, &gone), 0);
  EXPECT_EQ(sent, -1) << "sent in a stopped job";
  ASSERT_EQ(Control(Ask::kGo, 0), 0);
  std::size_t length = 0;
  EXPECT_TRUE(Until(60 * kSecond, [&] { return pmReceive(two, &buffer, &length) == 0; }));
  EXPECT_EQ(length, 8u);
  sender.join();
  EXPECT_EQ(sent, 0);
  pmCloseDevice(one);
  pmCloseDevice(two);
}

// Who made it may end then; the daemon watches the other one from now on.
TEST_F(DaemonTest, AContextIsHandedToAnotherProcess) {
  pmContext* own = Open(1);
  ASSERT_NE(own, nullptr);
  const pid_t maker = fork();
  ASSERT_GE(maker, 0);
  if (maker == 0) {
    pmContext* made = Open(0);
    int fd = -1;
    std::uint64_t number;
    int error;
    while (!ReceiveNumber(made, number, error)) (void)pmWait(made, 1000);
    if (pmDetachContext(made, &fd) != 0) _exit(1);
    const pid_t user = fork();
    if (user == 0) {
      alarm(60);  // nobody's child when the test fails
      pmContext* context = nullptr;
      if (pmAttachContext("udp", fd, &context) != 0) _exit(1);
      board_->ready = getpid();
      for (;;) {
        (void)pmWait(context, 1000);
        if (ReceiveNumber(context, number, error)) ++board_->received;
      }
    }
    while (board_->ready == 0 && waitpid(user, nullptr, WNOHANG) == 0) usleep(1000);
    _exit(0);
  }
  ASSERT_EQ(SendNumber(own, 0, 1, 100), 0);
  int status = -1;
  ASSERT_TRUE(Until(20 * kSecond, [&] {
    (void)pmIsSendDone(own);
    return waitpid(maker, &status, WNOHANG) == maker;
  }));
  EXPECT_EQ(status, 0);
  const pid_t user = board_->ready;
  ASSERT_GT(user, 0);
  EXPECT_TRUE(IsListed(("context 5 node 0 program " + std::to_string(user)).c_str())) << List();

  ASSERT_EQ(SendNumber(own, 0, 2, 100), 0);
  EXPECT_TRUE(Until(60 * kSecond, [&] {
    (void)pmIsSendDone(own);
    return board_->received == 1;
  }));
  kill(user, SIGSTOP);  // its keeper drives
  ASSERT_EQ(SendNumber(own, 0, 3, 100), 0);
  EXPECT_TRUE(Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0; }));
  kill(user, SIGKILL);
  EXPECT_TRUE(Until(60 * kSecond, [&] {
    (void)pmIsSendDone(own);
    return !IsListed("context 5 node 0");
  }));
  pmCloseDevice(own);
}

TEST_F(DaemonTest, AContextEndsAlsoIfAChildOfForkHoldsItsDescriptors) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  ASSERT_TRUE(IsListed("context 5 node 0"));
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    board_->ready = 1;
    for (;;) pause();
  }
  const pid_t other = fork();
  ASSERT_GE(other, 0);
  if (other == 0) _exit(pmCloseDevice(own));  // the child's copy
  int status = -1;
  ASSERT_EQ(waitpid(other, &status, 0), other);
  EXPECT_EQ(status, 0);
  ASSERT_TRUE(Until(60 * kSecond, [&] { return board_->ready == 1; }));
  EXPECT_TRUE(IsListed("context 5 node 0")) << "closed by a child";
  EXPECT_EQ(pmIsSendDone(own), 0);

  pmCloseDevice(own);
  EXPECT_TRUE(Until(60 * kSecond, [&] { return !IsListed("context 5 node 0"); }));
  Kill(child);
}

TEST_F(DaemonTest, EverythingThatAKilledProgramSentArrives) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  unsigned seed = static_cast<unsigned>(getpid());
  std::printf("seed %u\n", seed);
  std::vector<Nanos> stalls, freed_after;
  for (int round = 0; round < Rounds(100); ++round) {
    board_->accepted = 0;
    board_->ready = 0;
    const pid_t other = Spawn(1, [this](pmContext* context) {
      board_->ready = 1;
      for (std::uint64_t i = 0;; ++i) {
        while (SendNumber(context, 0, i, 8 + i * 37 % 4000) != 0) {
          std::uint64_t number;
          int error;
          (void)ReceiveNumber(context, number, error);
        }
        board_->accepted.store(i + 1);
      }
    });
    ASSERT_TRUE(Until(20 * kSecond, [&] { return board_->ready.load() != 0; }));
    const Nanos kill_at = Wire::Now() + rand_r(&seed) % 3000 * kMicrosecond;
    std::uint64_t next = 0, number = 0;
    bool killed = false, freed = false, over = false;
    const Nanos limit = Wire::Now() + 20 * kSecond;
    Nanos killed_at = 0, heard = 0, stall = 0;
    while (!over && Wire::Now() < limit) {
      if (!killed && Wire::Now() >= kill_at) {
        heard = killed_at = Wire::Now();
        Kill(other);
        killed = true;
      }
      int error;
      if (ReceiveNumber(own, number, error)) {
        ASSERT_EQ(number, next) << "round " << round;
        ++next;
        if (killed) stall = std::max(stall, Wire::Now() - std::exchange(heard, Wire::Now()));
      } else if (killed && error == ENOBUFS) {
        over = freed;  // and nothing came after that
        freed = !IsListed("node 1");
        if (freed && !over) freed_after.push_back(Wire::Now() - killed_at);
      }
    }
    stalls.push_back(stall);
    EXPECT_TRUE(over) << "round " << round;
    if (!killed) Kill(other);
    const std::uint64_t accepted = board_->accepted.load();
    EXPECT_GE(next, accepted) << "round " << round;
    EXPECT_LE(next, accepted + 1) << "round " << round;
    EXPECT_EQ(board_->wrong.load(), 0u) << "round " << round;
    if (HasFailure()) break;
  }
  PrintSpread("contexts freed after", freed_after);
  PrintSpread("longest silences after a kill", stalls);
  pmCloseDevice(own);
}

// Its predecessor's last words are on their way still; a living one is not waited for.
TEST_F(DaemonTest, WhoFollowsOneThatWasKilledMayComeAtOnce) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  for (int round = 0; round < Rounds(20); ++round) {
    board_->accepted = 0;
    const pid_t other = Spawn(1, [this, round](pmContext* context) {
      for (std::uint64_t i = 0; i < 100; ++i) {  // as many as fit where nobody reads meanwhile
        while (SendNumber(context, 0, i, 4000) != 0) {
        }
        board_->accepted.store(static_cast<std::uint64_t>(round) * 1000 + i + 1);
      }
      for (;;) pause();
    });
    const std::uint64_t enough = static_cast<std::uint64_t>(round) * 1000 + 5;
    ASSERT_TRUE(Until(20 * kSecond, [&] { return board_->accepted.load() >= enough; }));
    Kill(other);
    pmContext* const next = Open(1);
    ASSERT_NE(next, nullptr) << "round " << round;
    pmContext* another = nullptr;
    ASSERT_EQ(TryOpen(1, another), EADDRINUSE);
    ASSERT_EQ(SendNumber(next, 0, 1'000'000, 100), 0);
    std::uint64_t number = 0, expected = 0;
    int error;
    ASSERT_TRUE(Until(20 * kSecond,
                      [&] {
                        if (!ReceiveNumber(own, number, error)) return false;
                        if (number != 1'000'000 && number != expected++) ++board_->wrong;
                        return number == 1'000'000;
                      }))
        << "round " << round;
    EXPECT_GE(expected, board_->accepted.load() - static_cast<std::uint64_t>(round) * 1000);
    EXPECT_EQ(board_->wrong.load(), 0u);
    pmCloseDevice(next);
  }
  pmCloseDevice(own);
}

// There may be no such page: who touches the memory is killed.
TEST_F(DaemonTest, MemoryOfHugePagesIsNotAdopted) {
  const int memory = memfd_create("huge", MFD_CLOEXEC | MFD_ALLOW_SEALING | MFD_HUGETLB);
  if (memory < 0) GTEST_SKIP() << "this kernel has none";
  ASSERT_EQ(ftruncate(memory, 2 << 20), 0);
  ASSERT_EQ(fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL), 0);
  Wire wire;
  ASSERT_FALSE(wire.Open({}, {}));
  const int fd = ConnectDaemon((folder_ + "/pmd").c_str());
  AskMessage ask;
  ask.ask = Ask::kAdopt;
  AnswerMessage answer;
  Received received;
  const std::array<int, 4> fds = {memory, wire.fd(), memory, memory};
  EXPECT_EQ(AskDaemon(fd, ask, fds, 10000, answer, received), EINVAL);
  EXPECT_EQ(List(), "");
  close(fd);
  close(memory);
}

TEST_F(DaemonTest, ProgramsGoOnWithoutADaemonAndTheNextOneAdoptsThem) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const pid_t other = Spawn(1, [this](pmContext* context) {
    std::uint64_t number, answered = 0;
    int error;
    board_->ready = 1;
    for (;;) {
      if (!ReceiveNumber(context, number, error)) continue;
      if (number != board_->received.load()) ++board_->wrong;
      ++board_->received;
      while (SendNumber(context, 0, answered, 64) != 0) {
      }
      ++answered;
    }
  });
  ASSERT_TRUE(Until(60 * kSecond, [&] { return board_->ready.load() != 0; }));
  unsigned seed = static_cast<unsigned>(getpid());
  std::uint64_t sent = 0, got = 0, number = 0;
  std::vector<Nanos> stalls;
  for (int round = 0; round < Rounds(20); ++round) {
    const Nanos kill_at = Wire::Now() + rand_r(&seed) % 2000 * kMicrosecond;
    bool killed = false;
    Nanos heard = 0, stall = 0;
    std::uint64_t goal = UINT64_MAX;  // known when the daemon is dead
    ASSERT_TRUE(Until(20 * kSecond,
                      [&] {
                        if (!killed && Wire::Now() >= kill_at) {
                          heard = Wire::Now();
                          StopDaemon(SIGKILL);  // with all its keepers
                          killed = true;
                          goal = sent + 50;
                        }
                        if (sent < goal && SendNumber(own, 1, sent, 500) == 0) ++sent;
                        int error;
                        if (ReceiveNumber(own, number, error)) {
                          EXPECT_EQ(number, got);
                          ++got;
                          const Nanos now = Wire::Now();
                          if (killed) stall = std::max(stall, now - std::exchange(heard, now));
                        }
                        return killed && got == goal;
                      }))
        << "round " << round << " sent " << sent << " got " << got;
    stalls.push_back(stall);
    StartDaemon();
  }
  PrintSpread("longest silences after a kill", stalls);
  EXPECT_EQ(board_->wrong.load(), 0u);
  // Adopted: the new daemon acknowledges for a stopped program.
  int connection = ConnectDaemon((folder_ + "/pmd").c_str());
  ASSERT_GE(connection, 0);
  close(connection);
  ASSERT_TRUE(Until(20 * kSecond, [&] {
    pmIsSendDone(own);
    return IsListed("node 1");
  }));
  kill(other, SIGSTOP);
  ASSERT_EQ(SendNumber(own, 1, sent++, 500), 0);
  EXPECT_TRUE(Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0; }));
  Kill(other);
  pmCloseDevice(own);
}

TEST_F(DaemonTest, ADaemonThatAcceptsNobodyHoldsUpNoProgram) {
  const pid_t program = Spawn(0, [this](pmContext* context) {
    for (board_->ready = 1;; ++board_->received) (void)pmIsSendDone(context);
  });
  ASSERT_TRUE(Until(60 * kSecond, [&] { return board_->ready.load() != 0; }));
  StopDaemon(SIGKILL);
  const std::string path = folder_ + "/pmd";
  unlink(path.c_str());
  sockaddr_un address{AF_UNIX, {}};
  strcpy(address.sun_path, path.c_str());
  const int deaf = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(deaf, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  ASSERT_EQ(listen(deaf, 0), 0);
  std::vector<int> waiting;
  while (waiting.empty() || waiting.back() >= 0)
    waiting.push_back(ConnectDaemon(path.c_str(), false));
  ASSERT_EQ(errno, EAGAIN);
  // It looks for a daemon several times meanwhile.
  for (int i = 0; i < 8; ++i) {
    const Nanos later = Wire::Now() + 100 * kMillisecond;
    const std::uint64_t before = board_->received.load();
    ASSERT_TRUE(
        Until(60 * kSecond,
              [&] { return Wire::Now() > later && board_->received.load() > before + 100; }))
        << "after " << before << " calls";
  }
  for (const int fd : waiting) close(fd);
  close(deaf);
  unlink(path.c_str());
  Kill(program);
}

TEST_F(DaemonTest, EveryWayOfWaitingWakesUp) {
  for (const char* waiting : {"spin", "yield", "adaptive", "sleep", "classic"}) {
    SCOPED_TRACE(waiting);
    setenv("PM_WAIT", waiting, 1);
    const pid_t other = Spawn(1, [this](pmContext* context) {
      std::uint64_t number;
      int error;
      for (;;) {
        pmWait(context, -1);
        if (!ReceiveNumber(context, number, error)) continue;
        while (SendNumber(context, 0, number, 64) != 0) {
        }
      }
    });
    pmContext* own = Open(0);
    ASSERT_NE(own, nullptr);
    std::uint64_t number = 0;
    int error;
    for (std::uint64_t i = 0; i < 40; ++i) {
      ASSERT_EQ(SendNumber(own, 1, i, 64), 0);
      const Nanos begin = Wire::Now();
      while (!ReceiveNumber(own, number, error)) {
        ASSERT_LT(Wire::Now(), begin + 60 * kSecond);
        pmWait(own, 1'000'000);
      }
      ASSERT_EQ(number, i);
    }
    EXPECT_EQ(pmWait(own, 1000), ETIMEDOUT);
    Kill(other);
    pmCloseDevice(own);
    ASSERT_TRUE(Until(20 * kSecond, [&] { return !IsListed("node"); }));
  }
  unsetenv("PM_WAIT");
}

TEST_F(DaemonTest, AKeyFileOfSomeoneElseOpensNothing) {
  chmod((folder_ + "/key").c_str(), 0644);
  const int key = open((folder_ + "/key").c_str(), O_RDONLY | O_CLOEXEC);
  const int fd = ConnectDaemon((folder_ + "/pmd").c_str());
  AskMessage ask;
  ask.ask = Ask::kOpen;
  AnswerMessage answer;
  Received received;
  const std::array<int, 1> fds = {key};
  EXPECT_EQ(AskDaemon(fd, ask, fds, 5000, answer, received), EACCES);
  close(fd);
  close(key);
}

}  // namespace
}  // namespace sekisho::pm
