// SPDX-License-Identifier: Apache-2.0
#include "qserver/relay_tokens.h"

#include <gtest/gtest.h>

#include "common/identity/job_token.h"
#include "tests/support/test_ca.h"

namespace sekisho::qserver {
namespace {

using std::chrono::minutes;
using test::TestNow;

class RelayTokensTest : public testing::Test {
 protected:
  RelayTokensTest()
      : tokens_({.address = "a-dmz:7514", .site = "siteA", .life = minutes(60)},
                ca_.IssueHost("a-head")) {
    ca_.Install(trust_.path());
  }

  proto::ServerMessage::Start Given(identity::Time now, const std::string& job = "j1") {
    proto::ServerMessage::Start start;
    EXPECT_TRUE(tokens_.AddTo(start, {job, "/O=Grid/CN=Alice", {}}, now).ok());
    return start;
  }
  std::string TokenAt(identity::Time now, const std::string& job = "j1") {
    return Given(now, job).file().at("relay-token");
  }

  test::TemporaryDirectory trust_;
  test::TestCa ca_;
  RelayTokens tokens_;
};

TEST_F(RelayTokensTest, ATokenIsForItsJobAndOwnerAtThisSite) {
  const auto verified = identity::VerifyJobToken(
      TokenAt(TestNow()), **identity::TrustStore::Load(trust_.path()), TestNow(), minutes(60));

  ASSERT_TRUE(verified.ok()) << verified.status().ToString();
  EXPECT_EQ(verified->token.job, "j1");
  EXPECT_EQ(verified->token.owner, "/O=Grid/CN=Alice");
  EXPECT_EQ(verified->token.site, "siteA");
  EXPECT_EQ(verified->token.not_after, TestNow() + minutes(60));
}

TEST_F(RelayTokensTest, ATaskIsToldWhereItIsAndNothingSecretInItsEnvironment) {
  const auto start = Given(TestNow());

  EXPECT_EQ(start.environment().at("NXPROXY_SERVER"), "a-dmz:7514");
  EXPECT_EQ(start.environment().at("NXPROXY_SITE"), "siteA");
  EXPECT_EQ(start.environment().at("NXPROXY_TOKEN_FILE"), "@FILES@/relay-token");
  EXPECT_EQ(start.environment().at("NXPROXY_KEY_FILE"), "@FILES@/relay-key");
  EXPECT_EQ(start.environment().size(), 4u);
}

TEST_F(RelayTokensTest, AUserMayNameAnotherRelayButNotAnotherToken) {
  proto::ServerMessage::Start start;
  (*start.mutable_environment())["NXPROXY_SERVER"] = "b-dmz:7514";
  (*start.mutable_environment())["NXPROXY_TOKEN_FILE"] = "/of/the/asking/task";

  ASSERT_TRUE(tokens_.AddTo(start, {"j1", "/O=Grid/CN=Alice", {}}, TestNow()).ok());

  EXPECT_EQ(start.environment().at("NXPROXY_SERVER"), "b-dmz:7514");
  EXPECT_EQ(start.environment().at("NXPROXY_TOKEN_FILE"), "@FILES@/relay-token");
}

TEST_F(RelayTokensTest, TheTasksOfAJobShareOneWhileItIsYoung) {
  const std::string first = TokenAt(TestNow());

  EXPECT_EQ(TokenAt(TestNow() + minutes(7)), first);
  EXPECT_NE(TokenAt(TestNow() + minutes(7), "j2"), first);
  EXPECT_NE(TokenAt(TestNow() + minutes(8)), first);
}

TEST_F(RelayTokensTest, AJobsKeyIsItsOwnAndOutlivesARestart) {
  const auto signer = ca_.IssueHost("a-head");
  const RelayTokens::Settings settings{.address = "a-dmz:7514", .site = "siteA"};
  const auto key = [](RelayTokens tokens, const std::string& job) {
    proto::ServerMessage::Start start;
    EXPECT_TRUE(tokens.AddTo(start, {job, "/O=Grid/CN=Alice", {}}, TestNow()).ok());
    const std::string& file = start.file().at("relay-key");
    return file.substr(0, file.find("-----BEGIN"));  // statements are made anew
  };
  const std::string first = key(RelayTokens(settings, signer.Clone()), "j1");

  EXPECT_TRUE(first.starts_with("sekisho-relay-key 1\njob=j1\nowner=/O=Grid/CN=Alice\nseed="));
  EXPECT_EQ(key(RelayTokens(settings, signer.Clone()), "j1"), first);
  EXPECT_NE(key(RelayTokens(settings, signer.Clone()), "j2").substr(60), first.substr(60));
  EXPECT_NE(key(RelayTokens(settings, ca_.IssueHost("b-head")), "j1"), first);
}

TEST_F(RelayTokensTest, AClockThatIsSetBackGetsAValidOne) {
  const std::string first = TokenAt(TestNow());
  EXPECT_NE(TokenAt(TestNow() - minutes(30)), first);
}

}  // namespace
}  // namespace sekisho::qserver
