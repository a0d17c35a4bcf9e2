// SPDX-License-Identifier: Apache-2.0
#include "client/world/relay_choice.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

SiteRelay Site(const std::string& name, const std::string& address, bool is_only_way = false) {
  SiteRelay site{name, {}};
  site.relay.set_address(address);
  site.relay.set_is_only_way(is_only_way);
  return site;
}

std::string Chosen(const std::vector<SiteRelay>& sites) {
  const auto chosen = ChooseRelay(sites);
  return chosen.ok() ? chosen->site : "";
}

TEST(ChooseRelay, TakesTheOneThatClosedNodesReachElseTheFirst) {
  EXPECT_EQ(Chosen({Site("a", "a:1"), Site("b", "b:1")}), "a");
  EXPECT_EQ(Chosen({Site("a", ""), Site("b", "b:1")}), "b");
  EXPECT_EQ(Chosen({Site("a", "a:1"), Site("b", "b:1", true)}), "b");
}

TEST(ChooseRelay, RefusesSitesThatCannotMeet) {
  EXPECT_EQ(Chosen({Site("a", "a:1", true), Site("b", "b:1", true)}), "");
  EXPECT_EQ(Chosen({Site("a", ""), Site("b", "")}), "");
}

}  // namespace
}  // namespace sekisho::client
