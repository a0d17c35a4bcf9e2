// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/relay.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "tests/support/test_ca.h"

namespace sekisho::nxproxy {
namespace {

// One that has no port, and one thread for its streams.
class RelayTest : public testing::Test {
 protected:
  RelayTest() {
    const identity::Credential host = ca_.IssueHost("relay");
    ca_.Install(directory_.path());
    test::WriteFile(directory_.File("cert"), host.ChainPem());
    test::WriteFile(directory_.File("key"), host.KeyPem(), 0400);
    config_.set_listen("none");
    config_.set_ca_directory(directory_.path());
    config_.set_host_certificate(directory_.File("cert"));
    config_.set_host_key(directory_.File("key"));
    config_.set_threads(1);
    relay_ = std::make_unique<Relay>(poller_, config_, *Policy::Make(config_));
    EXPECT_TRUE(relay_->Start().ok());
  }

  // The two ends of a new stream that programs have.
  std::pair<Descriptor, Descriptor> Join() {
    int outer[2];
    int inner[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, outer), 0);
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, inner), 0);
    relay_->Join(Descriptor(outer[0]), Descriptor(inner[0]), "", nullptr);
    return {Descriptor(outer[1]), Descriptor(inner[1])};
  }

  // False: not within 20 s.
  static bool Await(const Descriptor& end, short events) {
    pollfd waits{end.get(), events, 0};
    return poll(&waits, 1, 20'000) == 1 && (waits.revents & (events | POLLHUP)) != 0;
  }

  const test::TestCa ca_;
  const test::TemporaryDirectory directory_;
  Config config_;
  Poller poller_;
  std::unique_ptr<Relay> relay_;
};

// What would be wrong is seen with a sanitizer.
TEST_F(RelayTest, EndsWhileOneStreamStandsAndAnotherHasJustEnded) {
  auto [outside, inside] = Join();
  const auto stands = Join();
  relay_->EndTurn();
  ASSERT_EQ(send(inside.get(), "x", 1, MSG_NOSIGNAL), 1);
  ASSERT_TRUE(Await(outside, POLLIN));
  outside.reset();  // unread: a reset
  ASSERT_TRUE(Await(inside, 0));
  ASSERT_EQ(relay_->streams(), 2u) << "the relay knows already";

  relay_.reset();

  EXPECT_TRUE(Await(stands.first, 0));
  EXPECT_TRUE(Await(stands.second, 0));
}

}  // namespace
}  // namespace sekisho::nxproxy
