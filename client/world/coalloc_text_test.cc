// SPDX-License-Identifier: Apache-2.0
#include "client/world/coalloc_text.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

proto::CoallocReply World() {
  proto::CoallocReply world;
  world.set_is_held(true);
  for (const char* site : {"siteA", "siteB", "siteA", "siteB"}) {
    proto::CoallocReply::Part& part = *world.add_part();
    part.set_site(site);
    part.set_count(2);
  }
  world.mutable_part(1)->set_state(proto::CoallocReply::DROPPED);
  world.mutable_part(1)->set_first_rank(-1);
  world.mutable_part(1)->set_reason("its user dropped it");
  world.mutable_part(3)->set_first_rank(4);
  return world;
}

TEST(WorldName, IsASiteAndAWorld) {
  const auto name = ParseWorldName("a-dmz:2119/jobmanager/world-12");
  ASSERT_TRUE(name.ok());
  EXPECT_EQ(name->site, "a-dmz:2119/jobmanager");
  EXPECT_EQ(name->world, "world-12");
  for (const char* text : {"", "siteA", "world-12", "/world-12", "siteA/abcdefghijklm"}) {
    EXPECT_FALSE(ParseWorldName(text).ok()) << text;
  }
}

TEST(PartNamed, IsANumberOrTheSiteOfOnePartThatStays) {
  EXPECT_EQ(*PartNamed(World(), "1"), 1);
  EXPECT_EQ(*PartNamed(World(), "siteB"), 3);
  EXPECT_EQ(PartNamed(World(), "siteA").status().message(),
            "parts 0, 2 are at siteA: name one by its number");
  proto::CoallocReply three = World();
  three.add_part()->set_site("siteA");
  EXPECT_EQ(PartNamed(three, "siteA").status().message(), "parts 0, 2, 4 are at siteA: name one by its number");
  EXPECT_FALSE(PartNamed(World(), "siteC").ok());
  EXPECT_FALSE(PartNamed(World(), "1x").ok());
}

TEST(Coalloc, ShowsEachPart) {
  const std::string text = Describe(World());

  EXPECT_NE(
      text.find(
          "1    siteB           -         strict-barrier  dropped   -  its user dropped it\n"),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("3    siteB           4-5       strict-barrier  pending"), std::string::npos)
      << text;
  EXPECT_EQ(ToJson("siteA/world-1", World())["parts"][1]["state"], "dropped");
}

}  // namespace
}  // namespace sekisho::client
