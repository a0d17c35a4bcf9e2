// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/passage.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/identity/signed_request.h"
#include "proto/job.pb.h"
#include "tests/support/signed.h"
#include "tests/support/test_ca.h"

namespace sekisho::gatekeeper {
namespace {

using sekisho::test::MakeProxy;
using sekisho::test::TemporaryDirectory;
using sekisho::test::TestCa;
using sekisho::test::TestNow;
using std::chrono::hours;
using std::chrono::minutes;
using testing::HasSubstr;

constexpr char kGatekeeper[] = "/C=JP/O=Test/CN=host/a-dmz";
constexpr char kTaro[] = "/C=JP/O=Test/CN=Taro";

class PassageTest : public ::testing::Test {
 protected:
  PassageTest() : taro_(MakeProxy(ca_.IssueUser(kTaro))) {
    ca_.Install(directory_.path());
    signers_.emplace(*identity::TrustStore::Load(directory_.path()), identity::Purpose::kAny);
    body_.set_gatekeeper_subject(kGatekeeper);
    body_.mutable_passage()->set_world("world-0123456789abcdef0123456789abcdef");
    Date(TestNow(), TestNow() + hours(1));
  }

  void Date(identity::Time signed_at, identity::Time until) {
    const auto ms = [](identity::Time time) {
      return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
    };
    body_.set_time_ms(ms(signed_at));
    body_.mutable_passage()->set_until_ms(ms(until));
  }

  proto::SignedRequest Signed(const identity::Credential& signer) const { return test::Signed(body_, signer); }

  absl::StatusOr<identity::Identity> Judge(const proto::SignedRequest& request, identity::Time now = TestNow()) {
    return JudgePassage(request.SerializeAsString(), kGatekeeper, *signers_, now);
  }

  TemporaryDirectory directory_;
  TestCa ca_;
  identity::Credential taro_;
  std::optional<identity::JudgedChains> signers_;
  proto::RequestBody body_;
};

TEST_F(PassageTest, LetsInWhoeverSignedIt) {
  const auto identity = Judge(Signed(taro_));
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->subject, kTaro);
}

TEST_F(PassageTest, NotPastItsEnd) {
  const proto::SignedRequest passage = Signed(taro_);
  EXPECT_TRUE(Judge(passage, TestNow() + hours(1)).ok());
  const auto late = Judge(passage, TestNow() + hours(1) + minutes(1));
  EXPECT_EQ(late.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(late.status().message()), HasSubstr("has expired"));
}

constexpr hours kProxyLife(12);  // of taro_
constexpr hours kDay(24);

TEST_F(PassageTest, HoldsLongerThanTheProxyThatSignedIt) {
  Date(TestNow(), TestNow() + 7 * kDay);
  const proto::SignedRequest passage = Signed(taro_);
  EXPECT_TRUE(Judge(passage, TestNow() + kProxyLife + hours(1)).ok());
  EXPECT_TRUE(Judge(passage, TestNow() + 7 * kDay).ok());
  EXPECT_FALSE(Judge(passage, TestNow() + 7 * kDay + hours(1)).ok()) << "but not past its own end";
}

TEST_F(PassageTest, NotSignedBeforeOrAfterItsProxysTime) {
  for (const identity::Time signed_at : {TestNow() - hours(1), TestNow() + kProxyLife + hours(1)}) {
    Date(signed_at, TestNow() + 7 * kDay);
    EXPECT_FALSE(Judge(Signed(taro_), TestNow() + kProxyLife + hours(2)).ok());
  }
}

TEST_F(PassageTest, AnExpiredProxyIsGoodForNoPassageThatIsEightDaysOld) {
  Date(TestNow(), TestNow() + 365 * kDay);
  EXPECT_TRUE(Judge(Signed(taro_), TestNow() + 8 * kDay - hours(1)).ok());
  EXPECT_FALSE(Judge(Signed(taro_), TestNow() + 8 * kDay).ok());
}

TEST_F(PassageTest, NotOfWhoWasRevokedMeanwhile) {
  const identity::Credential user = ca_.IssueUser(kTaro);
  const identity::Credential proxy = MakeProxy(user);
  Date(TestNow(), TestNow() + 7 * kDay);
  const auto list = [&](const std::vector<const X509*>& revoked) {  // newer than the passage
    ca_.Install(directory_.path(), ca_.Crl(revoked, {.last_update = TestNow() + hours(2)}));
    signers_->SetTrust(*identity::TrustStore::Load(directory_.path()));
  };
  list({});
  EXPECT_TRUE(Judge(Signed(proxy), TestNow() + kDay).ok());
  list({user.chain.front().get()});
  EXPECT_FALSE(Judge(Signed(proxy), TestNow() + kDay).ok());
}

TEST_F(PassageTest, NotAtAnotherGatekeeper) {
  body_.set_gatekeeper_subject("/C=JP/O=Test/CN=host/b-dmz");
  const auto other = Judge(Signed(taro_));
  EXPECT_EQ(other.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_THAT(std::string(other.status().message()), HasSubstr("for gatekeeper /C=JP/O=Test/CN=host/b-dmz"));
}

TEST_F(PassageTest, NotOneThatWasChangedOrWhoseSignatureIsAnothers) {
  proto::SignedRequest changed = Signed(taro_);
  body_.mutable_passage()->set_world("world-ffffffffffffffffffffffffffffffff");
  changed.set_body(body_.SerializeAsString());
  EXPECT_FALSE(Judge(changed).ok());

  proto::SignedRequest borrowed = Signed(taro_);
  borrowed.set_signature(Signed(ca_.IssueUser("/C=JP/O=Test/CN=Mallory")).signature());
  EXPECT_FALSE(Judge(borrowed).ok());
}

TEST_F(PassageTest, NotOfAnAuthorityThatNobodyTrusts) {
  const TestCa stranger("/C=JP/O=Elsewhere/CN=CA");
  EXPECT_FALSE(Judge(Signed(stranger.IssueUser(kTaro))).ok());
}

TEST_F(PassageTest, AnotherRequestOfTheUserIsNoPassage) {
  body_.mutable_submit()->set_rsl("&(executable=/bin/true)");
  EXPECT_EQ(Judge(Signed(taro_)).status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(JudgePassage("\xff\xff", kGatekeeper, *signers_, TestNow()).status().code(),
            absl::StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace sekisho::gatekeeper
