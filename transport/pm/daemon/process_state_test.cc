// SPDX-License-Identifier: Apache-2.0
// What a keeper learns of its program.
#include "transport/pm/daemon/process_state.h"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>

#include <gtest/gtest.h>

namespace sekisho::pm {
namespace {

class Child {
 public:
  explicit Child(const std::function<void()>& work) : pid_(fork()) {
    if (pid_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) work();
  }
  ~Child() { End(); }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;

  void End() {
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  pid_t pid() const { return pid_; }

 private:
  const pid_t pid_;
};

bool ComesTrue(const std::function<bool()>& condition) {
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!condition()) {
    if (std::chrono::steady_clock::now() > limit) return false;
    usleep(1000);
  }
  return true;
}

TEST(ProcessState, WhoComputesIsRunnableAndUsesTime) {
  const Child child([] {});
  const std::int64_t before = ProcessorTime(child.pid());

  EXPECT_TRUE(ComesTrue([&] { return ProcessorTime(child.pid()) > before; }));
  EXPECT_TRUE(IsRunnable(child.pid()));
  EXPECT_FALSE(ReadProcessState(child.pid()).stopped);
}

TEST(ProcessState, WhoIsStoppedUsesNoneUntilHeGoesOn) {
  const Child child([] {});
  kill(child.pid(), SIGSTOP);
  ASSERT_TRUE(ComesTrue([&] { return ReadProcessState(child.pid()).stopped; }));
  const ProcessState state = ReadProcessState(child.pid());
  const std::int64_t used = ProcessorTime(child.pid());

  EXPECT_FALSE(IsRunnable(child.pid()));
  EXPECT_EQ(ReadProcessState(child.pid()), state);
  EXPECT_EQ(ProcessorTime(child.pid()), used);

  kill(child.pid(), SIGCONT);
  EXPECT_TRUE(ComesTrue([&] { return ProcessorTime(child.pid()) > used; }));
  kill(child.pid(), SIGSTOP);
  ASSERT_TRUE(ComesTrue([&] { return ReadProcessState(child.pid()).stopped; }));
  EXPECT_GT(ReadProcessState(child.pid()).runs, state.runs);
}

// Its state is behind its name, which it chose itself.
TEST(ProcessState, WhoSleepsIsNotRunnableWhateverHeIsCalled) {
  const Child child([] {
    prctl(PR_SET_NAME, "x) R 1 (y) T");
    pause();
  });

  EXPECT_TRUE(ComesTrue([&] { return !IsRunnable(child.pid()); }));
  EXPECT_FALSE(ReadProcessState(child.pid()).stopped);
}

TEST(ProcessState, OfTheDeadNothingIsSaid) {
  Child child([] { pause(); });
  const pid_t pid = child.pid();
  child.End();

  EXPECT_FALSE(IsRunnable(pid));
  EXPECT_FALSE(ReadProcessState(pid).stopped);
  EXPECT_EQ(ProcessorTime(pid), 0);
}

}  // namespace
}  // namespace sekisho::pm
