// SPDX-License-Identifier: Apache-2.0
// Whose a context is, what a daemon takes, and how programs with one wait.
#include "transport/pm/daemon/daemon_test.h"

#include <errno.h>
#include <fcntl.h>

namespace sekisho::pm {
namespace {

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
