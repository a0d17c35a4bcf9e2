// SPDX-License-Identifier: Apache-2.0
#include "common/acceptor.h"

#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <array>
#include <cstdlib>
#include <memory>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <grpcpp/grpcpp.h>

#include "proto/nodes.grpc.pb.h"

namespace sekisho {
namespace {

constexpr char kPreface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";

// A gRPC server without services on a Unix socket.
class AcceptorTest : public testing::Test {
 protected:
  void Serve(Admission::Limits limits) {
    ASSERT_NE(mkdtemp(directory_), nullptr);
    acceptor_ = std::make_unique<Acceptor>(loop_, limits, /*expect_tls=*/false);
    ASSERT_TRUE(acceptor_->Listen("unix:" + Path()).ok());
    grpc::ServerBuilder builder;
    auto door = builder.experimental().AddExternalConnectionAcceptor(
        grpc::ServerBuilder::experimental_type::ExternalConnectionType::FROM_FD,
        grpc::InsecureServerCredentials());
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
    acceptor_->Run(std::move(door));
    thread_ = std::thread([this] { loop_.run(); });
  }
  void TearDown() override {
    server_->Shutdown(std::chrono::system_clock::now());
    loop_.stop();
    thread_.join();
    acceptor_.reset();
    unlink(Path().c_str());
    rmdir(directory_);
  }

  std::string Path() const { return std::string(directory_) + "/socket"; }

  int Connect() const {
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    Path().copy(name.sun_path, sizeof name.sun_path - 1);
    const int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&name), sizeof name), 0);
    return fd;
  }
  // Says hello; true: the server answered, false: it hung up.
  static bool IsServed(int fd) {
    [[maybe_unused]] const ssize_t n = send(fd, kPreface, sizeof kPreface - 1, MSG_NOSIGNAL);
    return Answers(fd);
  }
  static bool Answers(int fd) {
    char byte = 0;
    return recv(fd, &byte, 1, 0) == 1;
  }

  char directory_[32] = "/tmp/sekisho-acceptor.XXXXXX";
  proto::Nodes::CallbackService service_;
  Loop loop_{1};
  std::unique_ptr<Acceptor> acceptor_;
  std::unique_ptr<grpc::Server> server_;
  std::thread thread_;
};

TEST_F(AcceptorTest, AnAccountHasSoManyConnectionsAndNoMore) {
  Serve({.per_peer = 2});
  const int first = Connect();
  const int second = Connect();
  ASSERT_TRUE(IsServed(first));
  ASSERT_TRUE(IsServed(second));

  const int third = Connect();
  EXPECT_FALSE(IsServed(third));
  close(third);

  close(first);
  bool is_served = false;
  for (int i = 0; i < 200 && !is_served; ++i) {  // the end of the first must have been seen
    const int again = Connect();
    is_served = IsServed(again);
    close(again);
  }
  EXPECT_TRUE(is_served);
  close(second);
}

TEST_F(AcceptorTest, WhoSaysNothingIsHungUpOn) {
  Serve({.per_peer = 2, .handshake = std::chrono::milliseconds(50)});
  const int silent = Connect();
  EXPECT_FALSE(Answers(silent));
  close(silent);
}

TEST_F(AcceptorTest, WhoHasSpokenIsNotHungUpOn) {
  Serve({.per_peer = 2, .handshake = std::chrono::milliseconds(50)});
  const int talker = Connect();
  ASSERT_TRUE(IsServed(talker));
  const int silent = Connect();
  EXPECT_FALSE(Answers(silent));  // the limit has passed
  char bytes[256];
  while (recv(talker, bytes, sizeof bytes, MSG_DONTWAIT) > 0) {
  }
  EXPECT_EQ(errno, EAGAIN);  // open still
  close(silent);
  close(talker);
}

class Nobody final : public grpc::experimental::ExternalConnectionAcceptor {
 public:
  void HandleNewConnection(NewConnectionParameters* /*parameters*/) override {}
};

TEST(Acceptor, IsNotTouchedByItsDeadlineOnceItHasGone) {
  Loop loop(1);
  alignas(Acceptor) std::array<unsigned char, sizeof(Acceptor)> place;
  auto* const acceptor = new (place.data()) Acceptor(loop, {});
  ASSERT_TRUE(acceptor->Listen("127.0.0.1:0").ok());
  acceptor->Run(std::make_unique<Nobody>());
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(acceptor->port());
  const int silent = socket(AF_INET, SOCK_STREAM, 0);
  ASSERT_EQ(connect(silent, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
  while (acceptor->admission().unfinished() == 0) {
    loop.run_one();
  }

  std::destroy_at(acceptor);
  place.fill(0xff);
  loop.run();

  EXPECT_THAT(place, testing::Each(0xff));
  close(silent);
}

}  // namespace
}  // namespace sekisho
