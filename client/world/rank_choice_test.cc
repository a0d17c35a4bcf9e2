// SPDX-License-Identifier: Apache-2.0
#include "client/world/rank_choice.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace sekisho::client {
namespace {

using std::chrono_literals::operator""ms;
using testing::ElementsAre;

// Four ranks, two at each of two sites, each on a node of its own: 0 talks to 2, 1 to 3.
TrafficReport Crossed(int64_t inside_ns, int64_t between_ns) {
  TrafficReport report(4);
  for (int rank = 0; rank < 4; ++rank) {
    std::string text = fmt::format("sekisho-traffic node {0} {0} 0 0\n", rank);
    int lines = 1;
    for (int other = rank + 1; other < 4; ++other, ++lines) {
      text += fmt::format("sekisho-traffic far {} {} {} 0\n", rank, other, rank / 2 == other / 2 ? inside_ns : between_ns);
    }
    text += fmt::format("sekisho-traffic sent {} {} 800 100\n", rank, rank ^ 2);
    report.Add(rank, text + fmt::format("sekisho-traffic done {} 4 {} 0\n", rank, lines + 1));
  }
  return report;
}
const std::vector<int> kTwoSites = {0, 0, 1, 1};

TEST(RankChoice, RanksThatTalkComeToOneSite) {
  const auto choice = ChooseRanks(Crossed(100'000, 10'000'000), kTwoSites, 200ms);

  ASSERT_TRUE(choice.ok());
  const std::vector<int>& ranks = choice->rank_of_slot;
  EXPECT_EQ(ranks[0] ^ ranks[1], 2);
  EXPECT_EQ(ranks[2] ^ ranks[3], 2);
  EXPECT_NEAR(choice->seconds_before, 400 * 10e-3, 1e-6);
  EXPECT_NEAR(choice->seconds, 400 * 100e-6, 1e-6);
}

TEST(RankChoice, TheUsersOrderStaysWhereNothingIsGained) {
  const auto choice = ChooseRanks(Crossed(100'000, 100'000), {0, 0, 0, 0}, 50ms);

  ASSERT_TRUE(choice.ok());
  EXPECT_THAT(choice->rank_of_slot, ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(choice->seconds, choice->seconds_before);
}

TEST(RankChoice, ASiteIsNeverWiderInsideThanToOthers) {
  const auto network = SlotNetwork(Crossed(30'000'000, 10'000'000), kTwoSites);

  ASSERT_TRUE(network.ok());
  EXPECT_EQ(network->Distance(0, 1), 100'000);
  EXPECT_EQ(network->Distance(0, 2), 100'000);
  EXPECT_EQ(network->Distance(1, 1), 0);
}

TEST(RankChoice, NearlyTheSameIsTheSame) {
  TrafficReport report = Crossed(100'000, 10'000'000);
  report.Add(0, "sekisho-traffic far 0 2 14000000 0\n");  // too late: it was done
  EXPECT_EQ(report.RoundTrip(0, 2), 10'000'000);

  TrafficReport noisy(3);
  const char* const far[] = {"far 0 1 9000000 0\nsekisho-traffic far 0 2 11000000 0", "far 1 2 10000000 0", "far 2 2 1000 0"};
  for (int rank = 0; rank < 3; ++rank) {
    noisy.Add(rank, fmt::format("sekisho-traffic node {0} {0} 0 0\nsekisho-traffic {1}\nsekisho-traffic done {0} 3 {2} 0\n", rank,
                                far[rank], rank == 0 ? 3 : 2));
  }
  ASSERT_TRUE(noisy.is_whole());
  const auto network = SlotNetwork(noisy, {0, 0, 0});
  ASSERT_TRUE(network.ok());
  EXPECT_EQ(network->Distance(0, 1), 100'000);
  EXPECT_EQ(network->Distance(0, 2), 100'000);
}

}  // namespace
}  // namespace sekisho::client
