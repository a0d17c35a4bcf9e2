// SPDX-License-Identifier: Apache-2.0
#include "qserver/commands.h"

#include <gtest/gtest.h>

namespace sekisho::qserver {
namespace {

constexpr std::chrono::seconds kWindow{300};
const identity::Time kStarted{std::chrono::seconds(1'000'000)};
const identity::Time kNow = kStarted + std::chrono::seconds(60);

Commands::Command Signal(const std::string& request_id, int seconds_after_start) {
  return {"/CN=Alice", request_id, "job", (1'000'000 + seconds_after_start) * int64_t{1000}, false};
}

TEST(Commands, CarriesEachOutOnce) {
  Commands commands(kWindow, kStarted);
  EXPECT_TRUE(*commands.Accept(Signal("a", 10), kNow));
  EXPECT_FALSE(*commands.Accept(Signal("a", 10), kNow));

  commands.Withdraw(Signal("a", 10));
  EXPECT_TRUE(*commands.Accept(Signal("a", 10), kNow));
}

TEST(Commands, RefusesWhatWasHeldBackWhileALaterOneWasCarriedOut) {
  Commands commands(kWindow, kStarted);
  EXPECT_TRUE(*commands.Accept(Signal("resume", 20), kNow));

  EXPECT_FALSE(commands.Accept(Signal("suspend", 10), kNow).ok());
  EXPECT_TRUE(*commands.Accept(Signal("suspend again", 20), kNow));
  Commands::Command cancel = Signal("cancel", 5);
  cancel.is_cancel = true;
  EXPECT_TRUE(*commands.Accept(cancel, kNow));
}

TEST(Commands, RefusesWhatWasSignedBeforeItsMemoryBegan) {
  Commands commands(kWindow, kStarted);

  EXPECT_TRUE(absl::IsUnavailable(commands.Accept(Signal("a", -1), kNow).status()));
  Commands::Command cancel = Signal("b", -1);
  cancel.is_cancel = true;
  EXPECT_TRUE(commands.Accept(cancel, kNow).ok());
}

TEST(Commands, OneSubjectFillsOnlyItsOwnMemory) {
  Commands commands(kWindow, kStarted);
  for (size_t i = 0; i < Commands::kPerSubject; ++i) {
    ASSERT_TRUE(commands.Accept(Signal(std::to_string(i), 10), kNow).ok());
  }

  EXPECT_FALSE(commands.Accept(Signal("more", 10), kNow).ok());
  Commands::Command other = Signal("more", 10);
  other.subject = "/CN=Bob";
  other.job_id = "his";
  EXPECT_TRUE(commands.Accept(other, kNow).ok());
  EXPECT_TRUE(commands.Accept(Signal("later", 700), kNow + 3 * kWindow).ok());
}

}  // namespace
}  // namespace sekisho::qserver
