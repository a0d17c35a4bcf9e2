// SPDX-License-Identifier: Apache-2.0
#include "deploy/wan/door.h"

#include <gtest/gtest.h>

namespace sekisho::wan {
namespace {

std::vector<Host> Hosts() {
  std::vector<Host> hosts(4);
  const char* names[] = {"h0", "h1", "h2", "h3"};
  const char* clusters[] = {"c0", "c0", "c1", ""};
  for (int i = 0; i < 4; ++i) hosts[i].name = names[i], hosts[i].cluster = clusters[i];
  return hosts;
}

Door Make(const std::vector<std::string>& denied) {
  std::string error;
  auto door = Door::Make(Hosts(), denied, error);
  EXPECT_TRUE(door) << error;
  return *door;
}

const PacketFacts kSyn = {.source = 1, .target = 2, .protocol = kTcp, .is_opening = true};
const PacketFacts kAnswer = {.source = 1, .target = 2, .protocol = kTcp};

TEST(Door, AClusterAdmitsItselfAndAnswers) {
  Door door = Make({"c0"});

  EXPECT_TRUE(door.Admits(kSyn, 1, 0));
  EXPECT_FALSE(door.Admits(kSyn, 2, 0));
  EXPECT_FALSE(door.Admits(kSyn, 3, 1));
  EXPECT_TRUE(door.Admits(kAnswer, 2, 0));
  EXPECT_TRUE(door.Admits(kSyn, 0, 2));
}

TEST(Door, AHostByNameAdmitsNobody) {
  for (const auto& denied : {std::vector<std::string>{"h0", "c0"}, {"c0", "h0"}, {"h0"}}) {
    Door door = Make(denied);

    EXPECT_FALSE(door.Admits(kSyn, 1, 0));
    EXPECT_TRUE(door.Admits(kSyn, 0, 1));
  }
}

TEST(Door, UdpPassesWhereTheHostHasSentBefore) {
  Door door = Make({"h0"});
  const PacketFacts out = {
      .source = 10, .target = 20, .protocol = kUdp, .source_port = 1, .target_port = 2};
  const PacketFacts in = {
      .source = 20, .target = 10, .protocol = kUdp, .source_port = 2, .target_port = 1};
  const PacketFacts other = {
      .source = 20, .target = 10, .protocol = kUdp, .source_port = 3, .target_port = 1};

  EXPECT_FALSE(door.Admits(in, 2, 0));
  EXPECT_TRUE(door.Admits(out, 0, 2));
  EXPECT_TRUE(door.Admits(in, 2, 0));
  EXPECT_FALSE(door.Admits(other, 2, 0));
}

TEST(Door, RefusesANameThatIsNobodys) {
  std::string error;
  EXPECT_FALSE(Door::Make(Hosts(), {"c7"}, error));
  EXPECT_EQ(error, "no host and no cluster is called 'c7'");
}

}  // namespace
}  // namespace sekisho::wan
