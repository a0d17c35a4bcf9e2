// SPDX-License-Identifier: Apache-2.0
// pm.h over the loopback interface: two contexts in one process.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/device.h"
#include "transport/pm/pm.h"

namespace sekisho::pm {
namespace {

// A port that was free a moment ago.
std::string FreeAddress() {
  Config config;
  Address own;
  std::unique_ptr<Device> device;
  EXPECT_FALSE(ParseAddress("127.0.0.1:0", own));
  EXPECT_FALSE(Device::Open(config, own, {}, nullptr, device));
  return "127.0.0.1:" + std::to_string(device->own_address().port);
}

class CApi : public ::testing::Test {
 protected:
  void SetUp() override {
    char name[] = "/tmp/pm_capi_XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    folder_ = name;
    std::ofstream(folder_ + "/key") << std::string(32, 'k');
    chmod((folder_ + "/key").c_str(), 0600);
    std::ofstream(folder_ + "/job")
        << "# two nodes\nkey " << folder_ << "/key\nnodes 2\ncontext 5\nnode 0 " << FreeAddress()
        << "\nnode 1 " << FreeAddress() << "\n";
  }
  void TearDown() override {
    for (pmContext* context : contexts_) {
      if (context != nullptr) pmCloseDevice(context);
    }
    unlink((folder_ + "/key").c_str());
    unlink((folder_ + "/job").c_str());
    rmdir(folder_.c_str());
  }

  int Open(int node) {
    std::string job = folder_ + "/job", number = std::to_string(node), a = "--job", b = "--node";
    char* arguments[] = {a.data(), job.data(), b.data(), number.data()};
    return pmOpenDevice("udp", 4, arguments, &contexts_[node]);
  }

  void SendText(int from, int to, const std::string& text) {
    void* buffer = nullptr;
    int error;
    while ((error = pmGetSendBuffer(contexts_[from], to, &buffer, text.size())) == ENOBUFS) {
    }
    ASSERT_EQ(error, 0);
    memcpy(buffer, text.data(), text.size());
    ASSERT_EQ(pmSend(contexts_[from]), 0);
  }

  std::string ReceiveText(int at) {
    void* buffer = nullptr;
    size_t length = 0;
    const Nanos limit = Device::Now() + 10 * kSecond;
    while (pmReceive(contexts_[at], &buffer, &length) == ENOBUFS && Device::Now() < limit) {
      // The other one's protocol needs its turn.
      if (contexts_[1 - at] != nullptr) (void)pmIsSendDone(contexts_[1 - at]);
    }
    const std::string text(static_cast<char*>(buffer), length);
    EXPECT_EQ(pmReleaseReceiveBuffer(contexts_[at]), 0);
    return text;
  }

  // What pmIsSendDone says in the end.
  int Finish(int node) {
    const Nanos limit = Device::Now() + 10 * kSecond;
    int error;
    while ((error = pmIsSendDone(contexts_[node])) == EBUSY && Device::Now() < limit) {
      if (contexts_[1 - node] != nullptr) (void)pmIsSendDone(contexts_[1 - node]);
    }
    return error;
  }

  std::string folder_;
  pmContext* contexts_[2] = {};
};

TEST_F(CApi, MessagesGoBothWays) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  int node, nodes;
  ASSERT_EQ(pmGetNode(contexts_[1], &node, &nodes), 0);
  EXPECT_EQ(node, 1);
  EXPECT_EQ(nodes, 2);

  for (int i = 0; i < 200; ++i) {
    const std::string text(static_cast<std::size_t>(1 + i * 41 % PM_MTU),
                           static_cast<char>('a' + i % 26));
    SendText(0, 1, text);
    EXPECT_EQ(ReceiveText(1), text);
    SendText(1, 0, text);
    EXPECT_EQ(ReceiveText(0), text);
  }
}

TEST_F(CApi, ACheckpointRunsItsCallbackWhileNothingIsUnderWay) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  const std::string text(5000, 'x');
  for (int i = 0; i < 10; ++i) SendText(0, 1, text);
  int saved[2] = {};
  const auto save = [](void* count) { return ++*static_cast<int*>(count) == 1 ? 0 : 5; };
  for (int i = 0; i < 100; ++i)
    EXPECT_EQ(pmCheckpoint(contexts_[0], save, &saved[0]), EBUSY) << "alone";
  EXPECT_EQ(pmRestartUser(contexts_[0]), 0) << "still running";

  const Nanos limit = Device::Now() + 10 * kSecond;
  while (saved[0] + saved[1] < 2 && Device::Now() < limit) {
    for (int node : {0, 1}) {
      if (saved[node] == 0) (void)pmCheckpoint(contexts_[node], save, &saved[node]);
      (void)pmIsSendDone(contexts_[node]);
    }
  }
  EXPECT_EQ(saved[0] + saved[1], 2);
  void* buffer;
  size_t length;
  EXPECT_EQ(pmReceive(contexts_[1], &buffer, &length), ENOBUFS) << "delivered while stopped";
  int waiting, gone;
  EXPECT_EQ(pmGetStopState(contexts_[0], &waiting, &gone), 0);
  EXPECT_EQ(waiting, 0);
  EXPECT_EQ(gone, 0);

  EXPECT_EQ(pmRestartUser(contexts_[0]), EBUSY) << "the other one still saves";
  while ((pmRestartUser(contexts_[1]) | pmRestartUser(contexts_[0])) != 0 &&
         Device::Now() < limit) {
  }
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ReceiveText(1), text);
}

TEST_F(CApi, AnswersAsTheTableSays) {
  ASSERT_EQ(Open(0), 0);
  void* buffer;
  size_t length;
  EXPECT_EQ(pmReceive(contexts_[0], &buffer, &length), ENOBUFS);
  EXPECT_EQ(pmReleaseReceiveBuffer(contexts_[0]), EIO);
  EXPECT_EQ(pmGetSendBuffer(contexts_[0], 2, &buffer, 1), EINVAL);
  EXPECT_EQ(pmGetSendBuffer(contexts_[0], 0, &buffer, 1), EINVAL) << "to oneself";
  EXPECT_EQ(pmGetSendBuffer(contexts_[0], 1, &buffer, 0), EINVAL);
  EXPECT_EQ(pmGetSendBuffer(contexts_[0], 1, &buffer, PM_MTU + 1), EINVAL);
  EXPECT_EQ(pmSend(contexts_[0]), EINVAL);
  ASSERT_EQ(pmGetSendBuffer(contexts_[0], 1, &buffer, 10), 0);
  EXPECT_EQ(pmGetSendBuffer(contexts_[0], 1, &buffer, 10), EBUSY);
  EXPECT_EQ(pmSend(contexts_[0]), 0);
  EXPECT_EQ(pmIsSendDone(contexts_[0]), EBUSY);
  int sent = 0;
  while (pmGetSendBuffer(contexts_[0], 1, &buffer, PM_MTU) == 0 && pmSend(contexts_[0]) == 0)
    ++sent;
  EXPECT_GT(sent, 10);
  EXPECT_EQ(pmGetSendBuffer(contexts_[0], 1, &buffer, PM_MTU), ENOBUFS);
}

TEST_F(CApi, RemoteMemoryAnswersAsTheTableSays) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string here(100, 'h'), there(50, 't');
  pmHandle local, remote, part;
  EXPECT_EQ(pmMLock(contexts_[0], 2, here.data(), 100, &local), EINVAL);
  EXPECT_EQ(pmMLock(contexts_[0], -2, here.data(), 100, &local), EINVAL);
  EXPECT_EQ(pmMLock(contexts_[0], 1, nullptr, 100, &local), EINVAL);
  EXPECT_EQ(pmMLock(contexts_[0], 1, here.data(), 0, &local), EINVAL);
  ASSERT_EQ(pmMLock(contexts_[0], 0, here.data(), 100, &local), 0);
  ASSERT_EQ(pmMLock(contexts_[1], 0, there.data(), 50, &remote), 0);

  EXPECT_EQ(pmSubHandle(&local, 50, 51, &part), EINVAL);
  EXPECT_EQ(pmSubHandle(&local, ~size_t{0}, 2, &part), EINVAL);
  EXPECT_EQ(pmWrite(contexts_[0], 0, &remote, &local, 50), EINVAL) << "another node's handle";
  EXPECT_EQ(pmWrite(contexts_[0], 1, &remote, &local, 51), EINVAL) << "beyond its end";
  EXPECT_EQ(pmWrite(contexts_[0], 1, &remote, &local, 0), EINVAL);
  EXPECT_EQ(pmRead(contexts_[0], 1, &remote, &remote, 10), EINVAL) << "a local one is ours";
  EXPECT_EQ(pmMUnlock(contexts_[0], &remote), EINVAL);
  EXPECT_EQ(pmIsSendDone(contexts_[0]), 0);

  ASSERT_EQ(pmRead(contexts_[0], 1, &remote, &local, 50), 0);
  EXPECT_EQ(pmMUnlock(contexts_[0], &local), EBUSY);
  EXPECT_EQ(pmIsSendDone(contexts_[0]), EBUSY);
  ASSERT_EQ(pmMUnlock(contexts_[1], &remote), 0);
  EXPECT_EQ(Finish(0), EACCES);
  EXPECT_EQ(pmIsSendDone(contexts_[0]), 0) << "said once";
  EXPECT_EQ(here, std::string(100, 'h'));
  EXPECT_EQ(pmMUnlock(contexts_[0], &local), 0);
}

// With messages in both directions, of which the writer reads none, and a buffer open at the other.
TEST_F(CApi, RemoteMemoryIsWrittenAndReadBesideMessages) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string source(3'000'000, 0), target(3'000'000, 0), back(3'000'000, 0);
  for (std::size_t i = 0; i < source.size(); ++i) source[i] = static_cast<char>(i * 31 + i / 1000);
  pmHandle local, remote, into;
  ASSERT_EQ(pmMLock(contexts_[0], 0, source.data(), source.size(), &local), 0);
  ASSERT_EQ(pmMLock(contexts_[0], 0, back.data(), back.size(), &into), 0);
  ASSERT_EQ(pmMLock(contexts_[1], 0, target.data(), target.size(), &remote), 0);

  SendText(1, 0, "before");
  ASSERT_EQ(pmWrite(contexts_[0], 1, &remote, &local, source.size()), 0);
  SendText(0, 1, "beside");
  EXPECT_EQ(ReceiveText(1), "beside") << "bulk leaves room for messages";
  EXPECT_EQ(ReceiveText(0), "before");
  EXPECT_EQ(Finish(0), 0);
  EXPECT_TRUE(target == source);

  pmHandle half_remote, half_into;
  ASSERT_EQ(pmSubHandle(&remote, 1'500'000, 1'500'000, &half_remote), 0);
  ASSERT_EQ(pmSubHandle(&into, 1'500'000, 1'500'000, &half_into), 0);
  ASSERT_EQ(pmRead(contexts_[0], 1, &half_remote, &half_into, 1'500'000), 0);
  EXPECT_EQ(Finish(0), 0);
  EXPECT_TRUE(back == std::string(1'500'000, 0) + source.substr(1'500'000));
}

TEST_F(CApi, AProcessOfTheSameHostWritesAndReadsWithOneCopy) {
  constexpr std::size_t kSize = 1'000'000;
  const pid_t parent = getpid();
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::vector<unsigned char> shared(kSize, 1);
    pmHandle handle;
    if (Open(1) != 0 || pmMLock(contexts_[1], 0, shared.data(), kSize, &handle) != 0) _exit(1);
    SendText(1, 0, std::string(reinterpret_cast<char*>(handle.opaque), sizeof handle));
    void* buffer;
    size_t length;
    while (pmReceive(contexts_[1], &buffer, &length) != 0 && getppid() == parent) {
    }
    const bool arrived = std::count(shared.begin(), shared.end(), 7) == kSize;
    _exit(arrived ? 0 : 2);
  }
  ASSERT_EQ(Open(0), 0);
  pmHandle remote, local;
  const std::string text = ReceiveText(0);
  ASSERT_EQ(text.size(), sizeof remote);
  memcpy(&remote, text.data(), sizeof remote);
  std::vector<unsigned char> own(kSize, 0);
  ASSERT_EQ(pmMLock(contexts_[0], 0, own.data(), kSize, &local), 0);

  ASSERT_EQ(pmRead(contexts_[0], 1, &remote, &local, kSize), 0);
  EXPECT_EQ(Finish(0), 0);
  EXPECT_EQ(std::count(own.begin(), own.end(), 1), kSize);
  own.assign(kSize, 7);
  ASSERT_EQ(pmWrite(contexts_[0], 1, &remote, &local, kSize), 0);
  EXPECT_EQ(Finish(0), 0);
  SendText(0, 1, "end");
  int status = -1;
  while (waitpid(child, &status, WNOHANG) == 0) (void)pmIsSendDone(contexts_[0]);
  EXPECT_EQ(status, 0);
}

TEST_F(CApi, ACheckpointWaitsForRemoteMemory) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string source(2'000'000, 's'), target(2'000'000, 't');
  pmHandle local, remote;
  ASSERT_EQ(pmMLock(contexts_[0], 0, source.data(), source.size(), &local), 0);
  ASSERT_EQ(pmMLock(contexts_[1], 0, target.data(), target.size(), &remote), 0);
  ASSERT_EQ(pmWrite(contexts_[0], 1, &remote, &local, source.size()), 0);

  bool saved[2] = {};
  const Nanos limit = Device::Now() + 10 * kSecond;
  while (!(saved[0] && saved[1]) && Device::Now() < limit) {
    for (int node : {1, 0}) {
      if (!saved[node]) saved[node] = pmCheckpoint(contexts_[node], nullptr, nullptr) == 0;
      (void)pmIsSendDone(contexts_[node]);
    }
  }
  EXPECT_TRUE(saved[0] && saved[1]);
  EXPECT_TRUE(target == source);
}

TEST_F(CApi, SeveralBuffersAreOpenAtOnce) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  pmContext* const from = contexts_[0];
  pmContext* const to = contexts_[1];
  // Rings wrap many times; sent in another order than opened, released in another than received.
  for (int round = 0; round < 40; ++round) {
    constexpr int kCount = 12;
    void* buffers[kCount];
    int sends[kCount], receives[kCount];
    for (int i = 0; i < kCount; ++i) {
      ASSERT_EQ(pmxGetSendBuffer(from, 1, &buffers[i], PM_MTU - 7, &sends[i]), 0);
      memset(buffers[i], i, PM_MTU - 7);
    }
    EXPECT_EQ(pmxIsSendDone(from, sends[0]), EINVAL) << "still open";
    for (int i = kCount - 1; i >= 0; --i) {
      const auto length = static_cast<size_t>(1 + i * 97 + round);
      ASSERT_EQ(pmxTruncateBuffer(from, sends[i], length), 0);
      EXPECT_EQ(pmxTruncateBuffer(from, sends[i], length + 1), EINVAL) << "longer";
      ASSERT_EQ(pmxSend(from, sends[i]), 0);
      EXPECT_EQ(pmxSend(from, sends[i]), EINVAL) << "twice";
    }
    const unsigned char* got[kCount];
    size_t lengths[kCount];
    for (int i = 0; i < kCount; ++i) {
      void* buffer;
      const Nanos limit = Device::Now() + 10 * kSecond;
      int error;
      while ((error = pmxReceive(to, &buffer, &lengths[i], &receives[i])) == ENOBUFS &&
             Device::Now() < limit) {
        (void)pmIsSendDone(from);
      }
      ASSERT_EQ(error, 0);
      got[i] = static_cast<unsigned char*>(buffer);
      int source = -1;
      EXPECT_EQ(pmxGetSource(to, receives[i], &source), 0);
      EXPECT_EQ(source, 0);
    }
    for (const int i : {3, 11, 0, 1, 10, 2, 5, 4, 9, 6, 8, 7}) {
      const int sent = kCount - 1 - i;
      ASSERT_EQ(lengths[i], static_cast<size_t>(1 + sent * 97 + round));
      ASSERT_EQ(std::count(got[i], got[i] + lengths[i], sent), static_cast<long>(lengths[i]));
      ASSERT_EQ(pmxReleaseReceiveBuffer(to, receives[i]), 0);
      EXPECT_EQ(pmxReleaseReceiveBuffer(to, receives[i]), EIO) << "twice";
    }
    EXPECT_EQ(Finish(0), 0);
    for (const int send : sends) {
      EXPECT_EQ(pmxIsSendDone(from, send), 0);
      EXPECT_EQ(pmxReleaseSendDesc(from, send), 0);
      EXPECT_EQ(pmxReleaseSendDesc(from, send), EINVAL) << "twice";
    }
  }
}

TEST_F(CApi, ADescriptorSaysWhenItsOwnMessageIsDone) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  void* buffer;
  int first, second;
  ASSERT_EQ(pmxGetSendBuffer(contexts_[0], 1, &buffer, 8, &first), 0);
  ASSERT_EQ(pmxSend(contexts_[0], first), 0);
  EXPECT_EQ(pmxIsSendDone(contexts_[0], first), EBUSY);
  EXPECT_EQ(Finish(0), 0);
  ASSERT_EQ(pmxGetSendBuffer(contexts_[0], 1, &buffer, 8, &second), 0);
  ASSERT_EQ(pmxSend(contexts_[0], second), 0);
  EXPECT_EQ(pmxIsSendDone(contexts_[0], first), 0);
  EXPECT_EQ(pmxIsSendDone(contexts_[0], second), EBUSY);
  EXPECT_EQ(pmIsSendDone(contexts_[0]), EBUSY);

  pmCloseDevice(contexts_[1]);
  contexts_[1] = nullptr;
  const Nanos limit = Device::Now() + 10 * kSecond;
  int error;
  while ((error = pmxIsSendDone(contexts_[0], second)) == EBUSY && Device::Now() < limit) {
  }
  EXPECT_EQ(error, EPIPE);
  EXPECT_EQ(pmxIsSendDone(contexts_[0], first), 0);
}

TEST_F(CApi, BuffersHaveALimit) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  void* buffer;
  size_t length;
  int number;
  std::vector<int> open;
  int error;
  while ((error = pmxGetSendBuffer(contexts_[0], 1, &buffer, PM_MTU, &number)) == 0) {
    open.push_back(number);
  }
  EXPECT_EQ(error, ENOBUFS) << "each has its room in the ring";
  EXPECT_GT(open.size(), 10u);
  for (const int one : open) ASSERT_EQ(pmxSend(contexts_[0], one), 0);
  for (const int one : open) ASSERT_EQ(pmxReleaseSendDesc(contexts_[0], one), 0);
  for (size_t i = 0; i < open.size(); ++i) ReceiveText(1);

  open.clear();
  while ((error = pmxGetSendBuffer(contexts_[0], 1, &buffer, 1, &number)) == 0) {
    open.push_back(number);
  }
  EXPECT_EQ(error, EBUSY);
  EXPECT_EQ(open.size(), 64u);
  for (const int one : open) ASSERT_EQ(pmxReleaseSendDesc(contexts_[0], one), 0);

  for (int i = 0; i < 257; ++i) SendText(0, 1, "x");
  open.clear();
  const Nanos limit = Device::Now() + 10 * kSecond;
  while ((error = pmxReceive(contexts_[1], &buffer, &length, &number)) != EBUSY &&
         Device::Now() < limit) {
    if (error == 0) open.push_back(number);
    (void)pmIsSendDone(contexts_[0]);
  }
  EXPECT_EQ(error, EBUSY);
  EXPECT_EQ(open.size(), 256u);
  EXPECT_EQ(pmxReleaseReceiveBuffer(contexts_[1], open[200]), 0);
  EXPECT_EQ(pmxReleaseReceiveBuffer(contexts_[1], open[0]), 0);
  EXPECT_EQ(ReceiveText(1), "x");
}

TEST_F(CApi, WhatIsOpenCanBeSent) {
  ASSERT_EQ(Open(0), 0);
  for (int i = 0; i < 10; ++i) SendText(0, 1, "x");
  void* buffer;
  int number, error;
  std::vector<int> open;
  while ((error = pmxGetSendBuffer(contexts_[0], 1, &buffer, 8, &number)) == 0) {
    open.push_back(number);
  }
  EXPECT_EQ(error, ENOBUFS);
  EXPECT_EQ(open.size(), 54u) << "a peer that was not heard yet takes 64 messages";
  for (const int one : open) EXPECT_EQ(pmxSend(contexts_[0], one), 0);
}

// Both have sent what the other does not read.
TEST_F(CApi, UnreadMessagesDoNotHoldUpRemoteMemory) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::string source(100'000, 's'), target(100'000, 't');
  pmHandle local, remote;
  ASSERT_EQ(pmMLock(contexts_[0], 0, source.data(), source.size(), &local), 0);
  ASSERT_EQ(pmMLock(contexts_[1], -1, target.data(), target.size(), &remote), 0);
  for (int i = 0; i < 20; ++i) SendText(0, 1, "forth " + std::to_string(i));
  for (int i = 0; i < 20; ++i) SendText(1, 0, "back " + std::to_string(i));

  int write, bad;
  ASSERT_EQ(pmxWrite(contexts_[0], 1, &remote, &local, source.size(), &write), 0);
  remote.opaque[9] ^= 1;  // its key
  ASSERT_EQ(pmxRead(contexts_[0], 1, &remote, &local, source.size(), &bad), 0);
  EXPECT_EQ(Finish(0), 0) << "who has a descriptor is told by it";
  EXPECT_EQ(pmxIsSendDone(contexts_[0], write), 0);
  EXPECT_EQ(pmxIsSendDone(contexts_[0], bad), EACCES);
  EXPECT_TRUE(target == source);
  for (const int one : {write, bad}) EXPECT_EQ(pmxReleaseSendDesc(contexts_[0], one), 0);

  for (int i = 0; i < 20; ++i) {
    EXPECT_EQ(ReceiveText(1), "forth " + std::to_string(i));
    EXPECT_EQ(ReceiveText(0), "back " + std::to_string(i));
  }
}

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

// Whoever calls takes what arrived from the socket, also from under one that sleeps.
TEST_F(CApi, AThreadIsWokenByWhatAnotherOneTook) {
  setenv("PM_WAIT", "sleep", 1);
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  unsetenv("PM_WAIT");
  SendText(0, 1, "first");
  EXPECT_EQ(ReceiveText(1), "first");
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
    const Nanos limit = Device::Now() + 10 * kSecond;
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
  const Nanos limit = Device::Now() + 10 * kSecond;
  while (ended < 2 && Device::Now() < limit) (void)pmIsSendDone(contexts_[1]);
  for (std::thread& sleeper : sleepers) sleeper.join();
  EXPECT_EQ(ReceiveText(0), "end");
}

TEST_F(CApi, TheDescriptorWakesUp) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  SendText(0, 1, "ping");
  int fds[2];
  for (int i = 0; i < 2; ++i) ASSERT_EQ(pmGetDescriptor(contexts_[i], &fds[i]), 0);
  void* buffer;
  size_t length;
  bool got = false;
  for (int turn = 0; turn < 100 && !got; ++turn) {
    for (pmContext* context : contexts_) ASSERT_EQ(pmBeforeSelect(context), 0);
    got = pmReceive(contexts_[1], &buffer, &length) == 0;
    pollfd waiting[2] = {{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}};
    if (!got) {
      ASSERT_GT(poll(waiting, 2, 5000), 0) << "a wake-up was lost";
    }
    for (pmContext* context : contexts_) ASSERT_EQ(pmAfterSelect(context), 0);
  }
  ASSERT_TRUE(got);
  int source = -1;
  EXPECT_EQ(pmGetSource(contexts_[1], &source), 0);
  EXPECT_EQ(source, 0);
}

TEST_F(CApi, AKeyThatOthersMayReadIsRefused) {
  chmod((folder_ + "/key").c_str(), 0640);
  EXPECT_EQ(Open(0), EACCES);
}

TEST_F(CApi, AJobFileWithAnUnknownWordIsRefused) {
  std::ofstream(folder_ + "/job", std::ios::app) << "colour blue\n";
  EXPECT_EQ(Open(0), EINVAL);
}

}  // namespace
}  // namespace sekisho::pm
