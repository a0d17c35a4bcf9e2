// SPDX-License-Identifier: Apache-2.0
#include "client/verbs/published.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "glue/test_offers.h"

namespace sekisho::client {
namespace {

using ::testing::HasSubstr;
using ::testing::SizeIs;

std::vector<glue::Offer> Two() {
  return {glue::TestOffer("siteA", 12, 16, 2400), glue::TestOffer("siteB", 4, 4, 2000)};
}

TEST(Published, TheTableHasALineForEachQueue) {
  const auto offers = Two();

  const std::string table = PublishedTable(Select(offers, {}, glue::kTestNow), glue::kTestNow);

  EXPECT_THAT(table, HasSubstr("siteA  siteA:2119  up     12/16"));
  EXPECT_THAT(table, HasSubstr("2400 MHz  out"));
  EXPECT_THAT(table, HasSubstr("10 s"));
}

TEST(Published, AConditionChooses) {
  const auto offers = Two();
  const auto where = glue::Where::Parse("freeslots >= 8 && arch == amd64");

  const auto json = PublishedJson(Select(offers, *where, glue::kTestNow), glue::kTestNow);

  ASSERT_THAT(json, SizeIs(1));
  EXPECT_EQ(json[0]["site"], "siteA");
  EXPECT_EQ(json[0]["slots_free"], 12);
  EXPECT_EQ(json[0]["shares"][0]["slots_free"], 12);
}

TEST(Published, WhatNobodyRenewsIsStale) {
  const auto offers = Two();
  const int64_t later = glue::kTestNow + 111;

  EXPECT_THAT(PublishedTable(Select(offers, {}, later), later), HasSubstr("stale"));
  EXPECT_EQ(PublishedJson(Select(offers, {}, later), later)[0]["is_up"], false);
}

}  // namespace
}  // namespace sekisho::client
