// SPDX-License-Identifier: Apache-2.0
#include "client/local/pm_top.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

constexpr const char* kTop =
    "context 5 node 1 nodes 3 program 77 drives program gone 0 stopped 1\n"
    "daemon turns 4 seizures 0 rings 9\n"
    "datagrams in 10 out 20\n"
    "twice sent 3 gap 2 timeout 1 spurious 0 probes 1\n"
    "peer 0 state up rtt_us 12.5 window 14720 in_flight 0 mtu 1472 lost_gap 2 lost_timeout 1\n"
    "peer 1 state up rtt_us 80.0 window 2944 in_flight 0 mtu 1472 lost_gap 9 lost_timeout 0 "
    "policed 1\n"
    "peer 2 state gone reason silent\n";

TEST(PmTop, WhatTheDaemonSaysIsData) {
  const nlohmann::json top = TopAsJson(kTop);

  EXPECT_EQ(top["context"], 5);
  EXPECT_EQ(top["drives"], "program");
  EXPECT_EQ(top["gone"], false);
  EXPECT_EQ(top["stopped"], true);
  EXPECT_EQ(top["twice"]["gap"], 2);
  ASSERT_EQ(top["peers"].size(), 3u);
  EXPECT_EQ(top["peers"][0]["peer"], 0);
  EXPECT_EQ(top["peers"][0]["rtt_us"], 12.5);
  EXPECT_EQ(top["peers"][2]["reason"], "silent");
}

TEST(PmTop, PeopleReadWhyAndWho) {
  const std::string text = TopAsText(TopAsJson(kTop));

  EXPECT_NE(text.find("context 5 node 1 of 3: program 77 drives, stopped\n"), text.npos) << text;
  EXPECT_NE(text.find("sent twice 3: packets lost by a gap 2, by a time-out 1;"), text.npos)
      << text;
  EXPECT_NE(text.find("         0 policed\n"), text.npos) << text;
  EXPECT_NE(text.find("2 gone (silent)\n"), text.npos) << text;
}

// Of another version, or cut off.
TEST(PmTop, WhatIsMissingIsNoError) {
  for (const char* text : {"", "context", "context 5", "peer", "twice sent\n", "\n \n"}) {
    EXPECT_NE(TopAsText(TopAsJson(text)), "") << text;
  }
}

TEST(PmTop, AContextIsAnObject) {
  const nlohmann::json all = ListAsJson(
      "context 5 node 1 program 12 keeper 13 starts 1 parked 0\n"
      "context 5 node 2 program 0 keeper 14 starts 1 parked 1\n");
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0]["keeper"], 13);
  EXPECT_EQ(all[0]["parked"], false);
  EXPECT_EQ(all[1]["parked"], true);
}

TEST(PmTop, AnUnfinishedAnswerSaysWhatToAskNext) {
  std::string text = "peer 1 state up\nmore 17\n";
  EXPECT_EQ(TakeMore(text), 17);
  EXPECT_EQ(text, "peer 1 state up\n");
  EXPECT_EQ(TakeMore(text), std::nullopt);
  std::string broken = "more of it\n";
  EXPECT_EQ(TakeMore(broken), std::nullopt);
  EXPECT_EQ(broken, "more of it\n");
}

}  // namespace
}  // namespace sekisho::client
