// SPDX-License-Identifier: Apache-2.0
#include "agent/rsh/outage.h"

#include <gtest/gtest.h>

namespace sekisho::agent::rsh {
namespace {

using namespace std::chrono_literals;

TEST(Outage, OnlyABrokenCallBeginsAnew) {
  for (const absl::Status& status :
       {absl::UnavailableError("Socket closed"), absl::CancelledError(), absl::OkStatus(),
        absl::UnknownError("Stream removed"), absl::InternalError("RST_STREAM")}) {
    EXPECT_TRUE(IsBreak(status)) << status;
  }
  for (const absl::Status& status :
       {absl::PermissionDeniedError(""), absl::InvalidArgumentError(""),
        absl::UnimplementedError(""), absl::ResourceExhaustedError("larger than max"),
        absl::FailedPreconditionError(""), absl::UnauthenticatedError("")}) {
    EXPECT_FALSE(IsBreak(status)) << status;
  }
}

TEST(Outage, IsToldOnceAndNotAtOnce) {
  Outage outage;
  const Outage::Clock::time_point begin;

  EXPECT_FALSE(outage.OnBreak(begin));
  EXPECT_FALSE(outage.OnBreak(begin + 4s));
  EXPECT_TRUE(outage.OnBreak(begin + 5s));
  EXPECT_FALSE(outage.OnBreak(begin + 500s));

  outage.End();
  EXPECT_FALSE(outage.OnBreak(begin + 501s));
  EXPECT_TRUE(outage.OnBreak(begin + 506s));
}

}  // namespace
}  // namespace sekisho::agent::rsh
