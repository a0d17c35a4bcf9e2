// SPDX-License-Identifier: Apache-2.0
#include "client/world/part_choices.h"

#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

std::vector<RankRange> Parts() { return {{"siteA", 0, 2}, {"siteB", 2, 2}, {"siteA", 4, 1}}; }

TEST(PartChoices, AreForEveryPartAtTheSite) {
  auto parts = Parts();
  const auto choices =
      ParsePartChoices({"siteA=/opt/app"}, {"loose-barrier", "siteA=strict-barrier"});
  ASSERT_TRUE(choices.ok());

  ASSERT_TRUE(ApplyChoices(*choices, parts).ok());

  EXPECT_EQ(parts[0].program, "/opt/app");
  EXPECT_EQ(parts[1].program, "");
  EXPECT_EQ(parts[2].program, "/opt/app");
  EXPECT_EQ(parts[0].start_type, "strict-barrier");
  EXPECT_EQ(parts[1].start_type, "loose-barrier");
}

TEST(PartChoices, OfASiteThatHasNoPartAreRefused) {
  auto parts = Parts();

  EXPECT_EQ(ApplyChoices(*ParsePartChoices({"siteC=/opt/app"}, {}), parts).message(),
            "--per-site-exe siteC=/opt/app: no part of the program goes to siteC; name a site as "
            "the machine file does");
}

TEST(PartChoices, ThatAreNoneAreRefused) {
  EXPECT_FALSE(ParsePartChoices({"/opt/app"}, {}).ok());
  EXPECT_FALSE(ParsePartChoices({"siteA="}, {}).ok());
  EXPECT_FALSE(ParsePartChoices({}, {"tight"}).ok());
  EXPECT_FALSE(ParsePartChoices({}, {"siteA=tight"}).ok());
}

}  // namespace
}  // namespace sekisho::client
