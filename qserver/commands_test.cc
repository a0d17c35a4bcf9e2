// SPDX-License-Identifier: Apache-2.0
#include "qserver/commands.h"

#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

constexpr std::chrono::seconds kWindow{300};
const identity::Time kStarted{std::chrono::seconds(1'000'000)};
const identity::Time kNow = kStarted + std::chrono::seconds(60);

Commands::Request Signed(const std::string& id, int seconds_after_start) {
  return {"/CN=Alice", id, (1'000'000 + seconds_after_start) * int64_t{1000}};
}

TEST(Commands, CarriesEachOutOnce) {
  Commands commands(kWindow, kStarted);
  EXPECT_TRUE(*commands.Accept(Signed("a", 10), "job", kNow));
  EXPECT_FALSE(*commands.Accept(Signed("a", 10), "job", kNow));

  commands.Withdraw(Signed("a", 10), "job");
  EXPECT_TRUE(*commands.Accept(Signed("a", 10), "job", kNow));
}

TEST(Commands, RefusesWhatWasHeldBackWhileALaterOneWasCarriedOut) {
  Commands commands(kWindow, kStarted);
  EXPECT_TRUE(*commands.Accept(Signed("resume", 20), "job", kNow));

  EXPECT_FALSE(commands.Accept(Signed("suspend", 10), "job", kNow).ok());
  EXPECT_TRUE(*commands.Accept(Signed("suspend again", 20), "job", kNow));
}

TEST(Commands, AnswersTheRepeatOfOneThatALaterOneFollowed) {
  Commands commands(kWindow, kStarted);
  EXPECT_TRUE(*commands.Accept(Signed("suspend", 10), "job", kNow));
  EXPECT_TRUE(*commands.Accept(Signed("resume", 10), "job", kNow));

  EXPECT_FALSE(*commands.Accept(Signed("suspend", 10), "job", kNow));
}

TEST(Commands, OfManyJobsARepeatCarriesOutWhatWasNot) {
  Commands commands(kWindow, kStarted);
  Commands::Request request = Signed("many", 10);
  ASSERT_TRUE(commands.Take(request, kNow).ok());
  EXPECT_TRUE(*commands.Begin(request, "job 1"));
  EXPECT_TRUE(*commands.Begin(request, "job 2"));
  commands.Withdraw(request, "job 2");

  Commands::Request again = Signed("many", 10);
  ASSERT_TRUE(commands.Take(again, kNow).ok());
  EXPECT_FALSE(*commands.Begin(again, "job 1"));
  EXPECT_TRUE(*commands.Begin(again, "job 2"));
  EXPECT_TRUE(*commands.Begin(again, "job 3"));
}

// As where the host's clock was ahead when the daemon began.
TEST(Commands, AfterTheClockIsSetBackWhatIsSignedFromThenOnIsTaken) {
  const auto ahead = std::chrono::hours(9);
  Commands commands(kWindow, kStarted + ahead);
  EXPECT_FALSE(commands.Accept(Signed("a", 59), "job", kNow).ok());

  EXPECT_TRUE(commands.Accept(Signed("b", 61), "job", kNow + std::chrono::seconds(2)).ok());
}

// What was taken meanwhile is remembered by the clock of then.
TEST(Commands, AClockThatWentAheadAndBackMakesNothingNewAgain) {
  Commands commands(kWindow, kStarted);
  EXPECT_TRUE(*commands.Accept(Signed("resume", 50), "job", kNow));
  commands.Withdraw(Signed("resume", 50), "job");
  EXPECT_TRUE(*commands.Accept(Signed("other", 3600), "another job", kStarted + std::chrono::seconds(3600)));

  EXPECT_FALSE(commands.Accept(Signed("resume", 50), "job", kNow).ok());
}

TEST(Commands, RefusesWhatWasSignedBeforeItsMemoryBegan) {
  Commands commands(kWindow, kStarted);

  EXPECT_TRUE(absl::IsUnavailable(commands.Accept(Signed("a", -1), "job", kNow).status()));
}

TEST(Commands, OneSubjectFillsOnlyItsOwnMemoryAndAboutManyJobsOnlyOnce) {
  Commands commands(kWindow, kStarted);
  Commands::Request many = Signed("many", 10);
  ASSERT_TRUE(commands.Take(many, kNow).ok());
  for (int i = 0; i < 10'000; ++i) {
    ASSERT_TRUE(*commands.Begin(many, std::to_string(i)));
  }
  for (size_t i = 1; i < Commands::kPerSubject; ++i) {
    ASSERT_TRUE(commands.Accept(Signed(std::to_string(i), 10), "job", kNow).ok());
  }

  EXPECT_FALSE(commands.Accept(Signed("more", 10), "job", kNow).ok());
  Commands::Request other = Signed("more", 10);
  other.subject = "/CN=Bob";
  EXPECT_TRUE(commands.Accept(other, "his", kNow).ok());
  EXPECT_TRUE(commands.Accept(Signed("later", 700), "job", kNow + 3 * kWindow).ok());
}

}  // namespace
}  // namespace sekisho::qserver
