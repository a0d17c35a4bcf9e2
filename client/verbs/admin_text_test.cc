// SPDX-License-Identifier: Apache-2.0
#include "client/verbs/admin_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using ::testing::HasSubstr;

TEST(AdminText, ANodeIsDrainingWhileSomethingRunsThere) {
  proto::NodeInfo node;
  EXPECT_EQ(NodeStateName(node), "down");
  node.set_is_up(true);
  EXPECT_EQ(NodeStateName(node), "up");
  node.set_drained("the node is drained by /CN=A");
  EXPECT_EQ(NodeStateName(node), "drained");
  node.set_busy(1);
  EXPECT_EQ(NodeStateName(node), "draining");
}

TEST(AdminText, ReasonsCannotDriveATerminal) {
  proto::AdministerReply all;
  auto& banned = *all.add_banned();
  banned.set_subject("/CN=A");
  banned.set_reason("\x1b[2Jkey");
  banned.set_since_ms(1'800'000'000'000);

  EXPECT_THAT(BansTable(all), HasSubstr("2027-01-15T08:00:00Z  /CN=A"));
  EXPECT_EQ(BansTable(all).find('\x1b'), std::string::npos);
  EXPECT_EQ(BansJson(all)[0]["subject"], "/CN=A");
}

}  // namespace
}  // namespace sekisho::client
