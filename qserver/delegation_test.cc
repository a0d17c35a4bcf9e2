// SPDX-License-Identifier: Apache-2.0
#include "qserver/delegation.h"

#include "common/identity/chain.h"
#include "common/identity/der_chain.h"
#include "common/identity/proxy.h"
#include "qserver/errors.h"
#include "qserver/queue_fixture.h"
#include "tests/support/test_ca.h"

namespace sekisho::qserver {
namespace {

using test::TestNow;
using ::testing::HasSubstr;

constexpr char kTaro[] = "/C=JP/O=Test/CN=Taro";
constexpr char kHanako[] = "/C=JP/O=Test/CN=Hanako";

class JudgeDelegateTest : public QueueTest {
 protected:
  JudgeDelegateTest()
      : taro_(ca_.IssueUser(kTaro)), hanako_(ca_.IssueUser(kHanako)), offers_(ca_.IssueUser("/C=JP/O=Test/CN=host/head")) {
    ca_.Install(trusted_.path());
    Submit("j", true);
  }

  void Submit(const std::string& job_id, bool awaits_credential) {
    Admitted admitted = Ask(job_id, "&(executable=/bin/true)");
    admitted.submitted.set_subject(kTaro);
    admitted.awaits_credential = admitted.has_stage_in = awaits_credential;
    proto::RequestBody body;
    body.mutable_submit()->set_awaits_credential(awaits_credential);
    admitted.submitted.mutable_request()->set_body(body.SerializeAsString());
    Keep(queue_->Accept(admitted, nullptr, kNow));
  }

  // As `signer` answers the job's offer.
  Verified Answer(const identity::Credential& signer, const std::string& job_id = "j",
                  const identity::ProxyOptions& options = {}) {
    const proto::DelegationOffer offer = *offers_.For(job_id, TestNow());
    Verified verified;
    verified.identity.subject = kTaro;
    verified.body.set_time_ms(TestNow().time_since_epoch().count() * 1000);
    verified.body.mutable_delegate()->set_job_id(job_id);
    for (std::string& der : identity::ToDerChain(*identity::AnswerDelegation(signer, offer.request(), options, TestNow()))) {
      verified.body.mutable_delegate()->add_chain(std::move(der));
    }
    return verified;
  }

  absl::StatusOr<Delegated> Judge(const Verified& verified, identity::Time now = TestNow()) {
    const auto trust = *identity::TrustStore::Load(trusted_.path());
    const auto judge_chain = [&](const identity::Chain& chain) { return identity::VerifyChain(chain, *trust, now); };
    return JudgeDelegate(verified, {*queue_, offers_, rules_, judge_chain}, now);
  }
  absl::Status Refusal(const Verified& verified, identity::Time now = TestNow()) { return Judge(verified, now).status(); }

  test::TemporaryDirectory trusted_;
  test::TestCa ca_;
  identity::Credential taro_;
  identity::Credential hanako_;
  Offers offers_;
  AdmissionRules rules_;
};

TEST_F(JudgeDelegateTest, ItsOwnersAnswerIsTheJobsCredential) {
  identity::ProxyOptions limited;
  limited.kind = identity::CredentialKind::kLimitedProxy;
  limited.life = std::chrono::hours(3);

  const absl::StatusOr<Delegated> delegated = Judge(Answer(taro_, "j", limited));

  ASSERT_TRUE(delegated.ok()) << delegated.status();
  EXPECT_TRUE(delegated->event.is_limited());
  EXPECT_EQ(delegated->event.until_ms() / 1000, (TestNow() + std::chrono::hours(3)).time_since_epoch().count());
  EXPECT_EQ(EVP_PKEY_eq(X509_get0_pubkey(delegated->credential.chain.front().get()), delegated->credential.key.get()), 1);
}

TEST_F(JudgeDelegateTest, ToAnotherSubjectThereIsNoSuchJob) {
  Verified verified = Answer(taro_);
  verified.identity.subject = kHanako;

  EXPECT_EQ(Refusal(verified), errors::NoSuchJob("j"));
}

TEST_F(JudgeDelegateTest, CertificatesOfAnotherSubjectAreRefused) {
  EXPECT_TRUE(absl::IsPermissionDenied(Refusal(Answer(hanako_)))) << Refusal(Answer(hanako_));
  EXPECT_THAT(Refusal(Answer(hanako_)).message(), HasSubstr(kHanako));
}

TEST_F(JudgeDelegateTest, CertificatesOfAnUnknownAuthorityAreRefused) {
  const test::TestCa other("/C=JP/O=Other/CN=CA");

  EXPECT_TRUE(absl::IsInvalidArgument(Refusal(Answer(other.IssueUser(kTaro)))));
}

TEST_F(JudgeDelegateTest, AnOldRequestIsRefused) {
  const Verified verified = Answer(taro_);

  EXPECT_TRUE(Judge(verified, TestNow() + rules_.freshness).ok());
  EXPECT_FALSE(Judge(verified, TestNow() + rules_.freshness + std::chrono::seconds(1)).ok());
}

TEST_F(JudgeDelegateTest, AnAnswerForAnotherJobsKeyIsRefused) {
  Submit("other", true);
  Verified verified = Answer(taro_, "other");
  ASSERT_TRUE(offers_.For("j", TestNow()).ok());
  verified.body.mutable_delegate()->set_job_id("j");

  EXPECT_TRUE(absl::IsAborted(Refusal(verified))) << Refusal(verified);
}

TEST_F(JudgeDelegateTest, AJobThatAskedForNoneOrHasEndedIsGivenNone) {
  Submit("plain", false);
  EXPECT_TRUE(absl::IsFailedPrecondition(Refusal(Answer(taro_, "plain"))));

  const Verified verified = Answer(taro_);
  Keep(*queue_->Cancel("j", "cancelled by its user", kNow));

  EXPECT_TRUE(absl::IsFailedPrecondition(Refusal(verified)));
}

}  // namespace
}  // namespace sekisho::qserver
