// SPDX-License-Identifier: Apache-2.0
#include "common/identity/chain.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/identity/host.h"
#include "common/identity/signed_request.h"
#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using sekisho::test::MakeProxy;
using sekisho::test::ProxyShape;
using sekisho::test::TemporaryDirectory;
using sekisho::test::TestCa;
using sekisho::test::TestNow;
using ::testing::HasSubstr;

// A site's authority, a user of it, and the trust directory that a verifier reads.
class ChainTest : public ::testing::Test {
 protected:
  ChainTest() : user_(ca_.IssueUser("/C=JP/O=Test/CN=Taro")) { ca_.Install(trust_.path()); }

  Verdict Judge(const Chain& chain, Purpose purpose = Purpose::kClient) {
    return JudgeChain(chain, **TrustStore::Load(trust_.path()), TestNow(), purpose);
  }

  TemporaryDirectory trust_;
  TestCa ca_;
  Credential user_;
};

TEST_F(ChainTest, TakesAnEndEntity) {
  const Verdict verdict = Judge(user_.chain);

  ASSERT_TRUE(std::holds_alternative<Identity>(verdict)) << std::get<Refusal>(verdict).message;
  const Identity& identity = std::get<Identity>(verdict);
  EXPECT_EQ(identity.subject, "/C=JP/O=Test/CN=Taro");
  EXPECT_EQ(identity.issuer, "/C=JP/O=Test/CN=CA");
  EXPECT_EQ(identity.kind, CredentialKind::kEndEntity);
  EXPECT_FALSE(identity.is_limited);
  EXPECT_EQ(identity.leaf_fingerprint.size(), 64u);
}

TEST_F(ChainTest, TakesProxiesOfProxies) {
  const Credential proxy = MakeProxy(MakeProxy(user_));

  const Verdict verdict = Judge(proxy.chain);

  ASSERT_TRUE(std::holds_alternative<Identity>(verdict)) << std::get<Refusal>(verdict).message;
  const Identity& identity = std::get<Identity>(verdict);
  EXPECT_EQ(identity.subject, "/C=JP/O=Test/CN=Taro");
  EXPECT_EQ(identity.leaf_subject, "/C=JP/O=Test/CN=Taro/CN=12345/CN=12345");
  EXPECT_EQ(identity.kind, CredentialKind::kFullProxy);
  EXPECT_EQ(identity.proxy_count, 2);
  EXPECT_EQ(identity.not_after, TestNow() + std::chrono::hours(12));
}

TEST_F(ChainTest, VerifiesASignedRequest) {
  const Credential proxy = MakeProxy(user_);
  absl::StatusOr<SignedRequest> request = Sign("what I want", proxy);
  ASSERT_TRUE(request.ok()) << request.status();

  const auto trust = TrustStore::LoadFor(trust_.path(), proxy.chain);
  ASSERT_TRUE(trust.ok());
  const absl::StatusOr<Identity> identity = VerifyRequest(*request, **trust, TestNow());
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->subject, "/C=JP/O=Test/CN=Taro");

  request->body[0] = 'W';
  EXPECT_THAT(VerifyRequest(*request, **trust, TestNow()).status().ToString(),
              HasSubstr("[request-signature]"));
}

}  // namespace
}  // namespace sekisho::identity
