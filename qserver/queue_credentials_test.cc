// SPDX-License-Identifier: Apache-2.0
// Jobs whose tasks have a credential of their user.
#include "qserver/queue_fixture.h"

namespace sekisho::qserver {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr int64_t kAhead = 1'000;

class QueueCredentialsTest : public QueueTest {
 protected:
  QueueCredentialsTest() {
    Admitted admitted = Ask("j", "&(executable=/bin/true)");
    admitted.awaits_credential = admitted.has_stage_in = true;
    proto::RequestBody body;
    body.mutable_submit()->set_awaits_credential(true);
    admitted.submitted.mutable_request()->set_body(body.SerializeAsString());
    Keep(queue_->Accept(admitted, nullptr, kNow));
  }
  Effects Delegate(int64_t until_ms) {
    proto::JobEvent::Delegated delegated;
    delegated.set_until_ms(until_ms);
    return Keep(queue_->OnDelegated("j", delegated, kNow));
  }
};

TEST_F(QueueCredentialsTest, ItsStatusSaysUntilWhen) {
  EXPECT_THAT(Words(Delegate(kNow + 5'000)), ElementsAre("delegated"));
  EXPECT_EQ(Status("j").credential_until_ms(), kNow + 5'000);
  EXPECT_EQ(Status("j").state(), proto::STAGE_IN);
}

TEST_F(QueueCredentialsTest, ItsEndIsToldOnceInTimeAlsoOverARestart) {
  Delegate(kNow + 5'000);
  EXPECT_THAT(Words(queue_->TellOfEndingCredentials(kAhead, kNow + 3'999)), IsEmpty());
  EXPECT_THAT(Words(Keep(queue_->TellOfEndingCredentials(kAhead, kNow + 4'000))), ElementsAre("credential_ending"));
  EXPECT_THAT(Words(queue_->TellOfEndingCredentials(kAhead, kNow + 9'000)), IsEmpty());

  Restart();

  EXPECT_EQ(queue_->NextCredentialEnd(), std::nullopt);
}

TEST_F(QueueCredentialsTest, ARefreshedOnesEndIsToldAnew) {
  Delegate(kNow + 5'000);
  Delegate(kNow + 50'000);

  Restart();

  EXPECT_EQ(queue_->NextCredentialEnd(), kNow + 50'000);
  EXPECT_THAT(Words(queue_->TellOfEndingCredentials(kAhead, kNow + 10'000)), IsEmpty());
  EXPECT_THAT(Words(queue_->TellOfEndingCredentials(kAhead, kNow + 49'000)), ElementsAre("credential_ending"));
}

TEST_F(QueueCredentialsTest, AJobThatDidNotAskForOneOrHasEndedIsGivenNone) {
  Start("other", "&(executable=/bin/true)", {{"n1", 1}});
  EXPECT_EQ(queue_->CheckDelegate("other").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_TRUE(queue_->CheckDelegate("j").ok());

  Keep(*queue_->Cancel("j", "cancelled by its user", kNow));

  EXPECT_EQ(queue_->CheckDelegate("j").code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(Words(Delegate(kNow + 5'000)), IsEmpty());
}

TEST_F(QueueCredentialsTest, AnElementIsReferredToItsArrayMadeOrNot) {
  Admitted admitted = Ask("A", "&(executable=/bin/true)");
  admitted.awaits_credential = admitted.has_stage_in = true;
  *admitted.submitted.mutable_array()->add_range() = Range(1, 3);
  Keep(queue_->Accept(admitted, nullptr, kNow));

  EXPECT_TRUE(queue_->CheckDelegate("A").ok());
  EXPECT_THAT(queue_->CheckDelegate("A[2]").message(), testing::HasSubstr("A[2] is an element of A"));
  EXPECT_EQ(queue_->CheckDelegate("A[4]").code(), absl::StatusCode::kNotFound);
}

TEST_F(QueueCredentialsTest, OneThatIsGivenNoneInTimeFailsAndSaysSo) {
  Keep(queue_->EndUnstaged(3'600'000, kNow + 3'600'001));

  EXPECT_EQ(Status("j").state(), proto::FAILED);
  EXPECT_EQ(Status("j").gram_code(), 29);
  EXPECT_EQ(Status("j").reason(), "its user's credential did not come within 1 h");
}

TEST_F(QueueCredentialsTest, WhatAnEndedJobMayHaveLeftIsKnownAfterARestart) {
  Delegate(kNow + 5'000);
  EXPECT_THAT(queue_->LeftCredentials(kNow), IsEmpty());
  Keep(*queue_->Cancel("j", "cancelled by its user", kNow));

  Restart();

  EXPECT_THAT(queue_->LeftCredentials(kNow), ElementsAre("j"));
  EXPECT_THAT(queue_->LeftCredentials(kNow + 5'000), IsEmpty());
  EXPECT_EQ(queue_->NextCredentialEnd(), std::nullopt);
}

}  // namespace
}  // namespace sekisho::qserver
