// SPDX-License-Identifier: Apache-2.0
// Whom the door lets in, what it says of him inside, and what it tells the others.
#include <gmock/gmock.h>

#include "gatekeeper/service_fixture.h"
#include "tests/support/eventually.h"

namespace sekisho::gatekeeper {
namespace {

using testing::HasSubstr;
using testing::Not;

TEST_F(GatekeeperService, ForwardsOnlyCallsOfTheJobService) {
  ClientCall call(*this, "/containerd.services.containers.v1.Containers/Create");
  call.Start();

  EXPECT_EQ(call.Read(), std::nullopt);
  const absl::Status status = FromGrpc(call.Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kUnimplemented);
}

TEST_F(GatekeeperService, SaysWhoCallsAndBelievesNoOneElse) {
  ClientCall call(*this, "/sekisho.proto.JobService/Metadata");
  call.context.AddMetadata("sekisho-subject-bin", "/CN=forged");
  call.context.AddMetadata("sekisho-limited", "forged");
  call.context.AddMetadata("sekisho-service", "jobmanager-agent-long");
  call.context.AddMetadata("x-other", "kept");
  call.Start();

  const std::string seen = call.Read().value_or("");

  EXPECT_THAT(seen, Not(HasSubstr("forged")));
  EXPECT_THAT(seen, HasSubstr("sekisho-subject-bin=/O=Grid/CN=Alice;"));
  EXPECT_THAT(seen, HasSubstr("sekisho-account=alice;"));
  EXPECT_THAT(seen, HasSubstr("sekisho-service=jobmanager-agent-long;"));
  EXPECT_THAT(seen, HasSubstr("sekisho-queue=long;"));
  EXPECT_THAT(seen, HasSubstr("sekisho-limited=0;"));
  EXPECT_THAT(seen, HasSubstr("sekisho-token=secret;"));
  EXPECT_THAT(seen, HasSubstr("sekisho-peer=127.0.0.1:"));
  EXPECT_THAT(seen, HasSubstr("x-other=kept;"));
  EXPECT_THAT(seen, HasSubstr("soon"));
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(GatekeeperService, RefusesWhomItCannotAuthenticate) {
  caller_ = absl::UnauthenticatedError("[proxy-expired] the proxy ended yesterday");
  ClientCall call(*this, "/sekisho.proto.JobService/Echo");
  call.Start();

  const absl::Status status = FromGrpc(call.Finish());

  EXPECT_EQ(status.code(), absl::StatusCode::kUnauthenticated);
  EXPECT_EQ(GramCode(status), 7);
  EXPECT_THAT(Message(status), HasSubstr("proxy-expired"));
  EXPECT_THAT(LastAudit(), HasSubstr("subject=\"\" account=\"\" service=\"\" method=\"/sekisho.proto.JobService/Echo\" "
                                     "status=UNAUTHENTICATED"));
}

TEST_F(GatekeeperService, SaysWhenTheJobManagerDoesNotStart) {
  connect_status_ = absl::UnavailableError("the jobmanager of 'alice' does not start");
  ClientCall call(*this, "/sekisho.proto.JobService/Echo");
  call.Start();

  EXPECT_EQ(call.Finish().error_message(), "the jobmanager of 'alice' does not start");
}

TEST_F(GatekeeperService, AFaultOfItsOwnLosesOneCallAlone) {
  connect_throws_ = true;
  ClientCall lost(*this, "/sekisho.proto.JobService/Echo");
  lost.Start();
  EXPECT_EQ(lost.Finish().error_code(), grpc::INTERNAL);

  connect_throws_ = false;
  ClientCall next(*this, "/sekisho.proto.JobService/Metadata");
  next.Start();
  EXPECT_THAT(next.Read().value_or(""), HasSubstr("sekisho-account=alice;"));
  EXPECT_TRUE(next.Finish().ok());
}

TEST_F(GatekeeperService, SaysWhenTheJobManagerGoesAway) {
  ClientCall call(*this, "/sekisho.proto.JobService/Crash");
  call.Start();

  const absl::Status status = FromGrpc(call.Finish());

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GramCode(status), 79);
  EXPECT_THAT(Message(status), HasSubstr("the jobmanager of 'alice' went away"));
}

TEST_F(GatekeeperService, LimitsTheCallsOfOneAddress) {
  config_.mutable_limits()->set_calls_per_peer(2);
  ClientCall first(*this, "/sekisho.proto.JobService/Echo"), second(*this, "/sekisho.proto.JobService/Echo"), third(*this, "/sekisho.proto.JobService/Echo");
  first.Start();
  ASSERT_TRUE(first.Write("a") && first.Read());
  second.Start();
  ASSERT_TRUE(second.Write("b") && second.Read());

  third.Start();

  EXPECT_EQ(third.Finish().error_code(), grpc::RESOURCE_EXHAUSTED);
  first.WritesDone();
  EXPECT_TRUE(first.Finish().ok());
  second.WritesDone();
  EXPECT_TRUE(second.Finish().ok());
}

TEST_F(GatekeeperService, HangsUpOnWhomItCannotAuthenticate) {
  caller_ = absl::UnauthenticatedError("[unknown-issuer] who is that?");
  ClientCall stranger(*this, "/sekisho.proto.JobService/Echo");
  stranger.Start();
  EXPECT_THAT(stranger.Finish().error_message(), HasSubstr("unknown-issuer"));

  EXPECT_TRUE(test::Eventually([this] { return OpenConnections() == 0; }));
}

// A proxy that ends while its calls go on: they go on.
TEST_F(GatekeeperService, DoesNotHangUpOnWhomItHasAuthenticatedBefore) {
  ClientCall first(*this, "/sekisho.proto.JobService/Echo");
  first.Start();
  ASSERT_TRUE(first.Write("a") && first.Read());
  caller_ = absl::UnauthenticatedError("[proxy-expired] a moment ago");
  ClientCall second(*this, "/sekisho.proto.JobService/Echo");
  second.Start();
  EXPECT_EQ(second.Finish().error_code(), grpc::UNAUTHENTICATED);
  EXPECT_NE(LastAudit(1), "");

  EXPECT_TRUE(first.Write("b"));
  EXPECT_EQ(first.Read(), "echo b");
}

TEST_F(GatekeeperService, ServesNobodyWhileItCannotAudit) {
  audit_status_ = absl::UnavailableError("audit log /x: No space left on device");
  ClientCall call(*this, "/sekisho.proto.JobService/Echo");
  call.Start();

  const absl::Status status = FromGrpc(call.Finish());

  EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable);
  EXPECT_EQ(GramCode(status), 47);
  EXPECT_EQ(Message(status), "the gatekeeper serves nobody while it cannot keep its audit log: "
                             "audit log /x: No space left on device");
  EXPECT_THAT(Remedy(status), HasSubstr("administrator"));
}

class CrowdedGatekeeper : public GatekeeperService {
 protected:
  CrowdedGatekeeper() { limits_.per_peer = 2; }
};

TEST_F(CrowdedGatekeeper, TellsAnAddressThatAllItsConnectionsAreInUse) {
  const auto channels = {Dial(), Dial()};
  std::vector<std::unique_ptr<ClientCall>> calls;
  for (const auto& channel : channels) {
    calls.push_back(std::make_unique<ClientCall>(channel, "/sekisho.proto.JobService/Echo"));
    calls.back()->Start();
    ASSERT_TRUE(calls.back()->Write("a") && calls.back()->Read());
  }

  ClientCall third(Dial(), "/sekisho.proto.JobService/Echo");
  third.Start();

  const absl::Status status = FromGrpc(third.Finish());
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status), "all the connections that 127.0.0.1 may have here are in use");
  EXPECT_TRUE(calls.front()->Write("b"));
  EXPECT_EQ(calls.front()->Read(), "echo b");
  EXPECT_TRUE(test::Eventually([this] { return OpenConnections() == 2; }));  // it was hung up on
}

}  // namespace
}  // namespace sekisho::gatekeeper
