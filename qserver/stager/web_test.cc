// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/web.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::qserver::stager {
namespace {

using ::testing::HasSubstr;

TEST(Web, AsksNoAddressOfTheMachineItself) {
  for (const char* ip : {"127.0.0.1", "127.8.8.8", "0.0.0.0", "169.254.169.254", "224.0.0.1", "::1", "::", "fe80::1",
                         "::ffff:127.0.0.1", "ff02::1", "no address"}) {
    EXPECT_FALSE(IsFetchable(ip)) << ip;
  }
  for (const char* ip : {"10.0.0.2", "192.168.1.1", "8.8.8.8", "2001:db8::1", "::ffff:10.0.0.2"}) {
    EXPECT_TRUE(IsFetchable(ip)) << ip;
  }
}

TEST(Web, RefusesForGoodWhatNeverCanBeFetched) {
  const auto nothing = [](std::string_view) { return absl::OkStatus(); };

  for (const char* url : {"http://127.0.0.1:1/x", "http://[::1]:1/x", "http://localhost:1/x", "ftp://10.0.0.1/x",
                          "file:///etc/passwd", "http://"}) {
    EXPECT_EQ(FetchUrl(url, 0, nothing).code(), absl::StatusCode::kInvalidArgument) << url;
  }
  EXPECT_THAT(FetchUrl("http://127.0.0.1:1/x", 0, nothing).ToString(), HasSubstr("127.0.0.1 is an address of this"));
}

TEST(Web, SendsNothingToTheMachineItself) {
  int asked = 0;
  const auto next = [&]() -> absl::StatusOr<std::string> { return ++asked == 1 ? "x" : ""; };

  const absl::Status refused = SendToUrl("http://127.0.0.1:1/x", 0, 1, next);

  EXPECT_EQ(refused.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(refused.ToString(), HasSubstr("127.0.0.1 is an address of this"));
  EXPECT_EQ(SendToUrl("ftp://10.0.0.1/x", 0, 1, next).code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(asked, 0);
}

}  // namespace
}  // namespace sekisho::qserver::stager
