// SPDX-License-Identifier: Apache-2.0
#include "qserver/settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/config.h"

namespace sekisho::qserver {
namespace {

using ::testing::HasSubstr;

Config With(const std::string& more) {
  Config config;
  CHECK(ParseConfigInto(R"({"site": "a", "jobmanager": ["/CN=jm"], )" + more + "}", "q.json", config).ok());
  return config;
}

std::string WhyNot(const std::string& more) { return std::string(CheckConfig(With(more)).message()); }

TEST(Settings, AnAccountHasThePriorityThatTheSiteGivesIt) {
  const Config config = With(R"("accountPriority": {"bob": 1000, "alice": -1000})");

  EXPECT_EQ(WhyNot(R"("accountPriority": {"bob": 1000, "alice": -1000})"), "");
  EXPECT_EQ(AccountPriorities(config), (std::map<std::string, int>{{"alice", -1000}, {"bob", 1000}}));
  EXPECT_TRUE(AccountPriorities(With(R"("maxWallTimeS": 1)")).empty());
}

TEST(Settings, APriorityBeyondTheRangeIsRefusedByKeyAndValue) {
  EXPECT_EQ(WhyNot(R"("accountPriority": {"alice": 5, "bob": 1001})"),
            "accountPriority.bob: expected -1000 to 1000, saw 1001; accounts that are not named have 0");
  EXPECT_THAT(WhyNot(R"("accountPriority": {"bob": -1001})"), HasSubstr("saw -1001"));
  EXPECT_THAT(WhyNot(R"("accountPriority": {"bob": -2147483648})"), HasSubstr("saw -2147483648"));
}

TEST(Settings, APriorityOfNobodyIsRefused) {
  EXPECT_EQ(WhyNot(R"("accountPriority": {"": 7})"),
            R"(accountPriority: expected the name of an account, saw "" with 7; name it, or remove the line)");
}

TEST(Settings, TheRelaysDirectNetworksAreListedAndThoseWithoutTranslationOnceMore) {
  const RelaySettings relay = MakeRelaySettings(With(R"("relay": {"address": "a-dmz:7514", "reversed": true, "direct": [)"
                                                     R"({"network": "10.2.0.0/24"}, {"network": "10.3.0.0/16", "untranslated": true}]})"));

  EXPECT_EQ(relay.direct, "10.2.0.0/24,10.3.0.0/16");
  EXPECT_EQ(relay.direct_untranslated, "10.3.0.0/16");
  EXPECT_TRUE(relay.is_reversed);
}

TEST(Settings, ALeadersSilenceOfLessThanNothingIsRefused) {
  EXPECT_EQ(WhyNot(R"("leader_silence_s": -1)"), "leaderSilenceS: expected seconds, such as 1800, saw -1");
  EXPECT_EQ(WhyNot(R"("leaderSilenceS": 10)"), "");
}

TEST(Settings, ADirectNetworkThatIsNoneIsRefused) {
  for (const char* network : {"", "10.2.0.0", "10.2.0.0/33", "siteB", "10.2.0.0/24,10.3.0.0/24"}) {
    EXPECT_EQ(WhyNot(std::string(R"("relay": {"address": "a-dmz:7514", "direct": [{"network": ")") + network + "\"}]}"),
              std::string("relay.direct.network: expected a network like \"10.2.0.0/24\", saw \"") + network + "\"");
  }
  EXPECT_EQ(WhyNot(R"("relay": {"address": "a-dmz:7514", "direct": [{"network": "2001:db8::/32"}]})"), "");
}

}  // namespace
}  // namespace sekisho::qserver
