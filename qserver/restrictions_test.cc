// SPDX-License-Identifier: Apache-2.0
#include "qserver/restrictions.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/refusal.h"

namespace sekisho::qserver {
namespace {

using ::testing::HasSubstr;

Restrictions WithBan(const std::string& subject) {
  Restrictions restrictions;
  Restrictions::Banned banned;
  banned.set_subject(subject);
  banned.set_reason("key stolen");
  restrictions.Ban(banned);
  return restrictions;
}

TEST(Restrictions, ABannedSubjectIsRefusedUnderAnySpelling) {
  const Restrictions restrictions = WithBan("/O=Grid/Email=a@b.org");

  EXPECT_THAT(Message(restrictions.Check("/O=Grid/emailAddress=a@b.org")), HasSubstr("key stolen"));
  EXPECT_TRUE(restrictions.Check("/O=Grid/CN=Taro").ok());
}

TEST(Restrictions, OutliveARestart) {
  Restrictions before = WithBan("/CN=A");
  Restrictions::Drained drained;
  drained.set_node("n1");
  drained.set_by("/CN=Admin");
  before.Drain(drained);

  Restrictions after;
  ASSERT_TRUE(after.Restore(before.Bytes()).ok());

  EXPECT_FALSE(after.Check("/CN=A").ok());
  EXPECT_EQ(after.WhyDrained("n1"), "the node is drained by /CN=Admin");
  EXPECT_FALSE(after.IsDrained("n2"));
  EXPECT_FALSE(after.Restore("\xff\xff").ok());
}

TEST(Restrictions, ADrainedSiteDrainsEveryNode) {
  Restrictions restrictions;
  restrictions.Drain({});

  EXPECT_TRUE(restrictions.IsDrained("n1"));
  EXPECT_TRUE(restrictions.LiftDrain(""));
  EXPECT_FALSE(restrictions.LiftDrain(""));
  EXPECT_FALSE(restrictions.IsDrained("n1"));
}

}  // namespace
}  // namespace sekisho::qserver
