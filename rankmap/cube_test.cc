// SPDX-License-Identifier: Apache-2.0
#include "rankmap/cube.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/construct.h"
#include "rankmap/evaluate.h"
#include "rankmap/generate.h"
#include "rankmap/network_format.h"

namespace sekisho::rankmap {
namespace {

// A cube of 2^bits ranks with shuffled labels, `bytes` along every bit.
Pattern Cube(int bits, int64_t bytes) {
  std::vector<Message> messages;
  const uint32_t ranks = 1u << bits;
  for (uint32_t r = 0; r < ranks; ++r) {
    for (int bit = 0; bit < bits; ++bit) {
      messages.push_back({r, r ^ (1u << bit), bytes, 0, 1});
    }
  }
  std::vector<uint32_t> labels(ranks);
  for (uint32_t r = 0; r < ranks; ++r) {
    labels[r] = (r * 37 + 11) % ranks;
  }
  return Relabel(*Pattern::Create(static_cast<int>(ranks), std::move(messages)), labels);
}

double Placed(const Pattern& pattern, const std::string& spec, int construction = kFoldConstruction) {
  const Network network = *ParseNetworkSpec(spec);
  const Problem problem(pattern, network, {});
  Random random(1);
  bool was_stopped = false;
  int64_t moves = 0;
  const auto placement = FixedConstruction(construction, problem, random, [] { return false; }, was_stopped, moves);
  EXPECT_TRUE(placement) << spec;
  return placement ? Evaluate(pattern, network, *placement).avg_hops : 0;
}

// Rings by Gray code: 88 hops for the 32 edges of 16 corners, 20 for the 12 of eight (no way round is shorter).
TEST(Cube, GoesTheLeastWayRoundTori) {
  EXPECT_DOUBLE_EQ(Placed(Cube(9, 8), "torus:8x8x8"), 20.0 / 12);
  EXPECT_DOUBLE_EQ(Placed(Cube(11, 8), "torus:16x16x8"), (8 * 88.0 / 32 + 3 * 20.0 / 12) / 11);
  EXPECT_DOUBLE_EQ(Placed(Cube(6, 8), "torus:4x4x4"), 1.0);
}

TEST(Cube, FitsMeshesAndPartlyFilledTori) {
  EXPECT_DOUBLE_EQ(Placed(Cube(6, 8), "mesh:8x8"), 7.0 / 3);
  EXPECT_DOUBLE_EQ(Placed(Cube(6, 8), "torus:5x6x7"), 1.5);
}

TEST(Cube, HeavyBitsGoTheShortestWay) {
  const Pattern pattern = *Generate("recursive", {.ranks = 64, .bytes = 1, .permute = 5});

  EXPECT_LT(Placed(pattern, "mesh:8x8"), 1.5);
}

TEST(Cube, RanksInTheirNaturalOrderGoAlongGrayCodes) {
  const Pattern pattern = *Generate("bruck", {.ranks = 1024, .bytes = 2048});

  EXPECT_LT(Placed(pattern, "torus:4x4x4x8x2", kReversedConstruction), 1.335) << "by halves of each dimension 1.371";
  EXPECT_LT(Placed(pattern, "torus:8x8x16", kReversedConstruction), 1.49) << "by halves 1.514";
}

TEST(Cube, WhatOnlyLooksLikeOneIsNone) {
  const auto is_cube = [](const Pattern& pattern) {
    return RecogniseCube(MakeGraph(pattern, Weight::kBytes), pattern.ranks()).has_value();
  };
  std::vector<Message> twisted;  // degree 4, 16 ranks: a ring with chords
  for (uint32_t r = 0; r < 16; ++r) {
    for (const uint32_t step : {1u, 2u, 14u, 15u}) {
      twisted.push_back({r, (r + step) % 16, 5, 0, 1});
    }
  }

  EXPECT_TRUE(is_cube(Cube(5, 3)));
  EXPECT_TRUE(is_cube(*Generate("stencil", {.grid = {4, 4, 4}, .permute = 2})));  // rings of four are cubes
  EXPECT_FALSE(is_cube(*Pattern::Create(16, std::move(twisted))));
  EXPECT_FALSE(is_cube(*Generate("stencil", {.grid = {8, 8, 8}})));
  EXPECT_FALSE(is_cube(*Generate("random", {.ranks = 64, .degree = 3, .seed = 2})));
  EXPECT_FALSE(is_cube(*Pattern::Create(1, {})));
}

}  // namespace
}  // namespace sekisho::rankmap
