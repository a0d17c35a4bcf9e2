// SPDX-License-Identifier: Apache-2.0
// A server with a gate, and callers whose calls begin and say nothing.
#include <memory>

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/refusal.h"
#include "common/tls/client_tls.h"
#include "common/tls/gate.h"
#include "proto/queue.grpc.pb.h"
#include "tests/support/silent_call.h"
#include "tests/support/test_ca.h"

namespace sekisho::tls {
namespace {

using identity::Credential;
using std::chrono::seconds;
using ::testing::HasSubstr;

constexpr char kMethod[] = "/sekisho.proto.Queue/Status";

// A method whose message gRPC reads by itself.
class Answer final : public proto::Queue::CallbackService {
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context, const proto::StatusRequest*,
                                   proto::StatusReply*) override {
    auto* reactor = context->DefaultReactor();
    reactor->Finish(grpc::Status::OK);
    return reactor;
  }
};

class GateTest : public ::testing::Test {
 protected:
  GateTest() {
    ca_.Install(trust_.path());
    verifier_ = std::make_unique<PeerVerifier>(*identity::TrustStore::Load(trust_.path()));
    grpc::ServerBuilder builder;
    builder.AddListeningPort(
        "127.0.0.1:0",
        GatedCredentials(ca_.IssueHost("127.0.0.1"),
                         [this](const grpc::AuthContext& peer, const CallMetadata& metadata) {
                           return Judge(peer, metadata);
                         }),
        &port_);
    builder.RegisterService(&service_);
    server_ = builder.BuildAndStart();
  }
  ~GateTest() override { server_->Shutdown(std::chrono::system_clock::now()); }

  absl::Status Judge(const grpc::AuthContext& peer, const CallMetadata& metadata) {
    if (metadata.find("word") != metadata.end()) {
      return absl::OkStatus();
    }
    ASSIGN_OR_RETURN(const identity::Identity identity, verifier_->PeerIdentity(peer, test::TestNow()));
    return identity.subject == "/C=JP/O=Test/CN=Taro"
               ? absl::OkStatus()
               : Refuse(absl::StatusCode::kPermissionDenied, 7, identity.subject + " is not Taro", "ask him");
  }

  std::shared_ptr<grpc::Channel> Dial(const Credential& credential) {
    return grpc::CreateChannel(
        "127.0.0.1:" + std::to_string(port_),
        MakeClientTls(credential, trust_.path(), {"127.0.0.1", ""}, test::TestNow).credentials);
  }

  test::TemporaryDirectory trust_;
  test::TestCa ca_;
  std::unique_ptr<PeerVerifier> verifier_;
  Answer service_;
  std::unique_ptr<grpc::Server> server_;
  int port_ = 0;
};

TEST_F(GateTest, RefusesAStrangerBeforeHeHasSaidAnything) {
  const test::TestCa other("/C=JP/O=Other/CN=CA");

  const grpc::Status status = test::CallWithoutAMessage(Dial(other.IssueUser("/C=JP/O=Test/CN=Taro")), kMethod, seconds(20));

  EXPECT_EQ(status.error_code(), grpc::UNAUTHENTICATED);
  EXPECT_THAT(status.error_message(), HasSubstr("[unknown-issuer]"));
}

TEST_F(GateTest, TellsTheRemedyInTheMessage) {
  const grpc::Status status =
      test::CallWithoutAMessage(Dial(ca_.IssueUser("/C=JP/O=Test/CN=Jiro")), kMethod, seconds(20));

  EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED);
  EXPECT_EQ(status.error_message(), "/C=JP/O=Test/CN=Jiro is not Taro (ask him)");
}

TEST_F(GateTest, LetsInWhomTheJudgeKnowsByCertificateOrByWord) {
  const auto stub = proto::Queue::NewStub(Dial(ca_.IssueUser("/C=JP/O=Test/CN=Taro")));
  grpc::ClientContext context;
  proto::StatusReply reply;
  EXPECT_TRUE(stub->Status(&context, proto::StatusRequest(), &reply).ok());

  const auto word = proto::Queue::NewStub(Dial(test::TestCa("/C=JP/O=Other/CN=CA").IssueUser("/CN=Jiro")));
  grpc::ClientContext with_word;
  with_word.AddMetadata("word", "friend");
  EXPECT_TRUE(word->Status(&with_word, proto::StatusRequest(), &reply).ok());
}

TEST_F(GateTest, WaitsForTheMessageOfWhomItKnows) {
  const grpc::Status status = test::CallWithoutAMessage(Dial(ca_.IssueUser("/C=JP/O=Test/CN=Taro")), kMethod,
                                                        std::chrono::milliseconds(300));

  EXPECT_EQ(status.error_code(), grpc::DEADLINE_EXCEEDED);
}

}  // namespace
}  // namespace sekisho::tls
