// SPDX-License-Identifier: Apache-2.0
#include "rsl/location.h"

#include <gtest/gtest.h>

namespace sekisho::rsl {
namespace {

TEST(Location, TellsPathsFromUrls) {
  EXPECT_EQ(ReadLocation("/a/b").kind, Location::Kind::kPath);
  EXPECT_EQ(ReadLocation("a:b//c").kind, Location::Kind::kPath);
  EXPECT_EQ(ReadLocation("://x").kind, Location::Kind::kPath);
  EXPECT_EQ(ReadLocation("client:///a/b").kind, Location::Kind::kClient);
  EXPECT_EQ(ReadLocation("client:///a/b").path, "/a/b");
  EXPECT_EQ(ReadLocation("FILE:///a").kind, Location::Kind::kFile);
  EXPECT_EQ(ReadLocation("https://h/x").kind, Location::Kind::kWeb);
  EXPECT_EQ(ReadLocation("gsiftp://h/x").kind, Location::Kind::kOther);
}

TEST(Location, GivesAFileANameThatIsSafe) {
  EXPECT_EQ(PlainName("client:///home/taro/a.out", "program"), "a.out");
  EXPECT_EQ(PlainName("https://h/x.tgz?y=/../z", "program"), "x.tgz");
  EXPECT_EQ(PlainName("client:///home/taro/..", "program"), "program");
  EXPECT_EQ(PlainName("client:///a/b c", "program"), "program");
  EXPECT_EQ(PlainName("a/", "program"), "program");
}

}  // namespace
}  // namespace sekisho::rsl
