// SPDX-License-Identifier: Apache-2.0
#include "common/identity/job_token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using sekisho::test::TemporaryDirectory;
using sekisho::test::TestCa;
using sekisho::test::TestNow;
using std::chrono::hours;
using std::chrono::minutes;
using testing::HasSubstr;

class JobTokenTest : public testing::Test {
 protected:
  JobTokenTest() : qserver_(ca_.IssueHost("a-head")) { ca_.Install(trust_.path()); }

  absl::StatusOr<VerifiedToken> Verify(const std::string& text, Time now = TestNow()) {
    return VerifyJobToken(text, **TrustStore::Load(trust_.path()), now, hours(24));
  }

  TemporaryDirectory trust_;
  TestCa ca_;
  Credential qserver_;
  const JobToken token_{"siteA", "1f2e", "/O=Grid/CN=Alice", TestNow(), TestNow() + hours(1),
                        "8c1f"};
};

TEST_F(JobTokenTest, SaysWhatItsSignerSaid) {
  const auto verified = Verify(MintJobToken(token_, qserver_).value() + "\n");

  ASSERT_TRUE(verified.ok()) << verified.status().ToString();
  EXPECT_EQ(verified->token, token_);
  EXPECT_EQ(verified->signer.subject, "/C=JP/O=Test/CN=host/a-head");
}

TEST_F(JobTokenTest, IsRefusedAfterItsTimeBeforeItAndIfItLivesTooLong) {
  const std::string text = *MintJobToken(token_, qserver_);
  EXPECT_TRUE(Verify(text, token_.not_after + minutes(1)).ok());
  EXPECT_EQ(Verify(text, token_.not_after + minutes(2)).status().code(),
            absl::StatusCode::kDeadlineExceeded);
  EXPECT_EQ(Verify(text, TestNow() - minutes(2)).status().code(),
            absl::StatusCode::kFailedPrecondition);

  JobToken eternal = token_;
  eternal.not_after = TestNow() + hours(25);
  EXPECT_THAT(Verify(*MintJobToken(eternal, qserver_)).status().ToString(),
              HasSubstr("lives longer"));
}

TEST_F(JobTokenTest, NoByteOfItCanBeChangedAndNothingCutOff) {
  const std::string text = *MintJobToken(token_, qserver_);
  for (size_t i = 0; i + 1 < text.size();
       i += 7) {  // the last character has bits that do not count
    std::string forged = text;
    forged[i] = forged[i] == 'A' ? 'B' : 'A';
    EXPECT_FALSE(Verify(forged).ok()) << i;
    EXPECT_FALSE(Verify(text.substr(0, i)).ok()) << i;
  }
}

TEST_F(JobTokenTest, IsRefusedFromASignerThatNobodyKnows) {
  const TestCa other("/C=JP/O=Other/CN=CA");
  EXPECT_FALSE(Verify(*MintJobToken(token_, other.IssueHost("a-head"))).ok());
}

TEST_F(JobTokenTest, HoldsNoLineBreaks) {
  JobToken token = token_;
  token.owner = "/CN=x\nid=1";
  EXPECT_FALSE(MintJobToken(token, qserver_).ok());
}

TEST_F(JobTokenTest, ASignedRequestIsNoToken) {
  EXPECT_THAT(Verify("nxt1.AAAA").status().ToString(), HasSubstr("not a job token"));
}

}  // namespace
}  // namespace sekisho::identity
