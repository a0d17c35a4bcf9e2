// SPDX-License-Identifier: Apache-2.0
#include "common/identity/host.h"

#include <gtest/gtest.h>

#include "common/identity/chain.h"
#include "tests/support/test_ca.h"

namespace sekisho::identity {
namespace {

using test::CertificateOptions;
using test::MakeProxy;
using test::ProxyShape;
using test::TemporaryDirectory;
using test::TestCa;
using test::TestNow;

class HostTest : public ::testing::Test {
 protected:
  HostTest() { ca_.Install(trust_.path()); }

  // The reason's name, or "" if `credential` is `host`.
  std::string Check(const Credential& credential, const std::string& host) {
    const auto identity = VerifyChain(credential.chain, **TrustStore::Load(trust_.path()),
                                      TestNow(), Purpose::kServer);
    EXPECT_TRUE(identity.ok()) << identity.status();
    const std::optional<Refusal> refusal = CheckHost(credential.chain, *identity, host);
    return refusal.has_value() ? std::string(Name(refusal->reason)) : "";
  }

  Credential WithNames(const std::string& subject, const std::string& names) {
    CertificateOptions options;
    if (!names.empty()) {
      options.extensions.push_back({NID_subject_alt_name, names});
    }
    return ca_.IssueUser(subject, options);
  }

  TemporaryDirectory trust_;
  TestCa ca_;
};

TEST_F(HostTest, MatchesAlternativeNames) {
  const Credential host = WithNames("/O=X/CN=other.example.org",
                                    "DNS:gate.example.org,DNS:*.pool.example.org,IP:192.0.2.7");

  for (const std::string good :
       {"gate.example.org", "GATE.example.ORG", "a.pool.example.org", "192.0.2.7"}) {
    EXPECT_EQ(Check(host, good), "") << good;
  }
  for (const std::string bad :
       {"example.org", "a.b.pool.example.org", "pool.example.org", "192.0.2.8", "",
        "gate.example.org.evil.com", "*.pool.example.org2"}) {
    EXPECT_EQ(Check(host, bad), "wrong-host") << bad;
  }
  // The subject does not count beside alternative names.
  EXPECT_EQ(Check(host, "other.example.org"), "wrong-host");
}

TEST_F(HostTest, MatchesIPv6InAnySpelling) {
  const Credential host = WithNames("/O=X/CN=x", "IP:2001:db8::1");

  EXPECT_EQ(Check(host, "2001:db8::1"), "");
  EXPECT_EQ(Check(host, "2001:0db8:0:0::1"), "");
  EXPECT_EQ(Check(host, "2001:db8::2"), "wrong-host");
}

TEST_F(HostTest, FallsBackToTheSubjectWithoutAlternativeNames) {
  EXPECT_EQ(Check(WithNames("/O=X/CN=gate.example.org", ""), "gate.example.org"), "");
  EXPECT_EQ(Check(WithNames("/O=X/CN=host/gate.example.org", ""), "Gate.example.org"), "");
  EXPECT_EQ(Check(WithNames("/O=X/CN=ldap/gate.example.org", ""), "gate.example.org"),
            "wrong-host");
  EXPECT_EQ(Check(WithNames("/O=X/CN=*.example.org", ""), "gate.example.org"), "wrong-host");
  EXPECT_EQ(Check(WithNames("/O=X/CN=gate.example.org/CN=Taro", ""), "gate.example.org"),
            "wrong-host");
  EXPECT_EQ(Check(WithNames("/O=gate.example.org", ""), "gate.example.org"), "wrong-host");
}

TEST_F(HostTest, AnEmailAddressIsNoHostName) {
  EXPECT_EQ(
      Check(WithNames("/O=X/CN=gate.example.org", "email:a@gate.example.org"), "gate.example.org"),
      "");
}

TEST_F(HostTest, AHostsProxySpeaksForItUnlessIndependent) {
  const Credential host = ca_.IssueHost("gate.example.org");
  ProxyShape independent;
  independent.language = "1.3.6.1.5.5.7.21.2";

  EXPECT_EQ(Check(MakeProxy(host), "gate.example.org"), "");
  EXPECT_EQ(Check(MakeProxy(host, independent), "gate.example.org"), "wrong-host");
}

TEST_F(HostTest, AUserIsNoHost) {
  // A user may be named like a host in a proxy's own CN; that one never counts.
  ProxyShape shape;
  shape.common_name = "host/gate.example.org";
  EXPECT_EQ(Check(MakeProxy(WithNames("/O=X/CN=Taro", ""), shape), "gate.example.org"),
            "wrong-host");
}

TEST(Subject, IsComparedInNormalForm) {
  Identity identity;
  identity.subject = "/O=X/CN=host/a/emailAddress=a@b";

  EXPECT_FALSE(CheckSubject(identity, "/O=X/CN=host/a/Email=a@b").has_value());
  EXPECT_EQ(CheckSubject(identity, "/O=X/CN=host/a")->reason, Reason::kWrongSubject);
}

}  // namespace
}  // namespace sekisho::identity
