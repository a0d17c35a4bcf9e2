// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/local_server.h"

#include <cerrno>
#include <cstring>
#include <thread>

#include <gtest/gtest.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kNeverMs = 3'600'000;

class PortersEar : public testing::Test {
 protected:
  ~PortersEar() override {
    for (const int fd : clients_) {
      close(fd);
    }
  }

  void Listen(uid_t owner, int64_t silent_ms = kNeverMs) {
    server_ = std::make_unique<LocalServer>(
        loop_,
        [this](const std::shared_ptr<Asker>& asker) {
          asked_.push_back(asker);
          loop_.Stop();
        },
        owner, silent_ms);
    ASSERT_TRUE(ParsePlace((server_->Place() + "203.0.113.5:7514").c_str(), place_));
  }

  int Connect() {
    sockaddr_storage address;
    const socklen_t length = AbstractAddress(place_.name, address);
    const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), length), 0);
    clients_.push_back(fd);
    return fd;
  }

  std::vector<int> ConnectOften(int count, uid_t user = geteuid()) {
    const uid_t own = geteuid();
    EXPECT_EQ(seteuid(user), 0);
    std::vector<int> all;
    for (int i = 0; i < count; ++i) {
      all.push_back(Connect());
    }
    EXPECT_EQ(seteuid(own), 0);
    prctl(PR_SET_DUMPABLE, 1);  // as before: a sanitizer looks into us at the end
    return all;
  }

  LocalRequest Question() const {
    LocalRequest request;
    request.verb = LocalVerb::kName;
    std::memcpy(request.key, place_.key, sizeof request.key);
    return request;
  }

  void Send(int fd, const LocalRequest& request) {
    ASSERT_EQ(send(fd, &request, sizeof request, 0), static_cast<ssize_t>(sizeof request));
  }

  // Until a question is handed on, or somebody stops the loop.
  void Serve() {
    const Loop::TimerId limit = loop_.After(30'000, [this] {
      ADD_FAILURE() << "nothing came within 30 s";
      loop_.Stop();
    });
    loop_.Run();
    loop_.Cancel(limit);
  }

  // All that connected before have been accepted then.
  int AskLast() {
    const int fd = Connect();
    Send(fd, Question());
    const size_t before = asked_.size();
    Serve();
    EXPECT_EQ(asked_.size(), before + 1);
    return fd;
  }

  void ServeUntilClosed(int fd) {
    loop_.Watch(fd, EPOLLIN, [this](uint32_t) { loop_.Stop(); });
    Serve();
    loop_.Forget(fd);
    EXPECT_FALSE(IsOpen(fd));
  }

  static bool IsOpen(int fd) {
    char byte;
    return recv(fd, &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  }

  Loop loop_;  // outlives all that it watches
  std::vector<std::shared_ptr<Asker>> asked_;
  std::unique_ptr<LocalServer> server_;
  LocalPlace place_;
  std::vector<int> clients_;
};

TEST_F(PortersEar, AnswersAShimThatFindsTheUserItExpects) {
  Listen(geteuid());
  LocalReply reply;
  bool is_answered = false;
  std::thread shim([&] {
    LocalRequest request = Question();
    int unused;
    is_answered = Ask(place_, request, reply, unused);
  });

  Serve();
  for (const auto& asker : asked_) {
    asker->Refuse(EACCES, "no");
  }
  asked_.clear();
  shim.join();

  EXPECT_TRUE(is_answered);
  EXPECT_STREQ(reply.text, "no");
}

TEST_F(PortersEar, IsToldNothingByAShimThatExpectsAnother) {
  Listen(geteuid() + 1);
  LocalRequest request = Question();
  LocalReply reply;
  int unused;

  EXPECT_TRUE(Ask(place_, request, reply, unused));

  EXPECT_EQ(reply.answer, LocalAnswer::kRefused);
  AskLast();
  EXPECT_EQ(asked_.size(), 1u);  // this one
}

TEST_F(PortersEar, ClosesWhoHasNotTheKeyOrDoesNotSayAllAtOnce) {
  Listen(geteuid());
  LocalRequest wrong = Question();
  wrong.key[0] ^= 1;

  const int stranger = Connect();
  Send(stranger, wrong);
  ServeUntilClosed(stranger);
  const int broken = Connect();
  ASSERT_EQ(send(broken, &wrong, 8, 0), 8);
  ServeUntilClosed(broken);

  EXPECT_TRUE(asked_.empty());
}

TEST_F(PortersEar, DropsWhoIsSilentAndWaitsForWhoHasAsked) {
  Listen(geteuid(), 200);

  const int asker = AskLast();
  ServeUntilClosed(Connect());  // it came later

  EXPECT_TRUE(IsOpen(asker));
}

TEST_F(PortersEar, AStrangersSilentConnectionsTakeThePlaceOfHisOwnOnly) {
  Listen(geteuid() + 1);  // so we are one

  const std::vector<int> silent = ConnectOften(LocalServer::kStrangersMax);
  AskLast();

  EXPECT_FALSE(IsOpen(silent[0]));  // for the one that asked
  EXPECT_TRUE(IsOpen(silent[1]));
  EXPECT_TRUE(IsOpen(silent.back()));
}

TEST_F(PortersEar, TheOwnersAreMoreThanAStrangers) {
  Listen(geteuid());

  const std::vector<int> silent = ConnectOften(2 * LocalServer::kStrangersMax);
  AskLast();

  EXPECT_TRUE(IsOpen(silent[0]));
}

TEST_F(PortersEar, StrangersOfManyUsersTakeNoPlaceOfTheOwners) {
  if (geteuid() != 0) {
    GTEST_SKIP() << "needs root, to be several users";
  }
  constexpr uid_t kUsers = LocalServer::kAllStrangersMax / LocalServer::kStrangersMax + 2;
  Listen(0);
  const int owners = Connect();
  std::vector<int> first;
  std::vector<int> last;

  for (uid_t user = 4711; user < 4711 + kUsers; ++user) {
    last = ConnectOften(LocalServer::kStrangersMax, user);
    first = first.empty() ? last : first;
    AskLast();
  }

  EXPECT_TRUE(IsOpen(owners));
  EXPECT_FALSE(IsOpen(first.back()));
  EXPECT_TRUE(IsOpen(last.front()));
}

}  // namespace
}  // namespace sekisho::nxproxy::client
