// SPDX-License-Identifier: Apache-2.0
#include "qserver/offers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/identity/der_chain.h"
#include "common/identity/proxy.h"
#include "tests/support/test_ca.h"

namespace sekisho::qserver {
namespace {

using test::TestNow;

class OffersTest : public ::testing::Test {
 protected:
  OffersTest()
      : user_(ca_.IssueUser("/C=JP/O=Test/CN=Taro")), offers_(ca_.IssueUser("/C=JP/O=Test/CN=host/head")) {}

  std::vector<std::string> Certify(const proto::DelegationOffer& offer) {
    return identity::ToDerChain(*identity::AnswerDelegation(user_, offer.request(), {}, TestNow()));
  }

  test::TestCa ca_;
  identity::Credential user_;
  Offers offers_;
};

TEST_F(OffersTest, AKeyAndItsCertificateAreACredential) {
  const auto credential = offers_.Answer("a", Certify(*offers_.For("a", TestNow())), TestNow());

  ASSERT_TRUE(credential.ok()) << credential.status();
  EXPECT_EQ(EVP_PKEY_eq(X509_get0_pubkey(credential->chain.front().get()), credential->key.get()), 1);
}

TEST_F(OffersTest, WhoAsksAgainGetsTheSameUntilItIsAnswered) {
  const proto::DelegationOffer first = *offers_.For("a", TestNow());
  EXPECT_EQ(offers_.For("a", TestNow())->request(), first.request());
  EXPECT_NE(offers_.For("b", TestNow())->request(), first.request());

  offers_.Spend("a");

  EXPECT_NE(offers_.For("a", TestNow())->request(), first.request());
}

TEST_F(OffersTest, AnAnswerIsTakenOnceAndForItsOwnJob) {
  const std::vector<std::string> answer = Certify(*offers_.For("a", TestNow()));
  ASSERT_TRUE(offers_.For("b", TestNow()).ok());

  EXPECT_TRUE(absl::IsAborted(offers_.Answer("b", answer, TestNow()).status()));
  offers_.Spend("a");
  EXPECT_TRUE(absl::IsAborted(offers_.Answer("a", answer, TestNow()).status()));
}

TEST_F(OffersTest, RubbishIsRefusedAndTheOfferStands) {
  const std::vector<std::string> answer = Certify(*offers_.For("a", TestNow()));

  EXPECT_TRUE(absl::IsInvalidArgument(offers_.Answer("a", {}, TestNow()).status()));
  EXPECT_TRUE(absl::IsInvalidArgument(offers_.Answer("a", {"x"}, TestNow()).status()));
  EXPECT_TRUE(offers_.Answer("a", answer, TestNow()).ok());
}

TEST_F(OffersTest, OldOnesGo) {
  const std::vector<std::string> answer = Certify(*offers_.For("a", TestNow()));
  ASSERT_TRUE(offers_.For("b", TestNow() + identity::kOfferLife).ok());
  EXPECT_EQ(offers_.size(), 1U);

  ASSERT_TRUE(offers_.For("a", TestNow()).ok());
  EXPECT_TRUE(absl::IsAborted(offers_.Answer("a", answer, TestNow() + identity::kOfferLife).status()));
  EXPECT_EQ(offers_.size(), 1U);
}

}  // namespace
}  // namespace sekisho::qserver
