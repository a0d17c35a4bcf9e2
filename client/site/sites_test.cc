// SPDX-License-Identifier: Apache-2.0
#include "client/site/sites.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

Sites Two() {
  auto sites = Sites::Parse(
      R"({"sites": {"siteA": {"contact": "a-dmz:2119"}, "siteB": {"contact": "[::1]:99/jobmanager-x"}}})", "s");
  EXPECT_TRUE(sites.ok()) << sites.status();
  return *sites;
}

TEST(Sites, ANameStandsForItsContact) {
  const auto target = Two().Resolve("siteA");

  EXPECT_EQ(target->site, "siteA");
  EXPECT_EQ(target->contact.Address(), "a-dmz:2119");
  EXPECT_EQ(target->contact.service, "jobmanager");
}

TEST(Sites, WhoSpeaksForASitesTasksIsASubject) {
  const std::string front = R"({"sites": {"siteA": {"contact": "a-dmz:2119", "queue_server": )";
  EXPECT_EQ(Sites::Parse(front + R"("/O=Grid/CN=a-head"}}})", "s")->speakers().at("siteA"), "/O=Grid/CN=a-head");
  EXPECT_TRUE(Two().speakers().empty());
  for (const char* wrong : {"7", R"("a-head")"}) {
    EXPECT_THAT(Sites::Parse(front + wrong + "}}}", "s").status().message(),
                testing::HasSubstr("sites.siteA.queue_server: expected a subject"));
  }
}

TEST(Sites, AServiceMayFollowTheName) {
  EXPECT_EQ(Two().Resolve("siteA/jobmanager-agent")->contact.service, "jobmanager-agent");
  EXPECT_EQ(Two().Resolve("siteB")->contact.service, "jobmanager-x");
}

TEST(Sites, WhatIsNoNameIsAContact) {
  const auto target = Two().Resolve("gate.example.org/jobmanager-fork");

  EXPECT_EQ(target->site, "");
  EXPECT_EQ(target->contact.host, "gate.example.org");
}

Sites TwoWithDirectory(absl::StatusOr<std::optional<std::string>> answer, std::vector<std::string>* asked = nullptr) {
  Sites sites = Two();
  sites.SetLookUp([=](const std::string& name) {
    if (asked != nullptr) asked->push_back(name);
    return answer;
  });
  return sites;
}

TEST(Sites, TheDirectorysContactCountsBeforeTheFiles) {
  const Sites sites = TwoWithDirectory(std::optional<std::string>("new-dmz:2120"));

  EXPECT_EQ(sites.Resolve("siteA")->contact.Address(), "new-dmz:2120");
  EXPECT_EQ(sites.Resolve("siteC/jobmanager-agent")->contact.Address(), "new-dmz:2120");
  EXPECT_EQ(sites.Resolve("siteC/jobmanager-agent")->contact.service, "jobmanager-agent");
}

TEST(Sites, TheFileIsEnoughWhereTheDirectoryIsSilent) {
  const Sites sites = TwoWithDirectory(absl::UnavailableError("down"));

  EXPECT_EQ(sites.Resolve("siteA")->contact.Address(), "a-dmz:2119");
  EXPECT_EQ(sites.Resolve("gate.example.org")->contact.host, "gate.example.org");
  EXPECT_THAT(sites.Resolve("siteC").status().ToString(), ::testing::HasSubstr("down"));
}

TEST(Sites, ContactsAreNotLookedUp) {
  std::vector<std::string> asked;
  const Sites sites = TwoWithDirectory(std::optional<std::string>(), &asked);

  EXPECT_EQ(sites.Resolve("a-dmz:2119/jobmanager")->contact.host, "a-dmz");
  EXPECT_EQ(sites.Resolve("[::1]:99")->contact.host, "::1");
  EXPECT_TRUE(asked.empty());
}

TEST(Sites, TheDirectoryIsNamedInTheFile) {
  const auto sites = Sites::Parse(R"({"sites": {}, "directory": {"url": "ldaps://d:636", "tls": false}})", "f");

  EXPECT_EQ(sites->directory(), (DirectoryAddress{"ldaps://d:636"}));
  EXPECT_FALSE(Sites::Parse(R"({"sites": {}, "directory": {"host": "d"}})", "f").ok());
}

TEST(Sites, AJobIsNamedBySiteOrByContact) {
  const std::string id = "abcdefghij234";

  EXPECT_EQ(Two().ResolveJob("siteA/" + id)->target.site, "siteA");
  EXPECT_EQ(Two().ResolveJob("siteA/" + id)->id, id);
  EXPECT_EQ(Two().ResolveJob("https://a-dmz:2119/" + id + "/")->target.contact.Address(), "a-dmz:2119");
  EXPECT_EQ(Two().ResolveJob("[::1]:7/" + id)->target.contact.host, "::1");
}

TEST(Sites, RefusesWhatNamesNoJob) {
  for (const char* text : {"", "siteA", "siteA/", "siteA/../../etc/pass", "abcdefghij234"}) {
    EXPECT_FALSE(Two().ResolveJob(text).ok()) << text;
  }
}

TEST(Sites, ABadFileIsNamedWithTheKey) {
  EXPECT_THAT(Sites::Parse("{}", "f.json").status().ToString(), ::testing::HasSubstr("f.json"));
  EXPECT_THAT(Sites::Parse(R"({"sites": {"x": {}}})", "f").status().ToString(),
              ::testing::HasSubstr("sites.x.contact"));
  EXPECT_THAT(Sites::Parse(R"({"sites": {"a/b": {"contact": "h"}}})", "f").status().ToString(),
              ::testing::HasSubstr("a/b"));
}

}  // namespace
}  // namespace sekisho::client
