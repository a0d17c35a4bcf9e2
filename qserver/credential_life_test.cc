// SPDX-License-Identifier: Apache-2.0
#include "qserver/credential_life.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::qserver {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;

constexpr identity::Time kNow{std::chrono::seconds(1'800'000'000)};

TEST(CredentialLife, ALongEnoughOneIsNotMentioned) {
  EXPECT_EQ(*JudgeLife(kNow + hours(2), 7200, true, TooShort::kRefuse, kNow), "");
}

TEST(CredentialLife, AShortOneIsRefusedWithBothTimes) {
  const auto judged = JudgeLife(kNow + hours(2), 7201, true, TooShort::kRefuse, kNow);

  EXPECT_EQ(judged.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_EQ(GramCode(judged.status()), 131);
  EXPECT_THAT(Message(judged.status()), HasSubstr("ends at 2027-01-15T10:00:00Z, in 2:00 h, and the job may run for 2:00 h"));
  EXPECT_THAT(Remedy(judged.status()), HasSubstr("max_wall_time"));
}

TEST(CredentialLife, TheWarningSaysWhatToDo) {
  EXPECT_THAT(*JudgeLife(kNow + hours(2), 36000, true, TooShort::kWarn, kNow), HasSubstr("sekisho proxy refresh"));
  EXPECT_THAT(*JudgeLife(kNow + hours(2), 36000, false, TooShort::kWarn, kNow), HasSubstr("goes on without"));
}

TEST(CredentialLife, NothingIsSaidOfAJobWithoutALimitOrOfASiteThatDoesNotMind) {
  EXPECT_EQ(*JudgeLife(kNow + hours(2), 0, true, TooShort::kRefuse, kNow), "");
  EXPECT_EQ(*JudgeLife(kNow + hours(2), 36000, true, TooShort::kAccept, kNow), "");
}

}  // namespace
}  // namespace sekisho::qserver
