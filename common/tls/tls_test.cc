// SPDX-License-Identifier: Apache-2.0
// Real handshakes in one process: a client with a proxy, a server with a host certificate.
#include <future>
#include <memory>
#include <thread>

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <grpcpp/create_channel_posix.h>
#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include "common/tls/client_tls.h"
#include "common/tls/link.h"
#include "common/tls/peer_verifier.h"
#include "tests/support/test_ca.h"

namespace sekisho::tls {
namespace {

using identity::Credential;
using identity::Identity;
using sekisho::test::MakeProxy;
using sekisho::test::ProxyShape;
using sekisho::test::TemporaryDirectory;
using sekisho::test::TestCa;
using sekisho::test::TestNow;
using ::testing::HasSubstr;

identity::Time TestClock() { return TestNow(); }

// Answers every method with the caller's subject, or with why he has none.
class WhoAmI final : public grpc::CallbackGenericService {
 public:
  explicit WhoAmI(std::shared_ptr<const identity::TrustStore> trust) : trust_(std::move(trust)) {}

  grpc::ServerGenericBidiReactor* CreateReactor(
      grpc::GenericCallbackServerContext* context) override {
    PeerVerifier verifier(trust_);
    const absl::StatusOr<Identity> peer =
        verifier.PeerIdentity(*context->auth_context(), TestNow());
    struct Reactor final : grpc::ServerGenericBidiReactor {
      void OnDone() override { delete this; }
    };
    auto* reactor = new Reactor;
    const auto message = peer.status().message();
    reactor->Finish(peer.ok() ? grpc::Status(grpc::StatusCode::ALREADY_EXISTS, peer->subject)
                              : grpc::Status(grpc::StatusCode::UNAUTHENTICATED,
                                             std::string(message.data(), message.size())));
    return reactor;
  }

 private:
  const std::shared_ptr<const identity::TrustStore> trust_;
};

class TlsTest : public ::testing::Test {
 protected:
  TlsTest() : user_(ca_.IssueUser("/C=JP/O=Test/CN=Taro")) { ca_.Install(trust_.path()); }
  ~TlsTest() override {
    if (server_ != nullptr) {
      server_->Shutdown(std::chrono::system_clock::now());
    }
  }

  void Serve(const Credential& host) {
    if (server_ != nullptr) {
      server_->Shutdown();
    }
    service_ = std::make_unique<WhoAmI>(*identity::TrustStore::Load(trust_.path()));
    grpc::ServerBuilder builder;
    builder.AddListeningPort("127.0.0.1:0", ServerCredentials(host), &port_);
    builder.RegisterCallbackGenericService(service_.get());
    server_ = builder.BuildAndStart();
    ASSERT_NE(server_, nullptr);
  }

  // An address, so that no resolver takes part; whom the client means is said apart.
  std::string Target() const { return "127.0.0.1:" + std::to_string(port_); }

  // One call; the server answers ALREADY_EXISTS with the subject.
  grpc::Status Call(std::shared_ptr<grpc::ChannelCredentials> credentials) {
    return CallOn(grpc::CreateChannel(Target(), std::move(credentials)));
  }
  grpc::Status CallOn(std::shared_ptr<grpc::Channel> channel) {
    grpc::GenericStub stub(std::move(channel));
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(20));
    const grpc::Slice nothing;
    grpc::ByteBuffer request(&nothing, 1);
    grpc::ByteBuffer reply;
    std::promise<grpc::Status> done;
    stub.UnaryCall(&context, "/any/method", grpc::StubOptions(), &request, &reply,
                   [&](grpc::Status status) { done.set_value(std::move(status)); });
    return done.get_future().get();
  }

  ClientTls Client(const Credential& credential,
                   const ExpectedServer& expected = {"localhost", ""}) {
    return MakeClientTls(credential, trust_.path(), expected, TestClock);
  }

  TemporaryDirectory trust_;
  TestCa ca_;
  Credential user_;
  std::unique_ptr<WhoAmI> service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(TlsTest, AProxyReachesAHostByName) {
  Serve(ca_.IssueHost("localhost"));
  const ClientTls client = Client(MakeProxy(MakeProxy(user_)));

  const grpc::Status status = Call(client.credentials);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::ALREADY_EXISTS) << status.error_message();
  EXPECT_EQ(status.error_message(), "/C=JP/O=Test/CN=Taro");
  ASSERT_TRUE(client.server->Get().ok());
  EXPECT_EQ(client.server->Get()->subject, "/C=JP/O=Test/CN=host/localhost");
}

TEST_F(TlsTest, WithoutANameTheTargetItselfIsExpected) {
  Serve(ca_.IssueHost("127.0.0.1"));

  EXPECT_EQ(Call(Client(MakeProxy(user_), ExpectedServer()).credentials).error_message(),
            "/C=JP/O=Test/CN=Taro");

  Serve(ca_.IssueHost("192.0.2.7"));
  const ClientTls client = Client(MakeProxy(user_), ExpectedServer());
  Call(client.credentials);
  EXPECT_THAT(client.server->Get().status().ToString(), HasSubstr("[wrong-host]"));
}

TEST_F(TlsTest, AProxyReachesAHostBySubject) {
  Serve(ca_.IssueHost("elsewhere.example.org"));
  const std::string subject = "/C=JP/O=Test/CN=host/elsewhere.example.org";

  const grpc::Status status = Call(Client(MakeProxy(user_), {"", subject}).credentials);

  EXPECT_EQ(status.error_message(), "/C=JP/O=Test/CN=Taro");
}

TEST_F(TlsTest, TheClientRefusesAnotherHost) {
  Serve(ca_.IssueHost("elsewhere.example.org"));
  const ClientTls client = Client(MakeProxy(user_));

  const grpc::Status status = Call(client.credentials);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(client.server->Get().status().ToString(), HasSubstr("[wrong-host]"));
}

TEST_F(TlsTest, TheClientRefusesAnotherSubject) {
  Serve(ca_.IssueHost("localhost"));
  const ClientTls client = Client(MakeProxy(user_), {"", "/C=JP/O=Test/CN=host/other"});

  EXPECT_EQ(Call(client.credentials).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(client.server->Get().status().ToString(), HasSubstr("[wrong-subject]"));
}

TEST_F(TlsTest, TheClientRefusesAHostOfAnUnknownAuthority) {
  Serve(TestCa("/C=JP/O=Other/CN=CA").IssueHost("localhost"));
  const ClientTls client = Client(MakeProxy(user_));

  EXPECT_EQ(Call(client.credentials).error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_THAT(client.server->Get().status().ToString(), HasSubstr("[unknown-issuer]"));
}

TEST_F(TlsTest, TheServerRefusesAUserOfAnUnknownAuthority) {
  Serve(ca_.IssueHost("localhost"));
  const Credential stranger = TestCa("/C=JP/O=Other/CN=CA").IssueUser("/C=JP/O=Test/CN=Taro");

  const grpc::Status status = Call(Client(MakeProxy(stranger)).credentials);

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("[unknown-issuer]"));
}

TEST_F(TlsTest, TheServerRefusesAnExpiredProxy) {
  Serve(ca_.IssueHost("localhost"));
  ProxyShape shape;
  shape.not_after = TestNow() - std::chrono::seconds(1);

  const grpc::Status status = Call(Client(MakeProxy(user_, shape)).credentials);

  EXPECT_THAT(status.error_message(), HasSubstr("[proxy-expired]"));
}

TEST_F(TlsTest, TheServerServesNobodyWithoutACertificate) {
  Serve(ca_.IssueHost("127.0.0.1"));

  grpc::SslCredentialsOptions anonymous;
  anonymous.pem_root_certs = identity::ToPem(ca_.certificate());
  const grpc::Status status = Call(grpc::SslCredentials(anonymous));

  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

// The same server, with TLS of our own under gRPC; its loop runs on a thread, as a command's would.
class LinkTest : public TlsTest {
 protected:
  ~LinkTest() override {
    loop_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
  }

  int Connect() const {
    const int fd = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(static_cast<uint16_t>(port_));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    EXPECT_EQ(connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }

  static Link::CredentialSource From(const Credential& credential) {
    return [&credential] { return &credential; };
  }

  absl::Status Open(const Credential& credential, const ExpectedServer& expected = {"localhost", ""}) {
    auto link = Link::Open(loop_, Connect(), From(credential), trust_.path(), expected,
                           std::chrono::steady_clock::now() + std::chrono::seconds(10), TestClock);
    if (link.ok()) {
      link_ = *std::move(link);
      thread_ = std::thread([this] { loop_.run(); });
    }
    return link.status();
  }

  std::shared_ptr<grpc::Channel> Channel() {
    return grpc::CreateInsecureChannelFromFd("gatekeeper", link_->TakePlainEnd());
  }

  Loop loop_;
  std::unique_ptr<Link> link_;
  std::thread thread_;
};

TEST_F(LinkTest, CarriesCallsOfAUserToAHost) {
  Serve(ca_.IssueHost("localhost"));

  ASSERT_EQ(Open(MakeProxy(MakeProxy(user_))), absl::OkStatus());

  EXPECT_EQ(link_->server().subject, "/C=JP/O=Test/CN=host/localhost");
  const auto channel = Channel();
  EXPECT_EQ(CallOn(channel).error_message(), "/C=JP/O=Test/CN=Taro");
  EXPECT_EQ(CallOn(channel).error_code(), grpc::StatusCode::ALREADY_EXISTS);
}

TEST_F(LinkTest, RefusesAnotherHostByNameAndBySubject) {
  Serve(ca_.IssueHost("elsewhere.example.org"));

  EXPECT_THAT(Open(MakeProxy(user_)).ToString(), HasSubstr("[wrong-host]"));
  EXPECT_THAT(Open(MakeProxy(user_), {"", "/C=JP/O=Test/CN=host/other"}).ToString(),
              HasSubstr("[wrong-subject]"));
  EXPECT_EQ(Open(MakeProxy(user_), {"", "/C=JP/O=Test/CN=host/elsewhere.example.org"}), absl::OkStatus());
}

TEST_F(LinkTest, RefusesAHostOfAnUnknownAuthority) {
  Serve(TestCa("/C=JP/O=Other/CN=CA").IssueHost("localhost"));

  EXPECT_THAT(Open(MakeProxy(user_)).ToString(), HasSubstr("[unknown-issuer]"));
}

TEST_F(LinkTest, TheServersVerdictArrivesByTheCall) {
  Serve(ca_.IssueHost("localhost"));
  const Credential stranger = TestCa("/C=JP/O=Other/CN=CA").IssueUser("/C=JP/O=Test/CN=Taro");

  ASSERT_EQ(Open(MakeProxy(stranger)), absl::OkStatus());

  EXPECT_THAT(CallOn(Channel()).error_message(), HasSubstr("[unknown-issuer]"));
}

TEST_F(LinkTest, ASilentServerIsUnavailableInTime) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);

  const Credential proxy = MakeProxy(user_);
  const auto link = Link::Open(loop_, ends[0], From(proxy), trust_.path(), {"localhost", ""},
                               std::chrono::steady_clock::now() + std::chrono::milliseconds(20), TestClock);

  EXPECT_EQ(link.status().code(), absl::StatusCode::kUnavailable);
  close(ends[1]);
}

TEST_F(LinkTest, ACredentialThatCannotBeReadEndsItInItsOwnWords) {
  Serve(ca_.IssueHost("localhost"));

  const auto link = Link::Open(
      loop_, Connect(), [] { return absl::NotFoundError("no proxy"); }, trust_.path(), {"localhost", ""},
      std::chrono::steady_clock::now() + std::chrono::seconds(10), TestClock);

  EXPECT_EQ(link.status(), absl::NotFoundError("no proxy"));
}

TEST_F(LinkTest, CallsFailWhenTheConnectionBreaks) {
  Serve(ca_.IssueHost("localhost"));
  ASSERT_EQ(Open(MakeProxy(user_)), absl::OkStatus());
  const auto channel = Channel();
  ASSERT_EQ(CallOn(channel).error_code(), grpc::StatusCode::ALREADY_EXISTS);

  server_->Shutdown();

  EXPECT_EQ(CallOn(channel).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST(PeerVerifier, RemembersForSomeMinutesAndForgetsOnReload) {
  TemporaryDirectory directory;
  TestCa ca;
  ca.Install(directory.path());
  const Credential proxy = MakeProxy(ca.IssueUser("/C=JP/O=Test/CN=Taro"));
  const std::string leaf = identity::ToPem(*proxy.chain[0]);
  const std::string rest = identity::ToPem(*proxy.chain[1]);
  PeerVerifier verifier(*identity::TrustStore::Load(directory.path()));

  ASSERT_TRUE(verifier.Verify(leaf, rest, TestNow()).ok());
  EXPECT_EQ(verifier.remembered(), 1u);
  // Past the proxy's end, what is remembered does not count.
  EXPECT_FALSE(verifier.Verify(leaf, rest, TestNow() + std::chrono::hours(13)).ok());

  ASSERT_TRUE(verifier.Verify(leaf, rest, TestNow()).ok());
  ca.Install(directory.path(), ca.Crl({proxy.chain[1].get()}));
  verifier.SetTrust(*identity::TrustStore::Load(directory.path()));
  EXPECT_THAT(verifier.Verify(leaf, rest, TestNow()).status().ToString(), HasSubstr("[revoked]"));
}

}  // namespace
}  // namespace sekisho::tls
