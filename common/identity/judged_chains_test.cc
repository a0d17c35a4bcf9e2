// SPDX-License-Identifier: Apache-2.0
#include "common/identity/judged_chains.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/identity/credential.h"
#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using sekisho::test::MakeProxy;
using sekisho::test::TemporaryDirectory;
using sekisho::test::TestCa;
using sekisho::test::TestNow;
using std::chrono::hours;
using std::chrono::minutes;
using std::chrono::seconds;

class JudgedChainsTest : public ::testing::Test {
 protected:
  JudgedChainsTest() : proxy_(MakeProxy(ca_.IssueUser("/C=JP/O=Test/CN=Taro"))) {}

  // Trusts the authority, with a revocation list if one is given.
  std::shared_ptr<const TrustStore> Trust(const std::string& crl = "") {
    ca_.Install(directory_.path(), crl);
    return *TrustStore::Load(directory_.path());
  }

  bool Passes(JudgedChains& chains, Time now) {
    const auto verdict = chains.Judge(
        proxy_.ChainPem(),
        [&] {
          ++parsed_;
          return ParsePemChain(proxy_.ChainPem());
        },
        now);
    return std::holds_alternative<const JudgedChains::Judged*>(verdict);
  }

  TemporaryDirectory directory_;
  TestCa ca_;
  Credential proxy_;
  int parsed_ = 0;
};

TEST_F(JudgedChainsTest, AKnownChainIsNotParsedAgainForFiveMinutes) {
  JudgedChains chains(Trust(), Purpose::kAny);

  EXPECT_TRUE(Passes(chains, TestNow()));
  EXPECT_TRUE(Passes(chains, TestNow() + minutes(5) - seconds(1)));
  EXPECT_EQ(parsed_, 1);
  EXPECT_TRUE(Passes(chains, TestNow() + minutes(5)));
  EXPECT_EQ(parsed_, 2);
}

TEST_F(JudgedChainsTest, NotBeyondTheEndOfTheProxyNorBeforeItWasJudged) {
  JudgedChains chains(Trust(), Purpose::kAny);
  const Time end = NotAfter(*proxy_.chain.front());

  EXPECT_TRUE(Passes(chains, end - seconds(10)));
  EXPECT_FALSE(Passes(chains, end + seconds(1)));
  EXPECT_TRUE(Passes(chains, end - seconds(10)));
  EXPECT_FALSE(Passes(chains, TestNow() - hours(24)));  // a clock that was set back
}

TEST_F(JudgedChainsTest, NotBeyondTheEndOfTheRevocationList) {
  TestCa::CrlOptions brief;
  brief.next_update = TestNow() + minutes(2);
  const auto trust = Trust(ca_.Crl({}, brief));
  JudgedChains chains(trust, Purpose::kAny);

  EXPECT_TRUE(Passes(chains, TestNow()));
  EXPECT_TRUE(Passes(chains, brief.next_update - seconds(1)));
  EXPECT_FALSE(Passes(chains, brief.next_update));
}

TEST_F(JudgedChainsTest, NewAuthoritiesJudgeAnew) {
  JudgedChains chains(Trust(), Purpose::kAny);
  EXPECT_TRUE(Passes(chains, TestNow()));
  EXPECT_EQ(chains.size(), 1u);

  TemporaryDirectory elsewhere;
  TestCa("/C=JP/O=Other/CN=CA").Install(elsewhere.path());
  chains.SetTrust(*TrustStore::Load(elsewhere.path()));

  EXPECT_FALSE(Passes(chains, TestNow()));
  EXPECT_EQ(chains.size(), 0u);
}

TEST_F(JudgedChainsTest, WhatWasRefusedIsNotRemembered) {
  TemporaryDirectory elsewhere;
  TestCa("/C=JP/O=Other/CN=CA").Install(elsewhere.path());
  JudgedChains chains(*TrustStore::Load(elsewhere.path()), Purpose::kAny);

  EXPECT_FALSE(Passes(chains, TestNow()));
  EXPECT_FALSE(Passes(chains, TestNow()));
  EXPECT_EQ(parsed_, 2);
}

}  // namespace
}  // namespace sekisho::identity
