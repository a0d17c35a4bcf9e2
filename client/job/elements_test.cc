// SPDX-License-Identifier: Apache-2.0
#include "client/job/elements.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(Elements, AreNamedOneByOneOrByRanges) {
  EXPECT_THAT(*ExpandElements({"s/a", "s/b[7]", "s/c[1,3-5]"}),
              ElementsAre("s/a", "s/b[7]", "s/c[1]", "s/c[3]", "s/c[4]", "s/c[5]"));
}

TEST(Elements, WhatIsNoListOfIndicesIsRefusedByName) {
  for (const char* name : {"s/a[]", "s/a[5-1]", "s/a[x]", "s/a[1-9%2]"}) {
    EXPECT_THAT(ExpandElements({name}).status().ToString(), HasSubstr(std::string("'") + name + "': expected")) << name;
  }
}

TEST(Elements, OfOneCommandThereAreAtMostTenThousand) {
  EXPECT_TRUE(ExpandElements({"s/a[1-10000]"}).ok());
  EXPECT_FALSE(ExpandElements({"s/a[1-10000]", "s/b"}).ok());
  EXPECT_FALSE(ExpandElements({"s/a[1-100000]"}).ok());
}

}  // namespace
}  // namespace sekisho::client
