// SPDX-License-Identifier: Apache-2.0
// Contexts and threads, contexts and processes.
#include "transport/pm/capi_test.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <vector>

#include "transport/pm/capi_context.h"

namespace sekisho::pm {
namespace {

// Three threads send through one context, and one writes; two receive from the other and one sends
// back; one sleeps in poll.
TEST_F(CApi, ThreadsShareAContext) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  constexpr unsigned kEach = 1500;
  constexpr int kSenders = 3;
  pmContext* const one = contexts_[0];
  pmContext* const two = contexts_[1];
  const Nanos limit = Device::Now() + 60 * kSecond;
  std::atomic<unsigned> received{0}, back{0}, wrong{0}, written{0};
  std::vector<std::atomic<unsigned char>> seen(kEach * kSenders);
  const auto send = [&](pmContext* context, int to, unsigned number) {
    void* buffer;
    int descriptor, error;
    while ((error = pmxGetSendBuffer(context, to, &buffer, 8 + number % 500, &descriptor)) ==
               ENOBUFS &&
           Device::Now() < limit) {
      (void)pmWait(context, 1000);
    }
    if (error != 0) {
      ++wrong;
      return;
    }
    memset(buffer, static_cast<int>(number), 8 + number % 500);
    memcpy(buffer, &number, sizeof number);
    if (pmxSend(context, descriptor) != 0) ++wrong;
    if (pmxReleaseSendDesc(context, descriptor) != 0) ++wrong;
  };
  const auto receive = [&](pmContext* context) {
    void* buffer;
    size_t length;
    int descriptor;
    if (pmxReceive(context, &buffer, &length, &descriptor) != 0) return -1;
    unsigned number;
    memcpy(&number, buffer, sizeof number);
    const auto* bytes = static_cast<unsigned char*>(buffer);
    if (length != 8 + number % 500 ||
        std::count(bytes + 4, bytes + length, number & 0xff) != static_cast<long>(length - 4)) {
      ++wrong;
    }
    if (pmxReleaseReceiveBuffer(context, descriptor) != 0) ++wrong;
    return static_cast<int>(number);
  };

  std::string source(300'000, 's'), target(300'000, 't');
  pmHandle local, remote;
  ASSERT_EQ(pmMLock(one, 0, source.data(), source.size(), &local), 0);
  ASSERT_EQ(pmMLock(two, 0, target.data(), target.size(), &remote), 0);
  std::vector<std::thread> threads;
  for (unsigned sender = 0; sender < kSenders; ++sender) {
    threads.emplace_back([&, sender] {
      for (unsigned i = 0; i < kEach; ++i) send(one, 1, sender * kEach + i);
    });
  }
  threads.emplace_back([&] {
    for (int i = 0; i < 20; ++i) {
      int descriptor, error = pmxWrite(one, 1, &remote, &local, source.size(), &descriptor);
      if (error != 0) ++wrong;
      while ((error = pmxIsSendDone(one, descriptor)) == EBUSY && Device::Now() < limit) {
        (void)pmWait(one, 1000);
      }
      if (error != 0 || pmxReleaseSendDesc(one, descriptor) != 0) ++wrong;
      ++written;
    }
  });
  for (int receiver = 0; receiver < 2; ++receiver) {
    threads.emplace_back([&] {
      while ((received < kEach * kSenders || written < 20) && Device::Now() < limit) {
        (void)pmWait(two, 10'000);
        const int number = receive(two);
        if (number < 0) continue;
        if (++seen[static_cast<size_t>(number)] != 1) ++wrong;
        ++received;
      }
    });
  }
  threads.emplace_back([&] {
    for (unsigned i = 0; i < kEach; ++i) send(two, 0, i);
  });
  threads.emplace_back([&] {
    int fd;
    if (pmGetDescriptor(one, &fd) != 0) ++wrong;
    while (back < kEach && Device::Now() < limit) {
      if (pmBeforeSelect(one) != 0) ++wrong;
      const int number = receive(one);
      if (number >= 0) {
        if (static_cast<unsigned>(number) != back) ++wrong;
        ++back;
      } else {
        pollfd waiting = {fd, POLLIN, 0};
        (void)poll(&waiting, 1, 1000);
      }
      if (pmAfterSelect(one) != 0) ++wrong;
    }
  });
  for (std::thread& thread : threads) thread.join();

  EXPECT_EQ(received, kEach * kSenders);
  EXPECT_EQ(back, kEach);
  EXPECT_EQ(wrong, 0u);
  EXPECT_TRUE(target == source);
  while (pmIsSendDone(one) == EBUSY && Device::Now() < limit) (void)pmIsSendDone(two);
  EXPECT_EQ(pmIsSendDone(one), 0);
}

// Two whose threads sleep when they wait, and that have heard of each other.
class Sleepers : public CApi {
 protected:
  void Acquaint() {
    setenv("PM_WAIT", "sleep", 1);
    ASSERT_EQ(Open(0), 0);
    ASSERT_EQ(Open(1), 0);
    unsetenv("PM_WAIT");
    SendText(0, 1, "first");
    EXPECT_EQ(ReceiveText(1), "first");
  }
};

// One who hears nothing but datagrams, where one can come only from the other thread's call.
TEST_F(Sleepers, OneInTheSocketIsWokenByACallOfAnother) {
  ASSERT_NO_FATAL_FAILURE(Acquaint());
  SendText(0, 1, "second");
  ASSERT_EQ(pmWait(contexts_[1], 20'000'000), 0);  // that came soon: it expects the next soon
  EXPECT_EQ(ReceiveText(1), "second");
  ASSERT_EQ(Finish(0), 0);
  Context& core = contexts_[1]->core();
  const timeval forever = {};
  ASSERT_EQ(setsockopt(core.fd(), SOL_SOCKET, SO_RCVTIMEO, &forever, sizeof forever), 0);
  std::atomic<bool> ended{false};
  std::thread sleeper([&] {
    EXPECT_EQ(pmWait(contexts_[1], 50'000), ETIMEDOUT);
    ended = true;
  });
  while (core.head().program_sleeps.load() == 0 && !ended) std::this_thread::yield();
  EXPECT_EQ(pmIsSendDone(contexts_[1]), 0);
  sleeper.join();
}

// Whoever calls takes what arrived from the socket, also from under one that sleeps.
TEST_F(Sleepers, AThreadIsWokenByWhatAnotherOneTook) {
  ASSERT_NO_FATAL_FAILURE(Acquaint());
  for (int round = 0; round < 100; ++round) {
    std::atomic<int> ended{0}, failed{0};
    std::vector<std::thread> sleepers;
    for (int i = 0; i < 2; ++i) {
      sleepers.emplace_back([&] {
        if (pmWait(contexts_[1], 20'000'000) != 0) ++failed;
        ++ended;
      });
    }
    SendText(0, 1, "again");
    const Nanos limit = Device::Now() + 60 * kSecond;
    while (ended < 2 && Device::Now() < limit) {
      for (pmContext* context : contexts_) (void)pmIsSendDone(context);
    }
    EXPECT_EQ(ended, 2) << "sleeps beside a message, round " << round;
    for (std::thread& sleeper : sleepers) sleeper.join();
    EXPECT_EQ(failed, 0);
    EXPECT_EQ(ReceiveText(1), "again");
    if (HasFailure()) break;
  }
}

TEST_F(CApi, AContextGoesToAnotherProcessAsADescriptor) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string memory(100, 'm');
  pmHandle handle;
  ASSERT_EQ(pmMLock(contexts_[0], 1, memory.data(), memory.size(), &handle), 0);
  SendText(1, 0, "first");
  SendText(1, 0, "second");
  EXPECT_EQ(ReceiveText(0), "first") << "where the second is taken from its ring, too";
  void* buffer;
  ASSERT_EQ(pmGetSendBuffer(contexts_[0], 1, &buffer, 1), 0);
  int fd = -1;
  EXPECT_EQ(pmDetachContext(contexts_[0], &fd), EINVAL) << "a buffer is open";
  EXPECT_EQ(pmSend(contexts_[0]), 0);
  EXPECT_EQ(Finish(0), 0);
  ASSERT_EQ(pmDetachContext(contexts_[0], &fd), 0);
  contexts_[0] = nullptr;
  EXPECT_EQ(fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);

  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    alarm(20);
    pmContext* context = nullptr;
    if (pmAttachContext("udp", fd, &context) != 0) _exit(1);
    int node, nodes;
    if (pmGetNode(context, &node, &nodes) != 0 || node != 0 || nodes != 2) _exit(2);
    size_t length;
    while (pmReceive(context, &buffer, &length) == ENOBUFS) (void)pmWait(context, 1000);
    if (length != 6 || memcmp(buffer, "second", 6) != 0) _exit(3);
    if (pmReleaseReceiveBuffer(context) != 0) _exit(4);
    if (pmGetSendBuffer(context, 1, &buffer, 5) != 0) _exit(5);
    memcpy(buffer, "third", 5);
    if (pmSend(context) != 0) _exit(6);
    while (pmIsSendDone(context) == EBUSY) (void)pmWait(context, 1000);
    _exit(pmCloseDevice(context));
  }
  close(fd);
  EXPECT_EQ(ReceiveText(1).size(), 1u);
  EXPECT_EQ(ReceiveText(1), "third");
  int status = -1;
  while (waitpid(child, &status, WNOHANG) == 0) (void)pmIsSendDone(contexts_[1]);
  EXPECT_EQ(status, 0);
}

TEST_F(CApi, OnlyADetachedContextCanBeAttached) {
  ASSERT_EQ(Open(0), 0);
  pmContext* context = nullptr;
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  EXPECT_EQ(pmAttachContext("udp", ends[0], &context), EINVAL) << "nothing in it";
  ASSERT_EQ(write(ends[1], "hello", 5), 5);
  EXPECT_EQ(pmAttachContext("udp", ends[0], &context), EINVAL);
  EXPECT_EQ(pmAttachContext("udp", -1, &context), EINVAL);
  const int file = open((folder_ + "/job").c_str(), O_RDONLY);
  EXPECT_EQ(pmAttachContext("udp", file, &context), EINVAL);
  for (const int fd : {ends[0], ends[1], file}) EXPECT_EQ(close(fd), 0) << "left to the caller";

  int fd;
  ASSERT_EQ(pmDetachContext(contexts_[0], &fd), 0);
  contexts_[0] = nullptr;
  EXPECT_EQ(pmAttachContext("tcp", fd, &context), EINVAL);
  ASSERT_EQ(pmAttachContext("udp", fd, &contexts_[0]), 0);
  EXPECT_EQ(fcntl(fd, F_GETFD), -1) << "closed";
}

// Also if a thread of the parent is in a call.
TEST_F(CApi, AChildOfForkCannotUseItsParentsContext) {
  setenv("PM_WAIT", "sleep", 1);
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  unsetenv("PM_WAIT");
  pmContext* const context = contexts_[0];
  SendText(0, 1, "before");
  EXPECT_EQ(ReceiveText(1), "before");
  void* open = nullptr;
  ASSERT_EQ(pmGetSendBuffer(context, 1, &open, 6), 0);
  memcpy(open, "beside", 6);
  std::vector<std::thread> sleepers;
  std::atomic<int> ended{0};
  for (int i = 0; i < 2; ++i) {
    sleepers.emplace_back([&] {
      (void)pmWait(context, 20'000'000);
      ++ended;
    });
  }

  for (int i = 0; i < 20; ++i) {
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      alarm(20);
      void* buffer = nullptr;
      size_t length = 0;
      int number = 0;
      pmHandle handle;
      const bool refused =
          pmGetNode(context, &number, &number) == ECHILD &&
          pmGetDescriptor(context, &number) == ECHILD && pmSend(context) == ECHILD &&
          pmGetSendBuffer(context, 1, &buffer, 1) == ECHILD &&
          pmReceive(context, &buffer, &length) == ECHILD && pmIsSendDone(context) == ECHILD &&
          pmxReceive(context, &buffer, &length, &number) == ECHILD &&
          pmWait(context, 0) == ECHILD && pmBeforeSelect(context) == ECHILD &&
          pmRestartUser(context) == ECHILD && pmCheckpoint(context, nullptr, nullptr) == ECHILD &&
          pmMLock(context, 1, &number, 1, &handle) == ECHILD &&
          pmWrite(context, 1, &handle, &handle, 1) == ECHILD;
      const bool closed = pmCloseDevice(context) == 0;
      // One of its own: the other node of another job would do, here only that it gets that far.
      _exit(refused && closed && Open(0) == EADDRINUSE ? 0 : 1);
    }
    int status = -1;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(status, 0);
  }

  EXPECT_EQ(pmSend(context), 0) << "of the parent nothing changed";
  EXPECT_EQ(ReceiveText(1), "beside");
  EXPECT_EQ(Finish(0), 0);
  SendText(1, 0, "end");
  const Nanos limit = Device::Now() + 60 * kSecond;
  while (ended < 2 && Device::Now() < limit) (void)pmIsSendDone(contexts_[1]);
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(ReceiveText(0), "end");
}

}  // namespace
}  // namespace sekisho::pm
