// SPDX-License-Identifier: Apache-2.0
// Programs that are stopped, with sekisho-pmd behind them.
#include "transport/pm/daemon/daemon_test.h"

#include <errno.h>

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

// As a batch system does it; the programs know what to do then.
TEST_F(DaemonTest, ASignalForAllProcessesOfAJobEndsNoKeeper) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const pid_t other = Spawn(1, [this](pmContext* context) {
    std::uint64_t number;
    int error;
    for (;;) board_->received += ReceiveNumber(context, number, error) ? 1 : 0;
  });
  ASSERT_EQ(SendNumber(own, 1, 0, 100), 0);
  ASSERT_TRUE(Until(60 * kSecond, [&] { return board_->received.load() == 1; }));
  for (const int signal : {SIGUSR1, SIGUSR2}) ASSERT_EQ(kill(-daemon_, signal), 0);
  kill(other, SIGSTOP);
  ASSERT_EQ(SendNumber(own, 1, 1, 100), 0);
  EXPECT_TRUE(Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0; }));
  EXPECT_EQ(waitpid(daemon_, nullptr, WNOHANG), 0);
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

}  // namespace
}  // namespace sekisho::pm
