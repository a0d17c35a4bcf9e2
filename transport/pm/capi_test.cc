// SPDX-License-Identifier: Apache-2.0
// Messages, buffers, waiting, checkpoints.
#include "transport/pm/capi_test.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <sstream>
#include <string_view>
#include <thread>
#include <vector>

#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

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

  const Nanos limit = Device::Now() + 60 * kSecond;
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

TEST_F(CApi, WhatIsSentWithMoreToComeLeavesWithTheNextCall) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  const auto put = [this](unsigned char value, int (*send)(pmContext*)) {
    void* buffer;
    ASSERT_EQ(pmGetSendBuffer(contexts_[0], 1, &buffer, 1), 0);
    *static_cast<unsigned char*>(buffer) = value;
    ASSERT_EQ(send(contexts_[0]), 0);
  };
  const auto arrived = [this] {
    std::string texts;
    void* buffer;
    size_t length;
    for (const Nanos limit = Device::Now() + 20 * kMillisecond; Device::Now() < limit;) {
      if (pmReceive(contexts_[1], &buffer, &length) != 0) continue;
      texts += static_cast<const char*>(buffer)[0];
      EXPECT_EQ(pmReleaseReceiveBuffer(contexts_[1]), 0);
    }
    return texts;
  };
  put('0', pmSend);
  while (pmIsSendDone(contexts_[0]) == EBUSY) (void)arrived();
  for (const unsigned char value : {'a', 'b', 'c'}) put(value, pmSendMore);
  EXPECT_EQ(arrived(), "");
  put('d', pmSend);
  EXPECT_EQ(arrived(), "abcd");

  put('e', pmSendMore);
  void* buffer;
  size_t length;
  EXPECT_EQ(pmReceive(contexts_[0], &buffer, &length), ENOBUFS);
  EXPECT_EQ(arrived(), "e");

  // More than leaves in one piece is not held back.
  int sent = 0;
  for (; sent * PM_MTU < 64 * 1024; ++sent) {
    ASSERT_EQ(pmGetSendBuffer(contexts_[0], 1, &buffer, PM_MTU), 0);
    memset(buffer, 'x', PM_MTU);
    ASSERT_EQ(pmSendMore(contexts_[0]), 0);
  }
  EXPECT_NE(arrived(), "");
  while (pmIsSendDone(contexts_[0]) == EBUSY) (void)arrived();
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
      const Nanos limit = Device::Now() + 60 * kSecond;
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
  const Nanos limit = Device::Now() + 60 * kSecond;
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
  const Nanos limit = Device::Now() + 60 * kSecond;
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

TEST_F(CApi, WhoWaitsForTheLongestTimeThereIsWaits) {
  ASSERT_EQ(Open(0), 0);
  ASSERT_EQ(Open(1), 0);
  std::atomic<bool> begins = false, ends = false;
  int error = -1;
  std::thread waiter([&] {
    begins = true;
    error = pmWait(contexts_[1], LONG_MAX);
    ends = true;
  });
  while (!begins) std::this_thread::yield();
  SendText(0, 1, "late");
  while (!ends) (void)pmIsSendDone(contexts_[0]);
  waiter.join();
  EXPECT_EQ(error, 0);
}

TEST_F(CApi, AKeyThatOthersMayReadIsRefused) {
  chmod((folder_ + "/key").c_str(), 0640);
  EXPECT_EQ(Open(0), EACCES);
}

// Whoever asks for encryption would not notice that there is none.
TEST_F(CApi, NoContextIsOpenedWhereEncryptionIsAskedFor) {
  setenv("PM_ENCRYPT", "1", 1);
  EXPECT_EQ(Open(0), ENOTSUP);
  setenv("PM_ENCRYPT", "0", 1);
  EXPECT_EQ(Open(0), 0);
  unsetenv("PM_ENCRYPT");
}

TEST_F(CApi, ADatagramThatNoPathCarriesIsRefused) {
  for (const char* bytes : {"1199", "65508", "", "1472x", "-1", "+1472", " 1472"}) {
    setenv("PM_DATAGRAM", bytes, 1);
    EXPECT_EQ(Open(0), EINVAL) << bytes;
  }
  setenv("PM_DATAGRAM", "1472", 1);
  EXPECT_EQ(Open(0), 0);
  unsetenv("PM_DATAGRAM");
}

TEST_F(CApi, AKeepAliveThatIsNoNumberOfSecondsIsRefused) {
  for (const char* seconds : {"86401", "", "5s", "-1", "0.5"}) {
    setenv("PM_KEEPALIVE", seconds, 1);
    EXPECT_EQ(Open(0), EINVAL) << seconds;
  }
  setenv("PM_KEEPALIVE", "86400", 1);
  EXPECT_EQ(Open(0), 0);
  unsetenv("PM_KEEPALIVE");
}

// Between the two nodes: changes one byte of the first datagram with "hello" in it.
class Forger {
 public:
  explicit Forger(const std::string& own) : own_(own) {
    Address address;
    EXPECT_FALSE(ParseAddress(own.c_str(), address));
    EXPECT_FALSE(socket_.Open(address));
  }
  const std::string& address() const { return own_; }
  bool has_forged() const { return has_forged_; }

  // To `one`, and from there back to the other.
  void Forward(const Address& one) {
    std::array<char, 2048> room;
    sockaddr_in from{};
    socklen_t size = sizeof from;
    ssize_t length;
    while ((length = recvfrom(socket_.fd(), room.data(), room.size(), MSG_DONTWAIT,
                              reinterpret_cast<sockaddr*>(&from), &size)) > 0) {
      const std::string_view datagram(room.data(), static_cast<std::size_t>(length));
      const std::size_t found = datagram.find("hello");
      if (found != std::string_view::npos && !has_forged_) {
        room[found] = 'j';
        has_forged_ = true;
      }
      const bool is_back = ntohs(from.sin_port) == one.port;
      if (!is_back) other_ = from;
      from.sin_port = htons(one.port);
      (void)sendto(socket_.fd(), room.data(), datagram.size(), 0,
                   reinterpret_cast<const sockaddr*>(is_back ? &other_ : &from), sizeof from);
    }
  }

 private:
  const std::string own_;
  UdpSocket socket_;
  sockaddr_in other_{};
  bool has_forged_ = false;
};

class Authenticated : public CApi {
 protected:
  // What arrives of "hello" if somebody changes it on its way; `patience`: after that.
  std::string Arrived(const std::string& line) { return Arrived(line, line, 60 * kSecond); }
  std::string Arrived(const std::string& line, const std::string& line_of_one, Nanos patience) {
    const std::string key =
        "key " + folder_ + "/key\nnodes 2\nnode 0 " + FreeAddress() + "\nnode 1 ";
    const std::string one = FreeAddress();
    Address address_of_one;
    EXPECT_FALSE(ParseAddress(one.c_str(), address_of_one));
    std::ofstream(folder_ + "/job") << key << one << "\n" << line_of_one;
    EXPECT_EQ(Open(1), 0);
    std::ofstream(folder_ + "/job") << key << forger_.address() << "\n" << line;
    EXPECT_EQ(Open(0), 0);
    SendText(0, 1, "hello");
    void* buffer = nullptr;
    size_t length = 0;
    const Nanos begin = Device::Now();
    Nanos forged = 0;
    while (pmReceive(contexts_[1], &buffer, &length) == ENOBUFS) {
      (void)pmIsSendDone(contexts_[0]);
      forger_.Forward(address_of_one);
      const Nanos now = Device::Now();
      if (forged == 0 && forger_.has_forged()) forged = now;
      if (now > begin + 60 * kSecond || (forged != 0 && now > forged + patience)) break;
    }
    EXPECT_TRUE(forger_.has_forged());
    return std::string(static_cast<char*>(buffer), length);
  }

 private:
  Forger forger_{FreeAddress()};
};

TEST_F(Authenticated, AChangedPayloadIsDroppedAndSentAgain) { EXPECT_EQ(Arrived(""), "hello"); }

TEST_F(Authenticated, WithHeadersOnlyItIsBelieved) {
  EXPECT_EQ(Arrived("authenticate headers\n"), "jello");
}

// Or whoever is on the way could write to it.
TEST_F(Authenticated, WithHeadersOnlyThereIsNoRemoteMemory) {
  EXPECT_EQ(Arrived("authenticate headers\n"), "jello");
  char memory[64];
  pmHandle handle;
  EXPECT_EQ(pmMLock(contexts_[1], 0, memory, sizeof memory, &handle), ENOTSUP);
}

// It would believe what anybody may have changed.
TEST_F(Authenticated, WhoAuthenticatesAllHearsNobodyWhoDoesNot) {
  EXPECT_EQ(Arrived("authenticate headers\n", "authenticate all\n", kSecond / 4), "");
}

TEST_F(CApi, AuthenticateIsAllOrHeaders) {
  std::string job;
  std::ifstream in(folder_ + "/job");
  std::getline(in, job, '\0');
  for (const char* wrong :
       {"authenticate\n", "authenticate nothing\n", "authenticate all headers\n"}) {
    std::ofstream(folder_ + "/job") << job << wrong;
    EXPECT_EQ(Open(0), EINVAL) << wrong;
  }
  std::ofstream(folder_ + "/job") << job << "authenticate all\n";
  EXPECT_EQ(Open(0), 0);
}

// Of two nobody knows which was meant.
TEST_F(CApi, AJobFileThatSaysAThingTwiceIsRefused) {
  std::string job;
  std::ifstream in(folder_ + "/job");
  std::getline(in, job, '\0');
  job = job.substr(job.find('\n') + 1) + "channels 1\nauthenticate all\n";  // without its comment
  std::ofstream(folder_ + "/job") << job;
  ASSERT_EQ(Open(0), 0);
  std::istringstream lines(job);
  int words = 0;
  for (std::string line; std::getline(lines, line);) {
    ++words;
    std::ofstream(folder_ + "/job") << job << line << "\n";
    EXPECT_EQ(Open(0), EINVAL) << line;
  }
  EXPECT_EQ(words, 7);
}

TEST_F(CApi, AJobFileWithAnUnknownWordIsRefused) {
  std::ofstream(folder_ + "/job", std::ios::app) << "colour blue\n";
  EXPECT_EQ(Open(0), EINVAL);
}

}  // namespace
}  // namespace sekisho::pm
