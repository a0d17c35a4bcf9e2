// SPDX-License-Identifier: Apache-2.0
// A forwarded call: its messages, metadata, status, cancellation, deadline and back-pressure pass.
#include <gmock/gmock.h>

#include "gatekeeper/service_fixture.h"

namespace sekisho::gatekeeper {
namespace {

using std::chrono::milliseconds;
using testing::HasSubstr;

TEST_F(GatekeeperService, ForwardsMessagesBothWaysAndTheEndOfEach) {
  ClientCall call(*this, "/sekisho.proto.JobService/Echo");
  call.Start();

  for (int i = 0; i < 50; ++i) {
    ASSERT_TRUE(call.Write(std::to_string(i)));
    ASSERT_EQ(call.Read(), "echo " + std::to_string(i));
  }
  call.WritesDone();

  EXPECT_EQ(call.Read(), std::nullopt);
  EXPECT_TRUE(call.Finish().ok());
  EXPECT_EQ(call.context.GetServerInitialMetadata().count("x-initial"), 1u);
  const auto& trailing = call.context.GetServerTrailingMetadata();
  ASSERT_EQ(trailing.count("x-trailing-bin"), 1u);
  EXPECT_EQ(trailing.find("x-trailing-bin")->second, grpc::string_ref("\0\1", 2));
  EXPECT_THAT(LastAudit(),
              HasSubstr("subject=\"/O=Grid/CN=Alice\" account=\"alice\" service=\"jobmanager\" "
                        "method=\"/sekisho.proto.JobService/Echo\" status=OK in=90 out=340"));
}

TEST_F(GatekeeperService, PassesARefusalOnWithItsDetails) {
  ClientCall call(*this, "/sekisho.proto.JobService/Refuse");
  call.Start();

  EXPECT_EQ(call.Read(), std::nullopt);
  const absl::Status status = FromGrpc(call.Finish());

  EXPECT_EQ(status.code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GramCode(status), 37);
  EXPECT_EQ(Message(status), "no such queue");
  EXPECT_EQ(Remedy(status), "use another");
}

TEST_F(GatekeeperService, EndsTheCallWhenTheInsideEndsItThoughTheClientStillSends) {
  for (int i = 0; i < 200; ++i) {
    ClientCall call(*this, "/sekisho.proto.JobService/EarlyEnd");
    call.Start();
    call.Write(std::string(100'000, 'x'));

    EXPECT_EQ(call.Read(), std::nullopt);
    EXPECT_TRUE(call.Finish().ok());
  }
}

class GatekeeperPatience : public GatekeeperService {
 protected:
  GatekeeperPatience() { config_.mutable_limits()->set_request_s(1); }
};

TEST_F(GatekeeperPatience, EndsACallWhoseFirstMessageDoesNotCome) {
  ClientCall call(*this, "/sekisho.proto.JobService/Echo");
  call.Start();

  EXPECT_EQ(call.Read(), std::nullopt);
  const absl::Status status = FromGrpc(call.Finish());

  EXPECT_EQ(status.code(), absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Message(status), "the call's first message was not there within 1 s");
  EXPECT_THAT(Remedy(status), HasSubstr("limits.request_s"));
  EXPECT_THAT(LastAudit(), HasSubstr("status=DEADLINE_EXCEEDED"));
}

TEST_F(GatekeeperPatience, LetsACallThatHasAskedTakeItsTime) {
  ClientCall late(*this, "/sekisho.proto.JobService/Echo");
  late.Start();
  ClientCall call(*this, "/sekisho.proto.JobService/Echo");
  call.Start();
  ASSERT_TRUE(call.Write("1"));
  ASSERT_EQ(call.Read(), "echo 1");

  ASSERT_EQ(late.Read(), std::nullopt);  // that time has passed

  ASSERT_TRUE(call.Write("2"));
  EXPECT_EQ(call.Read(), "echo 2");
  call.WritesDone();
  EXPECT_EQ(call.Read(), std::nullopt);
  EXPECT_TRUE(call.Finish().ok());
}

TEST_F(GatekeeperService, CarriesACancellationInside) {
  auto cancelled = inside_.cancelled.get_future();
  ClientCall call(*this, "/sekisho.proto.JobService/Hang");
  call.Start();
  call.ReadInitialMetadata();

  call.context.TryCancel();

  EXPECT_EQ(cancelled.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(call.Finish().error_code(), grpc::CANCELLED);
}

TEST_F(GatekeeperService, CarriesADeadlineInside) {
  auto cancelled = inside_.cancelled.get_future();
  ClientCall call(*this, "/sekisho.proto.JobService/Hang");
  call.context.set_deadline(std::chrono::system_clock::now() + seconds(1));
  call.Start();
  call.ReadInitialMetadata();

  EXPECT_EQ(cancelled.wait_for(seconds(10)), std::future_status::ready);
  EXPECT_EQ(call.Finish().error_code(), grpc::DEADLINE_EXCEEDED);
}

TEST_F(GatekeeperService, HoldsTheInsideBackWhenTheClientDoesNotRead) {
  ClientCall call(*this, "/sekisho.proto.JobService/Flood");
  call.Start();
  ASSERT_TRUE(call.Read());

  // At no moment is it further ahead than what the windows hold.  That it was given the time to be, two
  // looks with the same count say; if it was merely slow, less is tried, and nothing fails for it.
  int before = -1;
  for (int i = 0; i < 100 && before != inside_.flooded && inside_.flooded < 1000; ++i) {
    before = inside_.flooded;
    std::this_thread::sleep_for(milliseconds(100));
  }

  for (int taken = 1; taken <= 2000; ++taken) {
    ASSERT_LT(inside_.flooded - taken, 1000);
    ASSERT_TRUE(call.Read());
  }
  call.context.TryCancel();
  EXPECT_EQ(call.Finish().error_code(), grpc::CANCELLED);
}

TEST_F(GatekeeperService, ServesManyCallsAtOnce) {
  std::vector<std::unique_ptr<ClientCall>> calls;
  for (int i = 0; i < 100; ++i) {
    calls.push_back(std::make_unique<ClientCall>(*this, "/sekisho.proto.JobService/Echo"));
    calls.back()->Start();
  }
  for (int round = 0; round < 5; ++round) {
    for (auto& call : calls) {
      ASSERT_TRUE(call->Write("x"));
    }
    for (auto& call : calls) {
      ASSERT_EQ(call->Read(), "echo x");
    }
  }
  for (auto& call : calls) {
    call->WritesDone();
    EXPECT_TRUE(call->Finish().ok());
  }
  EXPECT_NE(LastAudit(100), "");
}

}  // namespace
}  // namespace sekisho::gatekeeper
