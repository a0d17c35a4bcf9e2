// SPDX-License-Identifier: Apache-2.0
#include "common/identity/refusal.h"

#include <cstdlib>
#include <fstream>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::identity {
namespace {

using ::testing::HasSubstr;

TEST(Refusal, EveryReasonHasItsOwnNameAndARemedy) {
  std::set<std::string_view> names;
  std::set<Reason> seen;
  for (const Reason reason : AllReasons()) {
    EXPECT_TRUE(seen.insert(reason).second) << Name(reason);
    EXPECT_TRUE(names.insert(Name(reason)).second) << Name(reason);
    EXPECT_FALSE(Remedy(reason).empty());
  }
  EXPECT_EQ(seen.size(), static_cast<size_t>(Reason::kTooManyRequests) + 1);
}

TEST(Refusal, EveryReasonIsInTheDocument) {
  const char* source = std::getenv("SEKISHO_SOURCE");
  if (source == nullptr) {
    GTEST_SKIP() << "SEKISHO_SOURCE is not set";
  }
  std::ifstream file(std::string(source) + "/docs/protocol/2-identity.md");
  std::ostringstream document;
  document << file.rdbuf();

  for (const Reason reason : AllReasons()) {
    EXPECT_THAT(document.str(), HasSubstr(fmt::format("`{}`", Name(reason))));
  }
}

TEST(Refusal, ReadsAsReasonMessageAndRemedy) {
  EXPECT_EQ(ToStatus({Reason::kProxyExpired, "/CN=a expired"}),
            absl::UnauthenticatedError(
                "[proxy-expired] /CN=a expired (make a new proxy: sekisho proxy init)"));
}

}  // namespace
}  // namespace sekisho::identity
