// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/session.h"

#include <cstdlib>
#include <thread>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"
#include "tests/support/test_ca.h"

namespace sekisho::nxproxy::client {
namespace {

// A relay that greets whoever comes first, and says no more.
class SessionTest : public testing::Test {
 protected:
  SessionTest() : server_(SSL_CTX_new(TLS_server_method())) {
    const identity::Credential host = ca_.IssueHost("127.0.0.1");
    EXPECT_EQ(SSL_CTX_use_certificate(server_.get(), host.chain.front().get()), 1);
    EXPECT_EQ(SSL_CTX_use_PrivateKey(server_.get(), host.key.get()), 1);
    ca_.Install(directory_.path());
    test::WriteFile(directory_.File("token"), "nxt1.any", 0600);
    setenv("X509_CERT_DIR", directory_.path().c_str(), 1);
    setenv("NXPROXY_TOKEN_FILE", directory_.File("token").c_str(), 1);

    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    relay_ = std::thread([this] { Greet(); });
  }
  ~SessionTest() override {
    shutdown(listener_, SHUT_RDWR);
    relay_.join();
    close(listener_);
    unsetenv("X509_CERT_DIR");
    unsetenv("NXPROXY_TOKEN_FILE");
  }

  void Greet() {
    const int fd = accept(listener_, nullptr, nullptr);
    const SslPtr ssl(SSL_new(server_.get()));
    SSL_set_fd(ssl.get(), fd);
    char buffer[4096];
    if (SSL_accept(ssl.get()) == 1 && SSL_read(ssl.get(), buffer, sizeof buffer) > 0) {
      wire::Message welcome;
      welcome.verb = wire::Verb::kWelcome;
      welcome.id = 1;
      welcome.version = wire::kVersion;
      welcome.session = 7;
      welcome.key = std::string(32, 'k');
      welcome.heartbeat_s = 20;
      welcome.grace_s = 60;
      const std::string bytes = wire::Encode(welcome);
      SSL_write(ssl.get(), bytes.data(), static_cast<int>(bytes.size()));
      while (SSL_read(ssl.get(), buffer, sizeof buffer) > 0) {
      }
    }
    close(fd);
  }

  const test::TestCa ca_;
  const test::TemporaryDirectory directory_;
  const ContextPtr server_;
  const int listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  std::thread relay_;
};

// As if the process had been stopped for long as it read the WELCOME: no word is recent enough.
TEST_F(SessionTest, IsUpBeforeItsConnectionIsFoundTooOld) {
  Loop loop;
  std::vector<std::string> told;
  Session::Handlers handlers;
  handlers.on_up = [&](bool) { told.push_back("up"); };
  handlers.on_down = [&](const std::string&) {
    told.push_back("down");
    loop.After(0, [&] { loop.Stop(); });
  };
  handlers.on_refused = [&](const Refusal& refusal) {
    told.push_back(ToText(refusal));
    loop.Stop();
  };
  Session session(loop, {"127.0.0.1", LocalOf(listener_).port}, nullptr, "test", -1, handlers);

  session.Start();
  loop.Run();

  EXPECT_THAT(told, testing::ElementsAre("up", "down"));
  EXPECT_FALSE(session.is_up());
}

}  // namespace
}  // namespace sekisho::nxproxy::client
