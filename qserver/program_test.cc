// SPDX-License-Identifier: Apache-2.0
// The program itself, over TLS: who is heard at its two ports, and who is not.
#include <filesystem>
#include <memory>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <google/protobuf/descriptor.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include "common/identity/proxy.h"
#include "common/tls/client_tls.h"
#include "proto/nodes.grpc.pb.h"
#include "proto/queue.grpc.pb.h"
#include "tests/support/byte_call.h"
#include "tests/support/eventually.h"
#include "tests/support/program.h"
#include "tests/support/silent_call.h"
#include "tests/support/test_ca.h"

namespace sekisho::qserver {
namespace {

using std::chrono::seconds;
using test::CallWithoutAMessage;
using ::testing::HasSubstr;
using Metadata = std::pair<std::string, std::string>;

constexpr char kAttach[] = "/sekisho.proto.Nodes/Attach";

class QueueServerProgram : public ::testing::Test {
 protected:
  QueueServerProgram() {
    std::filesystem::create_directory(File("certificates"));
    ca_.Install(File("certificates"));
    const identity::Credential host = ca_.IssueHost("head.example.org");
    test::WriteFile(File("hostcert.pem"), host.ChainPem());
    test::WriteFile(File("hostkey.pem"), host.KeyPem(), 0600);
    test::WriteFile(File("grid-mapfile"), "");
    test::WriteFile(File("qserver.json"), fmt::format(R"({{"site": "siteA", "listen": "127.0.0.1:0",
        "listen_nodes": "127.0.0.1:0", "host_certificate": "{0}/hostcert.pem", "host_key": "{0}/hostkey.pem",
        "ca_directory": "{0}/certificates", "grid_mapfile": "{0}/grid-mapfile", "state_directory": "{0}/state",
        "allocator": "unix:{0}/allocator", "jobmanager": ["/C=JP/O=Test/CN=jobmanager"]}})",
                                                      directory_.path()));
    program_.Start({"--config", File("qserver.json")});
    port_ = program_.NumberAfter(" port=");
    port_nodes_ = program_.NumberAfter(" port_nodes=");
  }
  void TearDown() override {
    if (HasFailure()) {
      std::fprintf(stderr, "%s", program_.Log().c_str());
    }
  }

  std::string File(const std::string& name) const { return directory_.File(name); }
  std::shared_ptr<grpc::Channel> Dial(int port, const identity::Credential& credential) const {
    grpc::ChannelArguments arguments;
    arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
    const tls::ClientTls client = tls::MakeClientTls(credential, File("certificates"), {"head.example.org", ""});
    return grpc::CreateCustomChannel(fmt::format("127.0.0.1:{}", port), client.credentials, arguments);
  }
  grpc::Status AttachSilently(const identity::Credential& credential, const Metadata& who = {}) const {
    return CallWithoutAMessage(Dial(port_nodes_, credential), kAttach, seconds(20), who);
  }

  test::TemporaryDirectory directory_;
  test::TestCa ca_;
  test::TestCa other_{"/C=JP/O=Other/CN=CA"};
  test::Program program_{"sekisho-qserver", directory_.File("log")};
  int port_ = 0;
  int port_nodes_ = 0;
};

// Every method, also those whose message gRPC would read by itself.
TEST_F(QueueServerProgram, RefusesWhoIsNoJobmanagerBeforeHeHasSaidAnything) {
  const auto* service = google::protobuf::DescriptorPool::generated_pool()->FindServiceByName("sekisho.proto.Queue");
  ASSERT_NE(service, nullptr);
  const auto stranger = Dial(port_, other_.IssueUser("/C=JP/O=Test/CN=jobmanager"));
  const auto user = Dial(port_, ca_.IssueUser("/C=JP/O=Test/CN=Alice"));

  for (int i = 0; i < service->method_count(); ++i) {
    const std::string method = "/sekisho.proto.Queue/" + service->method(i)->name();
    EXPECT_EQ(CallWithoutAMessage(stranger, method, seconds(20)).error_code(), grpc::UNAUTHENTICATED) << method;
    const grpc::Status status = CallWithoutAMessage(user, method, seconds(20));
    EXPECT_EQ(status.error_code(), grpc::PERMISSION_DENIED) << method;
    EXPECT_EQ(status.error_message(), "the caller itself is refused: /C=JP/O=Test/CN=Alice is not a jobmanager of this "
                                      "site (add its subject to \"jobmanager\" in the queue server's configuration)");
  }
}

TEST_F(QueueServerProgram, RefusesWhoIsNoNodeBeforeItHasSaidAnything) {
  const identity::Credential n1 = ca_.IssueHost("n1");

  EXPECT_EQ(AttachSilently(other_.IssueHost("n1"), {"sekisho-node", "n1"}).error_code(), grpc::UNAUTHENTICATED);
  EXPECT_EQ(AttachSilently(ca_.IssueUser("/C=JP/O=Test/CN=Alice"), {"sekisho-node", "n1"}).error_code(),
            grpc::PERMISSION_DENIED);
  EXPECT_THAT(AttachSilently(n1, {"sekisho-node", "n2"}).error_message(), HasSubstr("may not speak for node n2"));
  EXPECT_THAT(AttachSilently(n1).error_message(), HasSubstr("does not say for which node it speaks"));
  EXPECT_THAT(AttachSilently(n1, {"sekisho-pilot", "aaaaaaaaaaaaa:token"}).error_message(),
              HasSubstr("the pilot is refused"));
}

TEST_F(QueueServerProgram, HearsItsJobmanager) {
  const auto queue = proto::Queue::NewStub(Dial(port_, ca_.IssueUser("/C=JP/O=Test/CN=jobmanager")));
  grpc::ClientContext context;
  proto::StatusRequest request;
  request.add_job_id("aaaaaaaaaaaaa");
  proto::StatusReply reply;

  const grpc::Status status = queue->Status(&context, request, &reply);

  ASSERT_TRUE(status.ok()) << status.error_message();
  EXPECT_EQ(reply.job(0).state(), proto::UNKNOWN);
}

// As a DMZ host in an attacker's hands, which has its keys, could send it.
TEST_F(QueueServerProgram, RefusesAMessageOverFourMebibytesAndKeepsNothingOfIt) {
  const auto channel = Dial(port_, ca_.IssueUser("/C=JP/O=Test/CN=jobmanager"));
  test::ExpectLargeMessagesRefused(program_, channel, "/sekisho.proto.Queue/Submit");
}

// As the gatekeeper hands one out.
TEST_F(QueueServerProgram, HearsAnAccountsJobmanagerByItsProxyForThatAccountOnly) {
  const auto proxy_of = [](const identity::Credential& issuer) {
    return *identity::CreateProxy(
        issuer, {.kind = identity::CredentialKind::kIndependentProxy, .path_length = 0, .name = "alice"},
        tls::SystemClock());
  };
  const auto events = [this](const identity::Credential& credential, const std::string& account) {
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + seconds(20));
    proto::EventsRequest request;
    request.set_account(account);
    const auto stream = proto::Queue::NewStub(Dial(port_, credential))->Events(&context, request);
    proto::JobEvent first;
    return stream->Read(&first) ? grpc::Status::OK : stream->Finish();
  };
  const identity::Credential alice = proxy_of(ca_.IssueUser("/C=JP/O=Test/CN=jobmanager"));

  const grpc::Status own = events(alice, "alice");
  EXPECT_TRUE(own.ok()) << own.error_message();
  EXPECT_EQ(events(alice, "bob").error_message(), "the jobmanager of alice has nothing to do with jobs of bob");
  EXPECT_THAT(events(proxy_of(ca_.IssueUser("/C=JP/O=Test/CN=Alice")), "alice").error_message(),
              HasSubstr("/C=JP/O=Test/CN=Alice/CN=alice is not a jobmanager of this site"));
}

// Nobody else calls meanwhile: that he was refused makes it look again.
TEST_F(QueueServerProgram, KnowsAJobmanagerOfANewAuthority) {
  const auto channel = Dial(port_, other_.IssueUser("/C=JP/O=Test/CN=jobmanager"));
  const std::string method = "/sekisho.proto.Queue/Status";
  ASSERT_EQ(CallWithoutAMessage(channel, method, seconds(20)).error_code(), grpc::UNAUTHENTICATED);

  other_.Install(File("certificates"));

  EXPECT_TRUE(test::Eventually([&] {
    return CallWithoutAMessage(channel, method, std::chrono::milliseconds(500)).error_code() ==
           grpc::DEADLINE_EXCEEDED;  // it waits for what he has to say
  }));
}

}  // namespace
}  // namespace sekisho::qserver
