// SPDX-License-Identifier: Apache-2.0
// Text formats: what is read, and that every mistake is named with file and line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "rankmap/generate.h"
#include "rankmap/network_format.h"
#include "rankmap/pattern_format.h"
#include "rankmap/qaplib.h"

namespace sekisho::rankmap {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

std::string PatternError(std::string_view text) {
  return std::string(ParsePattern(text, "f").status().message());
}
std::string NetworkError(std::string_view text) {
  return std::string(ParseNetwork(text, "f").status().message());
}
std::string QapError(std::string_view text) {
  return std::string(ParseQap(text, "f").status().message());
}

TEST(PatternFormat, ReadsCommentsStepsAndCounts) {
  const auto pattern = ParsePattern("# c\nranks 3 # here\n0 1 5\n\n1 2 6 4\n2 0 7 1 9\n", "f");

  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_EQ(pattern->ranks(), 3);
  EXPECT_THAT(
      pattern->messages(),
      testing::ElementsAre(Message{0, 1, 5, 0, 1}, Message{1, 2, 6, 4, 1}, Message{2, 0, 7, 1, 9}));
}

TEST(PatternFormat, PrintsWhatItReads) {
  const Pattern pattern = *Generate("bruck", {.ranks = 12, .bytes = 3, .permute = 2});

  const auto again = ParsePattern(PrintPattern(pattern), "f");

  ASSERT_TRUE(again.ok());
  EXPECT_EQ(again->Hash(), pattern.Hash());
}

TEST(PatternFormat, NamesTheLineOfEveryMistake) {
  EXPECT_THAT(PatternError(""), StartsWith("f:0: "));
  EXPECT_THAT(PatternError("0 1 2\n"), StartsWith("f:1: expected 'ranks N'"));
  EXPECT_THAT(PatternError("ranks 0\n"), StartsWith("f:1: ranks '0'"));
  EXPECT_THAT(PatternError("ranks 2\n0 2 1\n"), StartsWith("f:2: target '2'"));
  EXPECT_THAT(PatternError("ranks 2\n\n0 1 -1\n"), StartsWith("f:3: bytes '-1'"));
  EXPECT_THAT(PatternError("ranks 2\n0 1 nan\n"), StartsWith("f:2: bytes 'nan'"));
  EXPECT_THAT(PatternError("ranks 2\n0 1 1.5\n"), StartsWith("f:2: bytes '1.5'"));
  EXPECT_THAT(PatternError("ranks 2\n0 1\n"), StartsWith("f:2: "));
  EXPECT_THAT(PatternError("ranks 2\n0 1 9999999999999999999\n"), StartsWith("f:2: "));
  EXPECT_THAT(PatternError("ranks 2\n0 1 12"), HasSubstr("f:2: the last line does not end"));
  EXPECT_THAT(PatternError("ranks 2\n0 1 9007199254740992\n1 0 9007199254740992\n"),
              HasSubstr("63 bits"));
}

TEST(PatternFormat, ReadsDenseMatricesAndNothingOblong) {
  const auto pattern = ParsePattern("# dense\nmatrix 3\n0 5 0\n0 0 6 # row 1\n7 0 1\n", "f");

  ASSERT_TRUE(pattern.ok()) << pattern.status();
  EXPECT_EQ(pattern->Hash(), ParsePattern("ranks 3\n0 1 5\n1 2 6\n2 0 7\n2 2 1\n", "f")->Hash());
  EXPECT_THAT(PatternError("matrix 2\n0 1 2\n1 0 2\n"), StartsWith("f:2: row 0 of the matrix: expected 2 numbers, found 3"));
  EXPECT_THAT(PatternError("matrix 2\n0 1\n1\n"), StartsWith("f:3: row 1"));
  EXPECT_THAT(PatternError("matrix 2\n0 1\n"), StartsWith("f:2: row 1"));
  EXPECT_THAT(PatternError("matrix 2\n0 1\n1 0\n1 0\n"), StartsWith("f:4: more than the 2 rows"));
  EXPECT_THAT(PatternError("matrix 2\n0 -1\n1 0\n"), StartsWith("f:2: bytes '-1'"));
  EXPECT_THAT(PatternError("matrix 2\n0 nan\n1 0\n"), StartsWith("f:2: bytes 'nan'"));
  EXPECT_THAT(PatternError("matrix 2\n0 1\n1 0"), StartsWith("f:3: the last line does not end"));
  EXPECT_THAT(PatternError("matrix 9000\n"), StartsWith("f:1: ranks '9000'"));
}

TEST(PlacementFormat, ReadsNodesAndNamesMistakes) {
  EXPECT_THAT(*ParsePlacement("# a\n2\n0\n1\n", "f"), testing::ElementsAre(2, 0, 1));
  EXPECT_FALSE(ParsePlacement("", "f").ok());
  EXPECT_FALSE(ParsePlacement("1 2\n", "f").ok());
  EXPECT_THAT(std::string(ParsePlacement("1\n-2\n", "f").status().message()), StartsWith("f:2: "));
  EXPECT_FALSE(ParsePlacement("1\n2", "f").ok());
}

TEST(NetworkFormat, ReadsEveryKind) {
  const auto torus =
      ParseNetwork("torus 4x3x2\norder zyx\ntie minus\ncapacity 2\nlatency 1e-6\n", "f");
  ASSERT_TRUE(torus.ok()) << torus.status();
  EXPECT_EQ(torus->slots(), 48);
  EXPECT_THAT(torus->grid().order, testing::ElementsAre(2, 1, 0));
  EXPECT_EQ(torus->grid().tie, Tie::kMinus);
  EXPECT_EQ(torus->latency, 1e-6);

  EXPECT_EQ(ParseNetworkSpec("mesh:5x5")->Distance(0, 24), 8);
  EXPECT_EQ(ParseNetworkSpec("torus:5x5,tie=parity")->grid().tie, Tie::kParity);
  EXPECT_EQ(ParseNetwork("tree 4:3:2 8\n", "f")->Distance(0, 31), 8);
  EXPECT_EQ(ParseNetwork("matrix 2\n0 5\n7 0\n", "f")->Distance(1, 0), 7);
  const auto clusters = ParseNetwork("cluster a 2 10\ncluster b 3 20\nbetween a b 900\n", "f");
  ASSERT_TRUE(clusters.ok()) << clusters.status();
  EXPECT_EQ(clusters->nodes(), 5);
  EXPECT_EQ(clusters->Distance(0, 1), 10);
  EXPECT_EQ(clusters->Distance(1, 4), 900);
  EXPECT_EQ(clusters->Distance(4, 4), 0);
}

TEST(NetworkFormat, NamesTheLineOfEveryMistake) {
  EXPECT_THAT(NetworkError("torus\n"), StartsWith("f:1: "));
  EXPECT_THAT(NetworkError("torus 4x0\n"), StartsWith("f:1: size '0'"));
  EXPECT_THAT(NetworkError("torus 4x4\nmesh 4x4\n"), StartsWith("f:2: a second network"));
  EXPECT_THAT(NetworkError("matrix 2\n0 1\n1\n"), StartsWith("f:3: row 1"));
  EXPECT_THAT(NetworkError("matrix 2\n0 1\n"), HasSubstr("row 1"));
  EXPECT_THAT(NetworkError("matrix 2\n0 -1\n1 0\n"), StartsWith("f:2: distance '-1'"));
  EXPECT_THAT(NetworkError("matrix 2\n0 inf\n1 0\n"), HasSubstr("disconnected"));
  EXPECT_THAT(NetworkError("matrix 2\n0 nan\n1 0\n"), HasSubstr("'nan'"));
  EXPECT_THAT(NetworkError("cluster a 2 1\ncluster b 2 1\n"), HasSubstr("disconnected"));
  EXPECT_THAT(NetworkError("capacity 0\n"), StartsWith("f:1: "));
  EXPECT_THAT(NetworkError("what\n"), HasSubstr("unknown"));
  EXPECT_THAT(NetworkError("torus 16x1"), HasSubstr("cut off"));
  EXPECT_FALSE(ParseNetworkSpec("torus:abc").ok());
  EXPECT_FALSE(ParseNetwork("torus 2x2\norder xx\n", "f").ok());
}

TEST(Qaplib, ReadsFreeFormAndSkipsAStatedOptimum) {
  const auto plain = ParseQap("2\n\n0 1\n2 0\n 0 3 4 0\n", "f");
  const auto stated = ParseQap("2 77\n0 1 2 0\n0 3 4 0", "f");

  ASSERT_TRUE(plain.ok() && stated.ok());
  EXPECT_EQ(plain->a, stated->a);
  EXPECT_EQ(plain->Cost({0, 1}), 1 * 3 + 2 * 4);
  EXPECT_EQ(plain->Cost({1, 0}), 1 * 4 + 2 * 3);
}

TEST(Qaplib, RefusesWhatIsNotTwoSquareMatrices) {
  EXPECT_THAT(QapError("2\n0 1 2 0\n0 3 4\n"), HasSubstr("two square matrices"));
  EXPECT_THAT(QapError("2\n0 1 2 0\n0 3 4 0 5 6\n"), HasSubstr("two square matrices"));
  EXPECT_THAT(QapError("2\n0 1 -2 0\n0 3 4 0\n"), StartsWith("f:2: number '-2'"));
  EXPECT_THAT(QapError("2\n0 nan 2 0\n0 3 4 0\n"), HasSubstr("nan"));
  EXPECT_THAT(QapError("2\n0 1 2 0\n0 3 4 1"), StartsWith("f:3: the last line does not end"));  // 1 or 10?
  EXPECT_FALSE(ParseQap("", "f").ok());
  EXPECT_FALSE(ParseQap("9999999\n", "f").ok());
}

TEST(Qaplib, SolutionsAreReadAndPrinted) {
  const auto solution = ParseQapSolution("3, 42\n 2,1 3\n", "f");

  ASSERT_TRUE(solution.ok()) << solution.status();
  EXPECT_EQ(PrintQapSolution(*solution), "3 42\n2 1 3\n");
  EXPECT_FALSE(ParseQapSolution("3 42 1 1 2\n", "f").ok());
}

TEST(Generate, BruckIsThePapersPattern) {
  const Pattern pattern = *Generate("bruck", {.ranks = 4096, .bytes = 2048});

  EXPECT_EQ(pattern.total_bytes(), 34351349760);
  EXPECT_EQ(pattern.total_count(), 49152);
  EXPECT_EQ(pattern.steps(), 12);
}

TEST(Generate, PermutationKeepsTheTraffic) {
  GenerateOptions options{.grid = {4, 5}};
  for (const std::string_view name : {"stencil", "halo", "fftrows", "lu", "bt", "mg", "cg"}) {
    const Pattern plain = *Generate(name, options);
    GenerateOptions permuted = options;
    permuted.permute = 3;
    EXPECT_EQ(Generate(name, permuted)->total_bytes(), plain.total_bytes()) << name;
    EXPECT_NE(Generate(name, permuted)->Hash(), plain.Hash()) << name;
  }
  EXPECT_FALSE(Generate("nothing", options).ok());
  EXPECT_FALSE(Generate("bruck", {}).ok());
}

}  // namespace
}  // namespace sekisho::rankmap
