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

TEST(PartNamed, IsALabelBeforeAllElse) {
  proto::CoallocReply world = World();
  world.mutable_part(0)->set_label("back");
  world.mutable_part(2)->set_label("3");
  world.mutable_part(3)->set_label("siteA");

  EXPECT_EQ(*PartNamed(world, "back"), 0);
  EXPECT_EQ(*PartNamed(world, "3"), 2);
  EXPECT_EQ(*PartNamed(world, "siteA"), 3);
  EXPECT_EQ(*PartNamed(world, "2"), 2);
  EXPECT_EQ(*PartNamed(World(), "subjob 3"), 3);
  EXPECT_EQ(PartNamed(world, "subjob 3").status().message(),
            "no part is at 'subjob 3', or has that label; name its label, site or number");
}

TEST(PartNamed, IsNoLabelOfSeveralPartsNorOfOneThatWasDropped) {
  proto::CoallocReply world = World();
  for (const int part : {0, 1, 2}) {
    world.mutable_part(part)->set_label("back");
  }
  EXPECT_EQ(PartNamed(world, "back").status().message(), "parts 0, 2 have the label 'back': name one by its number");

  world.mutable_part(0)->set_state(proto::CoallocReply::DROPPED);

  EXPECT_EQ(*PartNamed(world, "back"), 2);
}

TEST(Coalloc, ShowsEachPart) {
  proto::CoallocReply world = World();
  world.mutable_part(3)->set_label("back");

  const std::string text = Describe(world);

  EXPECT_NE(text.find("1    subjob 1        siteB           -         strict-barrier  dropped   -  its user dropped it\n"),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("3    back            siteB           4-5       strict-barrier  pending"), std::string::npos) << text;
  const nlohmann::json parts = ToJson("siteA/world-1", world)["parts"];
  EXPECT_EQ(parts[1]["state"], "dropped");
  EXPECT_EQ(parts[1]["label"], "subjob 1");
  EXPECT_EQ(parts[3]["label"], "back");
}

}  // namespace
}  // namespace sekisho::client
