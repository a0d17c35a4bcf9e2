// SPDX-License-Identifier: Apache-2.0
// Datagrams that go through memory: which do, who may, and that nobody sleeps through one.
#include "transport/pm/daemon/near_test.h"

#include <errno.h>
#include <sched.h>

#include <fstream>
#include <iterator>

#include "transport/pm/trace.h"

namespace sekisho::pm {
namespace {

// This process, and those that it starts.
class OnOneCore {
 public:
  OnOneCore() {
    cpu_set_t one;
    EXPECT_EQ(sched_getaffinity(0, sizeof all_, &all_), 0);
    CPU_ZERO(&one);
    for (int i = 0; i < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++i) {
      if (CPU_ISSET(i, &all_)) CPU_SET(i, &one);
    }
    EXPECT_EQ(sched_setaffinity(0, sizeof one, &one), 0);
  }
  ~OnOneCore() { (void)sched_setaffinity(0, sizeof all_, &all_); }

 private:
  cpu_set_t all_;
};

// Whether the process has one in its memory.
bool HasRing(pid_t process) {
  std::ifstream maps("/proc/" + std::to_string(process) + "/maps");
  const std::string text(std::istreambuf_iterator<char>(maps), {});
  return text.find("memfd:pm-near") != std::string::npos;
}

TEST_F(Near, DatagramsGoThroughMemoryWhileTheOtherPolls) {
  const pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  std::uint64_t number = 0;

  ASSERT_NO_FATAL_FAILURE(UntilNear(own, number));

  EXPECT_TRUE(HasRing(getpid()) && HasRing(other));
  EXPECT_EQ(board_->wrong, 0u);
  Kill(other);
  pmCloseDevice(own);
}

// Probes go by the socket, and what goes through memory overtakes them.
TEST_F(Near, ThePathMtuIsFoundAlsoThen) {
  const pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  std::uint64_t number = 0;
  ASSERT_TRUE(Until(20 * kSecond, [&] {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(RoundTrip(own, number++, 8));
    return HasFailure() || Sent(0) > 100;
  }));

  EXPECT_TRUE(Until(20 * kSecond, [&] {
    for (int i = 0; i < 200; ++i) EXPECT_TRUE(RoundTrip(own, number++, 8000));
    return HasFailure() || Top(0).find(" mtu 89") != std::string::npos;
  })) << Top(0);

  Kill(other);
  pmCloseDevice(own);
}

TEST_F(Near, NotIfOneOfThemDoesNotWant) {
  setenv("PM_NEAR", "0", 1);
  const pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  ASSERT_TRUE(Until(20 * kSecond, [&] { return IsListed("node 1"); }));
  unsetenv("PM_NEAR");
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);

  for (std::uint64_t i = 0; i < 2000; ++i) ASSERT_TRUE(RoundTrip(own, i));

  EXPECT_EQ(Sent(0), 0u);
  EXPECT_EQ(Sent(1), 0u);
  Kill(other);
  pmCloseDevice(own);
}

// As long as they poll in turns, sleep and wake each other: nothing hangs.  First they only poll,
// as who shares a processor is given no ring.
TEST_F(Near, NoWakeIsLost) {
  setenv("PM_WAIT", "adaptive", 1);
  const pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  const char* const many = getenv("PMD_TEST_ROUNDS");
  const std::uint64_t count = many != nullptr ? 100'000 : 20'000;
  unsigned seed = static_cast<unsigned>(getpid());
  Nanos slowest = 0;
  std::uint64_t first = 0;
#if !defined(__SANITIZE_THREAD__)  // there a lease is shorter than a round trip
  board_->polls = 1;
  ASSERT_NO_FATAL_FAILURE(UntilNear(own, first));
  board_->polls = 0;
#endif

  for (std::uint64_t i = first; i < first + count; ++i) {
    if (i % 64 == 0) usleep(static_cast<useconds_t>(rand_r(&seed) % 200));  // it falls asleep
    const Nanos begin = Wire::Now();
    ASSERT_TRUE(RoundTrip(own, i)) << "round trip " << i << "\n" << Top(0) << Top(1);
    slowest = std::max(slowest, Wire::Now() - begin);
  }

  std::printf("slowest of %llu: %.3f ms\n%s", static_cast<unsigned long long>(count),
              static_cast<double>(slowest) / 1e6, Top(0).c_str());
  EXPECT_EQ(board_->wrong, 0u);
  // A time-out repairs what is lost, but where that becomes usual it takes ever longer.
  EXPECT_LT(slowest, 2 * kSecond);
  Kill(other);
  pmCloseDevice(own);
}

// On cores of their own they would have a ring within milliseconds.
TEST_F(Near, NotOfProgramsThatShareAProcessor) {
  setenv("PM_WAIT", "adaptive", 1);
  const OnOneCore pinned;
  const pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);

  for (std::uint64_t i = 0; i < 20'000; ++i) ASSERT_TRUE(RoundTrip(own, i));

  EXPECT_FALSE(HasRing(getpid()) && HasRing(other));  // one alone may have asked
  Kill(other);
  pmCloseDevice(own);
}

TEST_F(Near, ATraceShowsThem) {
  const pid_t other = Spawn(1, [this](pmContext* context) { Echo(context); });
  pmContext* own = Open(0);
  ASSERT_NE(own, nullptr);
  std::unique_ptr<TracedContext> trace;
  ASSERT_FALSE(TracedContext::Open(MemoryOf(0), trace));
  trace->Ask(Wire::Now() + 60 * kSecond);
  std::uint64_t number = 0, sent = 0, received = 0;
  TracedDatagram seen;

  ASSERT_TRUE(Until(20 * kSecond, [&] {
    for (int i = 0; i < 100; ++i) {
      EXPECT_TRUE(RoundTrip(own, number++));
      while (trace->Next(seen, Wire::Now())) {
        if (seen.driver != Side::kProgram) continue;
        EXPECT_EQ(seen.remote.ip, trace->own().ip);
        ++(seen.sent ? sent : received);
      }
    }
    return HasFailure() || Sent(0) > 1000;
  }));

  const std::string top = Top(0);
  unsigned long long in = 0, out = 0;
  ASSERT_EQ(std::sscanf(top.c_str() + top.find("memory in"), "memory in %llu out %llu", &in, &out),
            2);
  EXPECT_EQ(trace->lost(), 0u);
  EXPECT_GE(sent, out);
  EXPECT_GE(received, in);
  Kill(other);
  pmCloseDevice(own);
}

// Whose memory it is and that it is of this job: else there is no ring.
TEST_F(Near, TheDaemonGivesARingToTheTwoOnly) {
  pmContext* one = Open(0);
  pmContext* two = Open(1);
  ASSERT_TRUE(one != nullptr && two != nullptr);
  const auto ask = [this](std::uint16_t node, std::uint16_t peer, int memory) {
    const int fd = ConnectDaemon((folder_ + "/pmd").c_str());
    AskMessage message;
    message.ask = Ask::kNear;
    message.config.context = 5;
    message.config.node = node;
    message.peer = peer;
    AnswerMessage answer;
    Received received;
    const int error = AskDaemon(fd, message, std::span(&memory, 1), 5000, answer, received);
    for (std::size_t i = 0; i < received.fd_count; ++i) close(received.fds[i]);
    close(fd);
    return error;
  };
  const int memory = MemoryOf(0), stranger = memfd_create("stranger", MFD_CLOEXEC);

  EXPECT_EQ(ask(0, 1, memory), 0);
  EXPECT_EQ(ask(0, 1, stranger), ENOENT);
  EXPECT_EQ(ask(1, 0, memory), ENOENT);
  EXPECT_EQ(ask(0, 0, memory), ENOENT);
  EXPECT_EQ(ask(0, 2, memory), ENOENT);

  close(memory);
  close(stranger);
  pmCloseDevice(one);
  pmCloseDevice(two);
}

}  // namespace
}  // namespace sekisho::pm
