// SPDX-License-Identifier: Apache-2.0
#include "client/world/any_part.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using testing::HasSubstr;

constexpr int64_t kNow = 1'800'000'000;

// A site with one queue and one kind of nodes, that has said so just now.
glue::Offer Site(const std::string& name, int64_t free, int64_t total, const std::string& service = "jobmanager-agent") {
  glue::Offer offer;
  offer.site = name;
  offer.contact = name + ".example:2119";
  offer.health = "ok";
  offer.serving_state = "production";
  offer.created_s = kNow;
  offer.mpi = {"mpich"};
  glue::Environment nodes;
  nodes.id = name + "-nodes";
  nodes.processors = total;
  nodes.nodes = 1;
  nodes.free_slots = free;
  nodes.total_slots = total;
  offer.environments = {nodes};
  glue::Share share;
  share.service = service;
  share.serving_state = "production";
  share.free_slots = free;
  share.environments = {nodes.id};
  offer.shares = {share};
  return offer;
}

std::vector<std::string> PlacesOf(const absl::StatusOr<std::vector<RankRange>>& parts) {
  std::vector<std::string> places;
  if (parts.ok()) {
    for (const RankRange& part : *parts) {
      places.push_back(part.contact);
    }
  }
  return places;
}

absl::StatusOr<std::vector<RankRange>> Place(std::vector<RankRange> parts, std::vector<glue::Offer> offers,
                                             std::string* why = nullptr) {
  glue::Demand demand;
  demand.needs_mpi = true;
  return PlaceAnyParts(std::move(parts), demand, std::move(offers), glue::Where(), kNow, {}, why);
}

TEST(AnyPart, PartsThatAreNamedStayWhereTheyAre) {
  const std::vector<RankRange> named = {{"siteA", 0, 2}, {"siteB", 2, 2}};
  EXPECT_EQ(*Place(named, {Site("siteA", 0, 8), Site("siteB", 0, 8)}), named);
}

TEST(AnyPart, GoesWhereItFitsNow) {
  EXPECT_EQ(PlacesOf(Place({{"any", 0, 4}}, {Site("siteA", 2, 8), Site("siteB", 4, 8)})),
            (std::vector<std::string>{"siteB"}));
}

TEST(AnyPart, WhatEarlierAndNamedPartsTakeIsNotFree) {
  const std::vector<glue::Offer> offers = {Site("siteA", 8, 8), Site("siteB", 5, 8)};
  EXPECT_EQ(PlacesOf(Place({{"any", 0, 5}, {"any", 5, 4}}, offers)), (std::vector<std::string>{"siteA", "siteB"}));
  EXPECT_EQ(PlacesOf(Place({{"any", 0, 5}, {"siteA", 5, 4}}, offers)), (std::vector<std::string>{"siteB", "siteA"}));
  EXPECT_EQ(PlacesOf(Place({{"siteA.example:2119", 0, 8}, {"any", 8, 2}}, offers)),
            (std::vector<std::string>{"siteA.example:2119", "siteB"}));
}

TEST(AnyPart, APartThatNoSiteCanRunIsNamedWithTheReason) {
  const auto parts = Place({{"any", 0, 4}, {"any", 4, 9}}, {Site("siteA", 8, 8)});
  ASSERT_FALSE(parts.ok());
  EXPECT_THAT(std::string(parts.status().message()), HasSubstr("ranks 4 to 12"));
  EXPECT_THAT(std::string(parts.status().message()), HasSubstr("slots: wanted >= 9, published 8"));
}

TEST(AnyPart, OnlyWhereAgentsStartRanks) {
  EXPECT_EQ(PlacesOf(Place({{"any", 0, 1}}, {Site("siteA", 8, 8, "jobmanager-slurm"), Site("siteB", 1, 8)})),
            (std::vector<std::string>{"siteB"}));
}

TEST(AnyPart, SaysWhy) {
  std::string why;
  ASSERT_TRUE(Place({{"any", 0, 2}, {"any", 2, 2}}, {Site("siteA", 8, 8)}, &why).ok());
  EXPECT_THAT(why, HasSubstr("ranks 0 to 1:\n"));
  EXPECT_THAT(why, HasSubstr("ranks 2 to 3:\n"));
  EXPECT_THAT(why, HasSubstr("chosen: siteA\n"));
}

}  // namespace
}  // namespace sekisho::client
