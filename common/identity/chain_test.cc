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

TEST_F(ChainTest, AProxyBelowALimitedOneIsLimitedAndStartsNoJobs) {
  ProxyShape limited;
  limited.language = "1.3.6.1.4.1.3536.1.1.1.9";
  const Verdict verdict = Judge(MakeProxy(MakeProxy(user_, limited)).chain);

  ASSERT_TRUE(std::holds_alternative<Identity>(verdict));
  const Identity& identity = std::get<Identity>(verdict);
  EXPECT_TRUE(identity.is_limited);
  EXPECT_EQ(identity.kind, CredentialKind::kLimitedProxy);
  EXPECT_TRUE(absl::IsPermissionDenied(RequireUnlimited(identity)));
  EXPECT_THAT(RequireUnlimited(identity).ToString(), HasSubstr("[limited-proxy]"));
}

TEST_F(ChainTest, AnIndependentProxySpeaksForItselfOnly) {
  ProxyShape independent;
  independent.language = "1.3.6.1.5.5.7.21.2";
  independent.common_name = "robot";
  const Verdict verdict = Judge(MakeProxy(MakeProxy(user_, independent)).chain);

  ASSERT_TRUE(std::holds_alternative<Identity>(verdict));
  const Identity& identity = std::get<Identity>(verdict);
  EXPECT_EQ(identity.subject, "/C=JP/O=Test/CN=Taro/CN=robot");
  EXPECT_EQ(identity.kind, CredentialKind::kIndependentProxy);
}

TEST_F(ChainTest, PathLengthCountsTheProxiesBelow) {
  ProxyShape one;
  one.path_length = 1;
  const Credential proxy = MakeProxy(MakeProxy(user_, one));

  EXPECT_TRUE(std::holds_alternative<Identity>(Judge(proxy.chain)));
  EXPECT_EQ(std::get<Refusal>(Judge(MakeProxy(proxy).chain)).reason, Reason::kProxyPathLength);
}

TEST_F(ChainTest, TheOrderBehindTheLeafDoesNotMatter) {
  Chain chain = MakeProxy(MakeProxy(MakeProxy(user_))).chain;
  std::swap(chain[1], chain[3]);
  chain.push_back(Share(ca_.credential().chain[0].get()));  // peers may send the root along

  EXPECT_TRUE(std::holds_alternative<Identity>(Judge(chain)));
}

TEST_F(ChainTest, TheEndIsTheEarliestInTheChain) {
  test::CertificateOptions brief;
  brief.not_after = TestNow() + std::chrono::hours(1);
  const Verdict verdict = Judge(MakeProxy(ca_.IssueUser("/C=JP/O=Test/CN=Jiro", brief)).chain);

  EXPECT_EQ(std::get<Identity>(verdict).not_after, brief.not_after);
}

TEST_F(ChainTest, TheChainFingerprintTellsChainsOfOneLeafApart) {
  const Credential proxy = MakeProxy(user_);
  const Identity a = std::get<Identity>(Judge(proxy.chain));
  const Identity b = std::get<Identity>(Judge(MakeProxy(user_).chain));

  EXPECT_NE(a.leaf_fingerprint, b.leaf_fingerprint);
  EXPECT_NE(a.chain_fingerprint, b.chain_fingerprint);
  EXPECT_EQ(a, std::get<Identity>(Judge(proxy.chain)));
}

TEST_F(ChainTest, ARequestSignedByAnotherKeyOrWithoutLimitsIsRefused) {
  JudgedChains chains(*TrustStore::Load(trust_.path()), Purpose::kAny);
  const SignedRequest good = *Sign("what I want", MakeProxy(user_));
  const auto reason = [&](const SignedRequest& request) {
    return std::get<Refusal>(JudgeRequest(request, chains, TestNow())).reason;
  };

  SignedRequest other = good;
  other.chain = Sign("what I want", MakeProxy(user_))->chain;
  EXPECT_EQ(reason(other), Reason::kRequestSignature);
  other = good;
  other.chain.clear();
  EXPECT_EQ(reason(other), Reason::kEmptyChain);
  other = good;
  other.chain[1] = "garbage";
  EXPECT_EQ(reason(other), Reason::kMalformed);
  other = good;
  other.body.resize(kBodyBytesMax + 1);
  EXPECT_EQ(reason(other), Reason::kRequestTooLarge);
  other = good;
  other.chain.resize(kChainCertificatesMax + 1, other.chain[0]);
  EXPECT_EQ(reason(other), Reason::kChainTooLong);
  EXPECT_FALSE(Sign(std::string(kBodyBytesMax + 1, 'x'), user_).ok());
}

TEST_F(ChainTest, ASignatureWithoutTheLabelIsNoRequest) {
  SignedRequest request = *Sign("what I want", user_);
  std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>> context(EVP_MD_CTX_new());
  size_t size = request.signature.size() + 16;
  request.signature.resize(size);
  EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, user_.key.get());
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(request.signature.data()), &size,
                 reinterpret_cast<const unsigned char*>(request.body.data()), request.body.size());
  request.signature.resize(size);

  JudgedChains chains(*TrustStore::Load(trust_.path()), Purpose::kAny);
  const Verdict verdict = JudgeRequest(request, chains, TestNow());
  EXPECT_EQ(std::get<Refusal>(verdict).reason, Reason::kRequestSignature);
}

TEST_F(ChainTest, VerifiesASignedRequest) {
  const Credential proxy = MakeProxy(user_);
  absl::StatusOr<SignedRequest> request = Sign("what I want", proxy);
  ASSERT_TRUE(request.ok()) << request.status();

  const auto trust = TrustStore::LoadFor(trust_.path(), proxy.chain);
  ASSERT_TRUE(trust.ok());
  JudgedChains chains(*trust, Purpose::kAny);
  const absl::StatusOr<Identity> identity = VerifyRequest(*request, chains, TestNow());
  ASSERT_TRUE(identity.ok()) << identity.status();
  EXPECT_EQ(identity->subject, "/C=JP/O=Test/CN=Taro");

  request->body[0] = 'W';  // a known chain excuses nothing
  EXPECT_THAT(VerifyRequest(*request, chains, TestNow()).status().ToString(),
              HasSubstr("[request-signature]"));
}

}  // namespace
}  // namespace sekisho::identity
