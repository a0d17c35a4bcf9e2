// SPDX-License-Identifier: Apache-2.0
#include "common/rpc_status.h"

#include <gtest/gtest.h>

namespace sekisho {
namespace {

TEST(Refusal, CodeReasonAndRemedySurviveTheWire) {
  const auto refused = Refuse(absl::StatusCode::kPermissionDenied, 7, "not mapped", "ask the\nadministrator");

  const auto received = FromGrpc(ToGrpc(refused));

  EXPECT_EQ(received.code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(GramCode(received), 7);
  EXPECT_EQ(Message(received), "not mapped");
  EXPECT_EQ(Remedy(received), "ask the\nadministrator");
}

TEST(Refusal, ACallThatWasResetForWantOfMemoryWasNotJudged) {
  using grpc::RESOURCE_EXHAUSTED;

  EXPECT_TRUE(absl::IsUnavailable(FromGrpc({RESOURCE_EXHAUSTED, "Received RST_STREAM with error code 11"})));
  EXPECT_TRUE(absl::IsUnavailable(FromGrpc({RESOURCE_EXHAUSTED, "Buffers full"})));
  EXPECT_TRUE(absl::IsResourceExhausted(FromGrpc({RESOURCE_EXHAUSTED, "Received message larger than max (5 vs. 4)"})));
  EXPECT_TRUE(absl::IsResourceExhausted(
      FromGrpc(ToGrpc(Refuse(absl::StatusCode::kResourceExhausted, 0, "Received RST_STREAM", "wait")))));
}

TEST(Refusal, APlainErrorHasNoCodeAndNoRemedy) {
  const auto received = FromGrpc(ToGrpc(absl::NotFoundError("gone")));

  EXPECT_EQ(GramCode(received), 0);
  EXPECT_EQ(Remedy(received), "");
}

}  // namespace
}  // namespace sekisho
