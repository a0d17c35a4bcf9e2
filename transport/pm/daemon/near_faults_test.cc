// SPDX-License-Identifier: Apache-2.0
// Programs whose datagrams go through memory are killed, stopped and moved, their daemon is killed.
#include "transport/pm/daemon/near_test.h"

#include <errno.h>

namespace sekisho::pm {
namespace {

// What it accepted arrives, through its keeper, once; and we are not stuck with what it did not
// read any more.
TEST_F(Near, AProgramKilledWhileItPollsLosesNothing) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  unsigned seed = static_cast<unsigned>(getpid());
  for (int round = 0; round < 20; ++round) {
    board_->accepted = board_->received = 0;
    const pid_t other = Spawn(1, [this](pmContext* context) {
      std::uint64_t number;
      int error;
      for (std::uint64_t i = 0;; ++i) {
        while (SendNumber(context, 0, i, 8 + i * 37 % 4000) != 0) {
          (void)ReceiveNumber(context, number, error);
        }
        board_->accepted = i + 1;
        (void)pmWait(context, 50);
        if (ReceiveNumber(context, number, error)) ++board_->received;
      }
    });
    std::uint64_t next = 0, number = 0, sent = 0;
    int error = 0;
    const std::uint64_t before = Sent(0);
    const auto talk = [&] {
      if (SendNumber(own, 1, sent, 100) == 0) ++sent;
      while (ReceiveNumber(own, number, error)) {
        EXPECT_EQ(number, next) << "round " << round;
        ++next;
      }
    };
    ASSERT_TRUE(Until(20 * kSecond,
                      [&] {
                        for (int i = 0; i < 100; ++i) talk();
                        return Sent(0) > before + 50;
                      }))
        << "round " << round << "\n"
        << Top(0) << Top(1);
    const Nanos kill_at = Wire::Now() + rand_r(&seed) % 3000 * kMicrosecond;
    while (Wire::Now() < kill_at) talk();
    Kill(other);
    bool freed = false;
    EXPECT_TRUE(Until(20 * kSecond,
                      [&] {
                        const bool any = ReceiveNumber(own, number, error);
                        if (any) {
                          EXPECT_EQ(number, next) << "round " << round;
                          ++next;
                          return false;
                        }
                        if (error != ENOBUFS) return false;
                        if (freed) return true;  // and nothing came after that
                        freed = !IsListed("node 1");
                        return false;
                      }))
        << "round " << round << "\n"
        << Top(0);
    const std::uint64_t accepted = board_->accepted;
    EXPECT_GE(next, accepted) << "round " << round;
    EXPECT_LE(next, accepted + 1) << "round " << round;
    EXPECT_EQ(board_->wrong, 0u) << "round " << round;
    if (HasFailure()) break;
  }
  pmCloseDevice(own);
}

TEST_F(Near, AProgramStoppedWhileItPollsIsAnsweredForByItsKeeper) {
  const pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  unsigned seed = static_cast<unsigned>(getpid());
  std::uint64_t number = 0, back = 0;
  int error;
  for (int stop = 0; stop < 10; ++stop) {
    ASSERT_NO_FATAL_FAILURE(UntilNear(own, number));
    const Nanos stop_at = Wire::Now() + rand_r(&seed) % 300 * kMicrosecond;
    while (Wire::Now() < stop_at) ASSERT_TRUE(RoundTrip(own, number++));
    kill(other, SIGSTOP);
    std::uint64_t next = number;
    for (int i = 0; i < 5; ++i) {
      ASSERT_EQ(SendNumber(own, 1, number++, 1000), 0);
      EXPECT_TRUE(Until(60 * kSecond, [&] { return pmIsSendDone(own) == 0; })) << "stop " << stop;
    }
    kill(other, SIGCONT);
    EXPECT_TRUE(Until(20 * kSecond,
                      [&] {
                        if (ReceiveNumber(own, back, error)) {
                          EXPECT_EQ(back, next++);
                        }
                        return next == number;
                      }))
        << "stop " << stop << "\n"
        << Top(0) << Top(1);
    if (HasFailure()) break;
  }
  EXPECT_EQ(board_->wrong, 0u);
  Kill(other);
  pmCloseDevice(own);
}

TEST_F(Near, GoesOnWithoutTheDaemonAndTheNextOneMakesMore) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  std::uint64_t number = 0;
  ASSERT_NO_FATAL_FAILURE(UntilNear(own, number));

  StopDaemon(SIGKILL);
  for (int i = 0; i < 2000; ++i) ASSERT_TRUE(RoundTrip(own, number++));
  StartDaemon();
  for (const char* node : {"node 0", "node 1"}) {
    ASSERT_TRUE(Until(20 * kSecond, [&] { return RoundTrip(own, number++) && IsListed(node); }));
  }
  ASSERT_NO_FATAL_FAILURE(UntilNear(own, number));
  EXPECT_EQ(board_->wrong, 0u);

  Kill(other);
  ASSERT_TRUE(Until(20 * kSecond, [&] {
    (void)pmIsSendDone(own);
    return !IsListed("node 1");
  }));
  board_->received = 0;
  other = Spawn(1, [this](pmContext* context) {
    while (SendNumber(context, 0, 0, 8) != 0) (void)pmWait(context, 1000);  // greets
    Echo(context);
  });
  int error = 0;
  ASSERT_TRUE(Until(20 * kSecond, [&] { return ReceiveNumber(own, number, error); }));
  ASSERT_NO_FATAL_FAILURE(UntilNear(own, number));
  EXPECT_EQ(board_->wrong, 0u);
  Kill(other);
  pmCloseDevice(own);
}

TEST_F(Near, AJobThatWasStoppedGoesOnThroughMemory) {
  const pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  std::uint64_t number = 0;
  for (int stop = 0; stop < 3; ++stop) {
    ASSERT_NO_FATAL_FAILURE(UntilNear(own, number));
    ASSERT_EQ(Control(Ask::kStop, 0), 0);
    for (int i = 0; i < 33; ++i) (void)pmIsSendDone(own);  // it is counted now
    const std::uint64_t sent = Sent(0);
    for (int i = 0; i < 33; ++i) (void)pmIsSendDone(own);
    EXPECT_EQ(Sent(0), sent);
    ASSERT_EQ(Control(Ask::kGo, 0), 0);
  }
  EXPECT_EQ(board_->wrong, 0u);
  Kill(other);
  pmCloseDevice(own);
}

TEST_F(Near, AContextThatAnotherProcessTakesOverIsNearAgain) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const pid_t maker = Spawn(1, [this](pmContext* context) {
    Echo(context);
    int fd = -1;
    if (pmDetachContext(context, &fd) != 0) _exit(1);
    const pid_t user = fork();
    if (user == 0) {
      alarm(60);  // nobody's child when the test fails
      if (pmAttachContext("udp", fd, &context) != 0) _exit(1);
      board_->stop = 0;
      board_->ready = getpid();
      Echo(context);
    }
    while (board_->ready == 0 && waitpid(user, nullptr, WNOHANG) == 0) usleep(1000);
  });
  std::uint64_t number = 0;
  ASSERT_NO_FATAL_FAILURE(UntilNear(own, number));

  board_->stop = 1;
  int status = -1;
  ASSERT_TRUE(Until(20 * kSecond, [&] {
    (void)pmIsSendDone(own);
    return waitpid(maker, &status, WNOHANG) == maker;
  }));
  EXPECT_EQ(status, 0);
  const pid_t user = board_->ready;
  ASSERT_GT(user, 0);
  ASSERT_NO_FATAL_FAILURE(UntilNear(own, number));
  EXPECT_EQ(board_->wrong, 0u);
  kill(user, SIGKILL);
  pmCloseDevice(own);
}

}  // namespace
}  // namespace sekisho::pm
