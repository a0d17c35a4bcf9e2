// SPDX-License-Identifier: Apache-2.0
// Which context is meant, and whose keeper goes on where no other can be started.
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "transport/pm/daemon/daemon_test.h"

namespace sekisho::pm {
namespace {

class RegistryTest : public DaemonTest {
 protected:
  // 0 or errno.  The connection stays, as a program's does; its end is at `connection`.
  int AskOnce(const AskMessage& ask, std::span<const int> fds, int& connection) {
    connection = ConnectDaemon((folder_ + "/pmd").c_str());
    AnswerMessage answer;
    Received received;
    const int error = AskDaemon(connection, ask, fds, 10000, answer, received);
    for (std::size_t i = 0; i < received.fd_count; ++i) close(received.fds[i]);
    return error;
  }

  int AskOnce(const AskMessage& ask, std::span<const int> fds) {
    int connection;
    const int error = AskOnce(ask, fds, connection);
    close(connection);
    return error;
  }

  // Until the daemon has closed what came with the last question.
  void AwaitQuiet() {
    int connection;
    char none;
    EXPECT_EQ(AskOnce({}, {}, connection), 0);
    EXPECT_EQ(recv(connection, &none, 1, 0), 0);
    close(connection);
  }

  // From now on the daemon can open so many descriptors.
  void LeaveItDescriptors(int free) {
    AwaitQuiet();
    std::vector<int> used;
    for (const auto& fd :
         std::filesystem::directory_iterator("/proc/" + std::to_string(daemon_) + "/fd")) {
      used.push_back(std::stoi(fd.path().filename()));
    }
    rlimit limit = DaemonLimit();
    limit.rlim_cur = 0;
    for (int left = free; left > 0; ++limit.rlim_cur) {
      if (std::find(used.begin(), used.end(), static_cast<int>(limit.rlim_cur)) == used.end()) {
        --left;
      }
    }
    ASSERT_EQ(prlimit(daemon_, RLIMIT_NOFILE, &limit, nullptr), 0);
  }

  rlimit DaemonLimit() {
    rlimit limit{};
    EXPECT_EQ(prlimit(daemon_, RLIMIT_NOFILE, nullptr, &limit), 0);
    return limit;
  }
};

// As at a limit of processes, which does not bind root.
TEST_F(RegistryTest, WhereNoKeeperCanBeStartedForAnotherProgramTheOldOneGoesOn) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const int memory = MemoryOf(0);
  const pid_t keeper = Keeper();
  const rlimit usual = DaemonLimit();
  AskMessage move;
  move.ask = Ask::kMove;
  move.config.context = 5;
  // The connection and the memory; then the program's two, then the keeper's two.
  for (int free = 2; free < 6; ++free) {
    LeaveItDescriptors(free);
    EXPECT_EQ(AskOnce(move, std::span(&memory, 1)), EMFILE) << free;
    ASSERT_EQ(prlimit(daemon_, RLIMIT_NOFILE, &usual, nullptr), 0);
    EXPECT_EQ(Keeper(), keeper) << free;
    ASSERT_EQ(Control(Ask::kTop, 0), 0) << "of whom is asked there, with " << free;
  }

  int connection;
  EXPECT_EQ(AskOnce(move, std::span(&memory, 1), connection), 0);
  EXPECT_NE(Keeper(), keeper);
  EXPECT_EQ(Control(Ask::kTop, 0), 0);
  close(connection);
  close(memory);
  pmCloseDevice(own);
}

// The answer came too late for it: else it would go on, and hold up the one that took its place.
TEST_F(RegistryTest, AKeeperThatAsksAgainToBeAdoptedHearsThatItWas) {
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const int memory = MemoryOf(0);
  const pid_t keeper = Keeper();
  Wire wire;
  ASSERT_FALSE(wire.Open({}, {}));
  AskMessage adopt;
  adopt.ask = Ask::kAdopt;
  const std::array<int, 4> fds = {memory, wire.fd(), memory, memory};
  EXPECT_EQ(AskOnce(adopt, fds), EEXIST) << "of a program";
  adopt.program = getpid();
  adopt.owner = static_cast<std::int32_t>(geteuid());
  EXPECT_EQ(AskOnce(adopt, fds), 0);
  EXPECT_EQ(Keeper(), keeper);
  close(memory);
  pmCloseDevice(own);
}

// The keepers are of the daemon's user.
TEST_F(RegistryTest, AContextThatAKeeperHandsOnStaysItsUsers) {
  if (geteuid() != 0) GTEST_SKIP() << "it takes two users";
  constexpr uid_t kUser = 65534;
  ASSERT_EQ(chmod(folder_.c_str(), 0755), 0);
  ASSERT_EQ(chown((folder_ + "/key").c_str(), kUser, kUser), 0);
  const auto as_user = [&](auto body) {
    const pid_t pid = fork();
    if (pid == 0) {
      if (setgid(kUser) != 0 || setuid(kUser) != 0) _exit(1);
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      _exit(body());
    }
    return pid;
  };
  const pid_t program = as_user([&] {
    pmContext* context = Open(0);
    if (context == nullptr) return 1;
    for (board_->ready = 1;;) (void)pmWait(context, 1'000'000);
  });
  const auto ask = [&] {
    int status = -1;
    const pid_t asker = as_user([&] { return Control(Ask::kTop, 0); });
    EXPECT_EQ(waitpid(asker, &status, 0), asker);
    return status;
  };
  ASSERT_TRUE(Until(20 * kSecond, [&] { return board_->ready.load() != 0; }));
  ASSERT_EQ(ask(), 0);     // its keeper has let go of what is the daemon's
  kill(daemon_, SIGKILL);  // alone
  waitpid(daemon_, nullptr, 0);
  StartDaemon();
  ASSERT_TRUE(Until(20 * kSecond, [&] { return IsListed("context 5 node 0"); }));

  EXPECT_EQ(ask(), 0);
  Kill(program);
  EXPECT_TRUE(Until(20 * kSecond, [&] { return !IsListed("context 5 node 0"); }));
}

TEST_F(RegistryTest, TwoJobsOfAUserThatHaveOneNumberDoNotHinderEachOther) {
  const auto exchange = [](pmContext* from, pmContext* to) {
    void* buffer;
    std::size_t length;
    EXPECT_EQ(SendNumber(from, 1, 1, 100), 0);
    EXPECT_TRUE(Until(20 * kSecond, [&] {
      (void)pmIsSendDone(from);
      return pmReceive(to, &buffer, &length) == 0;
    }));
    EXPECT_EQ(pmReleaseReceiveBuffer(to), 0);
  };
  pmContext* const first[2] = {Open(0), Open(1)};
  WriteJob(2);
  std::ofstream(folder_ + "/key") << std::string(32, 'l');
  pmContext* const second[2] = {Open(0), Open(1)};
  for (pmContext* context : {first[0], first[1], second[0], second[1]}) {
    ASSERT_NE(context, nullptr);
  }
  exchange(first[0], first[1]);
  exchange(second[0], second[1]);
  pmContext* none = nullptr;
  EXPECT_EQ(TryOpen(0, none), EADDRINUSE) << "the very same node of a job";

  const auto count = [](const std::string& text) {
    return std::count(text.begin(), text.end(), '\n');
  };
  const int key = open((folder_ + "/key").c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(count(List()), 4) << List();
  EXPECT_EQ(count(List(std::span(&key, 1))), 2) << List(std::span(&key, 1));
  close(key);
  ASSERT_EQ(Control(Ask::kStop, 0), 0);
  EXPECT_EQ(SendNumber(second[0], 1, 2, 100), ENOBUFS);
  exchange(first[0], first[1]);
  EXPECT_EQ(Control(Ask::kGo, 0), 0);
  for (pmContext* context : {first[0], first[1], second[0], second[1]}) pmCloseDevice(context);
}

// Whose last message nobody takes: it keeps its address for a while.
TEST_F(RegistryTest, WhoFollowsUnderANewKeyHearsThatTheOneBeforeIsEnding) {
  const pid_t before = Spawn(0, [this](pmContext* context) {
    EXPECT_EQ(SendNumber(context, 1, 1, 100), 0);
    for (board_->ready = 1;;) pause();
  });
  ASSERT_TRUE(Until(20 * kSecond, [&] { return board_->ready.load() != 0; }));
  AskMessage open;
  open.ask = Ask::kOpen;
  open.config.context = 5;
  open.config.nodes = 2;
  std::ifstream job(folder_ + "/job");
  std::string word;
  while (job >> word && word != "0") {
  }
  job >> word;
  ASSERT_FALSE(ParseAddress(word.c_str(), open.own));
  std::ofstream(folder_ + "/key") << std::string(32, 'l');
  const int key = ::open((folder_ + "/key").c_str(), O_RDONLY | O_CLOEXEC);
  EXPECT_EQ(AskOnce(open, std::span(&key, 1)), EADDRINUSE) << "it has its program";

  Kill(before);
  EXPECT_TRUE(
      Until(20 * kSecond, [&] { return AskOnce(open, std::span(&key, 1)) == EINPROGRESS; }));
  open.own.port = 0;
  EXPECT_EQ(AskOnce(open, std::span(&key, 1)), 0);
  close(key);
}

}  // namespace
}  // namespace sekisho::pm
