// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nxproxy/ticket_window.h"

namespace sekisho::nxproxy {
namespace {

using testing::HasSubstr;
using testing::SizeIs;

const Caller kAlice{.owner = "/O=Grid/CN=Alice"};

wire::Address At(const char* text) { return wire::ParseAddress(text).value(); }

Config Sample() {
  Config config;
  auto& policy = *config.mutable_policy();
  auto& bind = *policy.add_public_bind();
  bind.add_subject("/O=Grid/CN=Al*");
  bind.set_ports("20000-20009");
  auto& out = *policy.add_connect_out();
  out.add_subject("*");
  out.add_network("198.51.100.0/24");
  out.add_network("127.0.0.0/8");
  out.set_ports("80");
  auto& issuer = *policy.add_token_issuer();
  issuer.set_subject("/O=Grid/CN=host/a-head");
  issuer.set_site("siteA");
  return config;
}

std::string RuleOf(const MaybeRefusal& refusal) { return refusal ? refusal->rule : "allowed"; }

TEST(NxproxyPolicy, NobodyBindsPublicPortsUnlessTheRuleNamesHim) {
  const Policy policy = *Policy::Make(Sample());
  std::vector<Ports> ports;

  EXPECT_EQ(RuleOf(policy.PublicPorts({.owner = "/O=Grid/CN=Bob"}, 0, 0, ports)), "public-bind");
  EXPECT_EQ(RuleOf(policy.PublicPorts(kAlice, 0, 0, ports)), "allowed");
  ASSERT_THAT(ports, SizeIs(1));
  EXPECT_EQ(ports[0].first, 20000);
  EXPECT_EQ(ports[0].last, 20009);
}

TEST(NxproxyPolicy, PortsOutsideTheRangeAreRefusedAndARangeOfOneIsLegal) {
  const Policy policy = *Policy::Make(Sample());
  std::vector<Ports> ports;

  EXPECT_EQ(RuleOf(policy.PublicPorts(kAlice, 22, 0, ports)), "port-range");
  EXPECT_THAT(policy.PublicPorts(kAlice, 22, 25, ports)->words, HasSubstr("20000-20009"));
  EXPECT_EQ(RuleOf(policy.PublicPorts(kAlice, 20003, 20003, ports)), "allowed");
  EXPECT_EQ(ports.back().first, ports.back().last);
}

TEST(NxproxyPolicy, ConnectsNowhereButWhereItIsAllowed) {
  const Policy policy = *Policy::Make(Sample());
  const std::vector<wire::Address> own = {At("198.51.100.1:1")};

  EXPECT_EQ(RuleOf(policy.ConnectOut(kAlice, At("198.51.100.7:80"), own)), "allowed");
  EXPECT_EQ(RuleOf(policy.ConnectOut(kAlice, At("198.51.100.7:25"), own)), "connect-out");
  EXPECT_EQ(RuleOf(policy.ConnectOut(kAlice, At("192.0.2.1:80"), own)), "connect-out");
}

TEST(NxproxyPolicy, ItsOwnAndSpecialAddressesAreNeverTargetsWhateverTheRulesSay) {
  const Policy policy = *Policy::Make(Sample());
  const std::vector<wire::Address> own = {At("198.51.100.1:1")};

  for (const char* target : {"127.0.0.1:80", "169.254.169.254:80", "0.0.0.0:80", "224.0.0.1:80",
                             "255.255.255.255:80", "[::1]:80", "[::]:80", "[fe80::1]:80",
                             "[ff02::1]:80", "[::ffff:127.0.0.1]:80", "198.51.100.1:80"}) {
    EXPECT_EQ(RuleOf(policy.ConnectOut(kAlice, At(target), own)), "own-loopback") << target;
  }
}

TEST(NxproxyPolicy, WhatIsInsideIsReachedByEndpointsOnlyFromElsewhere) {
  Config config;
  config.set_site("siteA");
  config.mutable_policy()->add_inside("10.1.0.0/16");
  const Policy policy = Policy::Make(config).value();
  const wire::Address inside = *wire::ParseAddress("10.1.0.11:6379");
  const wire::Address near = *wire::ParseAddress("10.1.3.4:40000");
  const wire::Address far = *wire::ParseAddress("198.51.100.7:40000");
  EXPECT_TRUE(policy.IsInside(inside, far, ""));
  EXPECT_TRUE(policy.IsInside(inside, far, "siteB"));
  EXPECT_TRUE(policy.IsInside(inside, near, "siteB")) << "the same private addresses, at another site";
  EXPECT_FALSE(policy.IsInside(inside, near, ""));
  EXPECT_FALSE(policy.IsInside(inside, far, "siteA")) << "behind an address translation";
  EXPECT_FALSE(policy.IsInside(*wire::ParseAddress("10.2.0.11:6379"), far, ""));

  config.mutable_policy()->add_inside("10.1");
  EXPECT_FALSE(Policy::Make(config).ok());
}

TEST(NxproxyPolicy, ATokenIssuerSpeaksForItsOwnSiteOnly) {
  const Policy policy = *Policy::Make(Sample());

  EXPECT_EQ(RuleOf(policy.AcceptIssuer("/O=Grid/CN=host/a-head", "siteA")), "allowed");
  EXPECT_EQ(RuleOf(policy.AcceptIssuer("/O=Grid/CN=host/a-head", "siteB")), "token-site");
  EXPECT_EQ(RuleOf(policy.AcceptIssuer("/O=Grid/CN=Alice", "siteA")), "token-site");
}

TEST(NxproxyPolicy, AWorldSharesAcrossSitesWithinItsOwner) {
  const Caller at_a{.owner = "/CN=Alice", .job = "world-1", .site = "siteA"};
  const Caller at_b{.owner = "/CN=Alice", .job = "world-1", .site = "siteB"};
  const Caller of_bob{.owner = "/CN=Bob", .job = "world-1", .site = "siteB"};
  const Caller another{.owner = "/CN=Alice", .job = "world-2", .site = "siteA"};

  EXPECT_TRUE(at_a.SharesWith(at_b));
  EXPECT_FALSE(at_a.SharesWith(of_bob));
  EXPECT_FALSE(at_a.SharesWith(another));
}

TEST(NxproxyPolicy, AJobSharesWithItselfAndItsOwnersCertificateWithAllOfHis) {
  const Caller job1{.owner = "/CN=a", .job = "1", .site = "A"};
  const Caller job2{.owner = "/CN=a", .job = "2", .site = "A"};
  const Caller owner{.owner = "/CN=a"};
  const Caller other{.owner = "/CN=b", .job = "1", .site = "A"};

  EXPECT_TRUE(job1.SharesWith(job1));
  EXPECT_TRUE(owner.SharesWith(job1));
  EXPECT_FALSE(job1.SharesWith(job2));
  EXPECT_FALSE(job1.SharesWith(owner));
  EXPECT_FALSE(other.SharesWith(job1));
}

TEST(NxproxyPolicy, NamesTheKeyThatCannotBeRead) {
  Config config = Sample();
  config.mutable_policy()->mutable_connect_out(0)->set_network(0, "198.51.100.0/33");
  EXPECT_THAT(Policy::Make(config).status().ToString(), HasSubstr("policy.connect_out[0].network"));

  config = Sample();
  config.mutable_policy()->mutable_public_bind(0)->set_ports("9-3");
  EXPECT_THAT(Policy::Make(config).status().ToString(), HasSubstr("policy.public_bind[0].ports"));
}

TEST(NxproxyTickets, CountOnceInAnyOrder) {
  TicketWindow window;

  EXPECT_TRUE(window.Use(5));
  EXPECT_TRUE(window.Use(3));
  EXPECT_FALSE(window.Use(5));
  EXPECT_FALSE(window.Use(3));
  EXPECT_FALSE(window.Use(0));
  EXPECT_TRUE(window.Use(4));
}

TEST(NxproxyTickets, TooFarBehindIsUsed) {
  TicketWindow window;

  EXPECT_TRUE(window.Use(10));
  EXPECT_TRUE(window.Use(10 + TicketWindow::kWidth));
  EXPECT_FALSE(window.Use(10));
  EXPECT_TRUE(window.Use(11));
  EXPECT_TRUE(window.Use(1000000));
  EXPECT_TRUE(window.Use(1000000 - TicketWindow::kWidth + 1));
  EXPECT_FALSE(window.Use(10 + TicketWindow::kWidth));
}

}  // namespace
}  // namespace sekisho::nxproxy
