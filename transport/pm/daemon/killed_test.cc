// SPDX-License-Identifier: Apache-2.0
// Programs and daemons that are killed.
#include "transport/pm/daemon/daemon_test.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <vector>

namespace sekisho::pm {
namespace {

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

}  // namespace
}  // namespace sekisho::pm
