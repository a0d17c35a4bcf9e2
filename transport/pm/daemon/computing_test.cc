// SPDX-License-Identifier: Apache-2.0
// Programs that compute and do not call PM: sekisho-pmd drives their contexts.
#include <sched.h>

#include <algorithm>
#include <vector>

#include "transport/pm/daemon/daemon_test.h"

namespace sekisho::pm {
namespace {

void RunOn(int core) {
  cpu_set_t set;
  CPU_ZERO(&set);
  CPU_SET(core, &set);
  (void)sched_setaffinity(0, sizeof set, &set);  // with one core there is nothing to choose
}

TEST_F(DaemonTest, AProgramThatComputesAcknowledgesAndRepeats) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  // The program keeps one core, we the other: its keeper must be let in by one of us.
  const pid_t other = Spawn(1, [this](pmContext*) {
    RunOn(1);
    board_->ready = 1;
    while (board_->stop.load() == 0) {
    }
  });
  ASSERT_TRUE(Until(60 * kSecond, [&] { return board_->ready.load() != 0; }));
  std::vector<Nanos> times;
  for (int i = 0; i < Rounds(20); ++i) {
    usleep(2000);
    const Nanos begin = Wire::Now();
    // The ring takes no more than 1 MiB that nobody reads.
    if (SendNumber(own, 1, static_cast<std::uint64_t>(i), 64) != 0) break;
    EXPECT_TRUE(Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0; }));
    times.push_back(Wire::Now() - begin);
  }
  ASSERT_FALSE(times.empty());
  PrintSpread("messages acknowledged after", times);
  Kill(other);
  pmCloseDevice(own);
}

// What a program has given back is noted only (release_notes.h); a sender may need it.
TEST_F(DaemonTest, WhatWasReleasedBeforeAProgramComputesIsRoomForOthers) {
  // Of 8000 bytes.  With the last 16 that are read a quarter of the ring is free, which is told the
  // sender; all together are more than a ring.
  constexpr std::uint64_t kRead = 40, kKept = 16, kUnread = 130;
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const pid_t other = Spawn(1, [this](pmContext* context) {
    std::uint64_t number;
    int error, kept[kKept];
    while (board_->received < kRead - kKept) {
      if (!ReceiveNumber(context, number, error)) continue;
      // The first credit goes with the answer, so that the next is due when we think.
      if (++board_->received == 1) SendNumber(context, 0, 0, 8);
    }
    for (std::uint64_t i = 0; i < kKept;) {
      void* buffer;
      std::size_t length;
      if (pmxReceive(context, &buffer, &length, &kept[i]) == 0) ++i;
    }
    for (const int one : kept) board_->wrong += pmxReleaseReceiveBuffer(context, one) != 0 ? 1 : 0;
    board_->received = kRead;
    while (board_->stop.load() == 0) {
    }
    for (;;) {
      if (!ReceiveNumber(context, number, error)) continue;
      if (number != board_->received++) ++board_->wrong;
    }
  });
  const auto send = [&](std::uint64_t first, std::uint64_t count) {
    for (std::uint64_t i = first; i < first + count; ++i) {
      if (!Until(60 * kSecond, [&] { return SendNumber(own, 1, i, 8000) == 0; })) return false;
    }
    return true;
  };
  ASSERT_TRUE(send(0, 1));
  std::uint64_t answer;
  int error;
  ASSERT_TRUE(Until(60 * kSecond, [&] { return ReceiveNumber(own, answer, error); }));
  ASSERT_TRUE(send(1, kRead - 1));
  ASSERT_TRUE(
      Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0 && board_->received == kRead; }));
  ASSERT_TRUE(send(kRead, kUnread));
  EXPECT_TRUE(Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0; })) << Top(0) << Top(1);
  board_->stop = 1;
  EXPECT_TRUE(Until(60 * kSecond, [&] { return board_->received == kRead + kUnread; }));
  EXPECT_EQ(board_->wrong, 0u);
  Kill(other);
  pmCloseDevice(own);
}

TEST_F(DaemonTest, WhatIsHeldBackBeforeAProgramComputesLeaves) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const pid_t other = Spawn(1, [this](pmContext* context) {
    std::uint64_t number;
    int error;
    while (!ReceiveNumber(context, number, error)) continue;  // then there is a session
    while (SendNumber(context, 0, number, 8) != 0) continue;
    for (int round = 0; round < Rounds(20); ++round) {
      while (board_->ready.load() != round) {
      }
      void* buffer;
      if (pmGetSendBuffer(context, 0, &buffer, 8) != 0) continue;
      std::memset(buffer, round, 8);
      if (pmSendMore(context) == 0) ++board_->accepted;
    }
    while (board_->stop.load() == 0) {
    }
  });
  ASSERT_EQ(SendNumber(own, 1, 0, 8), 0);
  std::uint64_t number, got = 0;
  int error;
  const auto receive = [&] { return ReceiveNumber(own, number, error); };
  ASSERT_TRUE(Until(60 * kSecond, receive));
  for (int round = 0; round < Rounds(20); ++round) {
    board_->ready = round;
    EXPECT_TRUE(Until(60 * kSecond, receive)) << "round " << round << "\n" << Top(1);
    ++got;
  }
  EXPECT_EQ(got, board_->accepted);
  board_->stop = 1;
  Kill(other);
  pmCloseDevice(own);
}

}  // namespace
}  // namespace sekisho::pm
