// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/below.h"

#include <gtest/gtest.h>

namespace sekisho::qserver::stager {
namespace {

const std::vector<std::string> kRoots = {"/home/taro", "/scratch"};

TEST(Below, FindsTheRootOfAPath) {
  const auto below = FindBelow(kRoots, "/home/taro//data/./in.dat");

  ASSERT_TRUE(below.ok());
  EXPECT_EQ(below->root, "/home/taro");
  EXPECT_EQ(below->path, "data/in.dat");
  EXPECT_EQ(FindBelow(kRoots, "/scratch/x")->root, "/scratch");
  EXPECT_EQ(FindBelow(kRoots, "/scratch/..x/...")->path, "..x/...");
  EXPECT_EQ(FindBelow(kRoots, "/scratch")->path, "");
}

TEST(Below, RefusesWhatLeadsOut) {
  for (const char* const path : {"/home/taro/../hanako/x", "/home/taro/x/..", "/home/tarot/x", "/home", "/etc/passwd",
                                 "home/taro/x", "", "/", "..", "../home/taro/x"}) {
    EXPECT_FALSE(FindBelow(kRoots, path).ok()) << path;
  }
  EXPECT_FALSE(FindBelow(kRoots, std::string("/scratch/a\0b", 12)).ok());
  EXPECT_FALSE(FindBelow(kRoots, "/scratch/" + std::string(5000, 'x')).ok());
}

TEST(Below, SaysWhereAPathMayBe) {
  const absl::Status status = FindBelow(kRoots, "/tmp/x").status();

  EXPECT_EQ(std::string(status.message()), "expected a path below /home/taro or /scratch, saw \"/tmp/x\"");
}

}  // namespace
}  // namespace sekisho::qserver::stager
