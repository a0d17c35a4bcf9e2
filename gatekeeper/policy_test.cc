// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/policy.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::gatekeeper {
namespace {

using testing::HasSubstr;

Caller Alice() { return {"/O=Grid/CN=Alice", false, {"alice", "shared"}}; }

Config Site() {
  Config config;
  config.set_site("siteA");
  return config;
}

TEST(Policy, MapsToTheFirstAccountAndTheDefaultService) {
  const auto grant = Decide(Site(), Alice(), {});

  ASSERT_TRUE(grant.ok());
  EXPECT_EQ(grant->account, "alice");
  EXPECT_EQ(grant->service, "jobmanager");
  EXPECT_EQ(grant->queue, "");
}

TEST(Policy, GivesAnotherAccountOnlyIfTheMapListsIt) {
  EXPECT_EQ(Decide(Site(), Alice(), {"", "shared"})->account, "shared");

  const auto root = Decide(Site(), Alice(), {"", "root"});

  EXPECT_EQ(root.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Message(root.status()), "\"/O=Grid/CN=Alice\" may not use account 'root'");
  EXPECT_EQ(Remedy(root.status()), "ask for one of: alice, shared");
}

TEST(Policy, ReadsTheQueueOutOfTheService) {
  const auto grant = Decide(Site(), Alice(), {"jobmanager-agent-long", ""});

  ASSERT_TRUE(grant.ok());
  EXPECT_EQ(grant->service, "jobmanager-agent-long");
  EXPECT_EQ(grant->queue, "long");
}

TEST(Policy, RefusesAnUnknownServiceWithError93NamingTheConfiguredOnes) {
  for (const char* name : {"jobmanager-lsf", "ftp", "jobmanager-", "jobmanager-agent-", "a/b", "x\ny"}) {
    const auto grant = Decide(Site(), Alice(), {name, ""});

    EXPECT_EQ(grant.status().code(), absl::StatusCode::kFailedPrecondition) << name;
    EXPECT_EQ(GramCode(grant.status()), 93) << name;
    EXPECT_EQ(Remedy(grant.status()), "use one of: jobmanager, jobmanager-agent") << name;
  }
}

TEST(Policy, RefusesAnUnmappedSubjectSayingWhomToAsk) {
  Caller stranger = Alice();
  stranger.accounts.clear();

  const auto grant = Decide(Site(), stranger, {});

  EXPECT_EQ(grant.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(GramCode(grant.status()), 7);
  EXPECT_THAT(Message(grant.status()), HasSubstr("\"/O=Grid/CN=Alice\""));
  EXPECT_EQ(Remedy(grant.status()),
            "ask the owner of that file (root of the gatekeeper's host) to add the line: "
            "\"/O=Grid/CN=Alice\" ACCOUNT");
}

TEST(Policy, RefusesALimitedProxyUnlessTheServiceAcceptsIt) {
  Caller limited = Alice();
  limited.is_limited = true;
  Config config = Site();
  auto* files = config.add_service();
  files->set_name("files");
  files->set_accept_limited(true);
  config.add_service()->set_name("jobmanager");

  EXPECT_TRUE(Decide(config, limited, {"files", ""}).ok());
  const auto refused = Decide(config, limited, {});

  EXPECT_EQ(refused.status().code(), absl::StatusCode::kPermissionDenied);
  EXPECT_EQ(Remedy(refused.status()), "use a full proxy: 'sekisho proxy init'");
}

TEST(Policy, NeverUsesAnAccountThatIsNotAPlainName) {
  for (const char* name : {"../root", ".", "-x", "a b", ""}) {
    Caller odd = Alice();
    odd.accounts = {name};

    EXPECT_FALSE(Decide(Site(), odd, {}).ok()) << name;
  }
}

}  // namespace
}  // namespace sekisho::gatekeeper
