// SPDX-License-Identifier: Apache-2.0
#include "topology/islands.h"

#include <algorithm>
#include <functional>
#include <random>
#include <set>

#include <gmock/gmock.h>

#include "topology/fast.h"
#include "topology/run.h"
#include "topology/sim/families.h"
#include "topology/sim/network.h"
#include "topology/sim/score.h"

namespace sekisho::topology {
namespace {

using ::testing::Each;
using ::testing::Field;
using ::testing::SizeIs;

enum class Way { kDirect, kRelayed, kNone };
using WayOf = std::function<Way(int left, int right)>;  // sites, left < right

constexpr double kRelayUs = 180;  // what its legs and its own time come to, whatever the direct way

struct Seen {
  Outcome outcome;
  RunTotals totals;
  sim::Score score;
  int failures = 0;  // between sites that nothing crosses
};

// Through firewalls: between sites the way is as it is told.
Seen Infer(const sim::Truth& truth, const WayOf& way, bool has_hints = true, uint64_t seed = 3) {
  sim::Network network(truth, seed);
  std::mt19937_64 random(seed);
  FastMethod method(
      truth.host_count,
      {.site_hints = has_hints ? truth.cluster_of : std::vector<int>(), .seed = seed});
  Seen seen;
  seen.totals = *RunVirtually(method, [&](const Request& request, double) {
    const auto [left, right] =
        std::minmax(truth.cluster_of[request.from], truth.cluster_of[request.to]);
    Answer answer = network.Measure(request);
    switch (left == right ? Way::kDirect : way(left, right)) {
      case Way::kDirect:
        return answer;
      case Way::kRelayed:
        answer.is_relayed = true;
        answer.min_us = answer.low_us = answer.high_us =
            kRelayUs + std::exponential_distribution(0.1)(random);
        answer.duration_us = 2 * answer.min_us * answer.pings;
        return answer;
      case Way::kNone:
        ++seen.failures;
        return Answer{.duration_us = 1.8e6};
    }
    return Answer{};
  });
  seen.outcome = method.Finish();
  seen.score = sim::Judge(truth, seen.outcome.tree, 20000);
  return seen;
}

// Hosts of the two sides of each link that is marked.
std::vector<std::set<int>> RelayedSides(const Seen& seen) {
  std::vector<std::set<int>> sides;
  const Tree& tree = seen.outcome.tree;
  for (const Link& cut : tree.links) {
    if (cut.is_relayed) {
      Tree rest = tree;
      std::erase_if(rest.links, [](const Link& link) { return link.is_relayed; });
      std::set<int> side;
      for (const int vertex : HangUp(rest, cut.u).order) {
        if (tree.IsHost(vertex)) {
          side.insert(vertex);
        }
      }
      sides.push_back(side);
    }
  }
  return sides;
}

std::set<int> HostsOf(const sim::Truth& truth, const std::set<int>& sites) {
  std::set<int> hosts;
  for (int host = 0; host < truth.host_count; ++host) {
    if (sites.contains(truth.cluster_of[host])) {
      hosts.insert(host);
    }
  }
  return hosts;
}

TEST(Islands, AreOneTreeOverARelayWhoseLinkIsMarked) {
  const sim::Truth truth = sim::MakeGrid(32, 2, 71);

  const Seen seen = Infer(truth, [](int, int) { return Way::kRelayed; });

  EXPECT_THAT(seen.outcome.excluded, SizeIs(0));
  EXPECT_GE(seen.score.accuracy_same_cluster, 0.99);
  const auto sides = RelayedSides(seen);
  ASSERT_THAT(sides, SizeIs(1));
  EXPECT_TRUE(sides[0] == HostsOf(truth, {0}) || sides[0] == HostsOf(truth, {1}));
}

TEST(Islands, LoadTheRelayWithFourMeasurementsForTwoSites) {
  const sim::Truth truth = sim::MakeGrid(96, 3, 72);

  const Seen seen = Infer(truth, [](int, int) { return Way::kRelayed; });

  EXPECT_EQ(seen.totals.relayed, 3 * 4);
  EXPECT_THAT(seen.outcome.excluded, SizeIs(0));
}

TEST(Islands, HaveTheLengthOfTheRelaysRoundTrips) {
  const sim::Truth truth = sim::MakeGrid(32, 2, 73);

  const Seen seen = Infer(truth, [](int, int) { return Way::kRelayed; });

  const std::set<int> far = HostsOf(truth, {1});
  const Rooted rooted = HangUp(seen.outcome.tree, *HostsOf(truth, {0}).begin());
  for (const int host : far) {
    EXPECT_NEAR(rooted.depth_us[host], kRelayUs, 0.25 * kRelayUs);
  }
}

TEST(Islands, OfTwoHostsHangHalfWayBetweenThem) {
  const sim::Truth truth = sim::MakeGrid(4, 2, 79);

  const Seen seen = Infer(truth, [](int, int) { return Way::kRelayed; });

  const Tree& tree = seen.outcome.tree;
  ASSERT_THAT(tree.links, SizeIs(5));
  std::vector<double> lengths(tree.vertex_count, 0);  // of the hosts' links, by their switch
  for (const Link& link : tree.links) {
    if (!link.is_relayed) {
      const int inner = tree.IsHost(link.u) ? link.v : link.u;
      EXPECT_NEAR(link.rtt_us, lengths[inner] == 0 ? link.rtt_us : lengths[inner], 1e-6);
      lengths[inner] = link.rtt_us;
    }
  }
}

// A relay next door answers sooner than what counts as near.
TEST(Islands, AreToldApartThoughTheRelayIsNear) {
  const sim::Truth truth = sim::MakeGrid(32, 2, 74);

  const Seen seen = Infer(
      truth, [](int, int) { return Way::kRelayed; }, /*has_hints=*/false);

  EXPECT_EQ(std::set(seen.outcome.site_of.begin(), seen.outcome.site_of.end()).size(), 2U);
  EXPECT_THAT(seen.outcome.excluded, SizeIs(0));
  EXPECT_GE(seen.score.accuracy_same_cluster, 0.99);
}

TEST(Islands, HoldTheSitesThatMeasureEachOtherDirectly) {
  const sim::Truth truth = sim::MakeGrid(96, 3, 75);

  const Seen seen =
      Infer(truth, [](int, int right) { return right == 2 ? Way::kRelayed : Way::kDirect; });

  EXPECT_THAT(seen.outcome.excluded, SizeIs(0));
  EXPECT_GE(seen.score.accuracy_same_cluster, 0.99);
  const auto sides = RelayedSides(seen);
  ASSERT_THAT(sides, SizeIs(1));
  EXPECT_TRUE(sides[0] == HostsOf(truth, {0, 1}) || sides[0] == HostsOf(truth, {2}));
}

TEST(Islands, ThatNothingReachesAreLeftOutByName) {
  const sim::Truth truth = sim::MakeGrid(96, 3, 76);

  const Seen seen =
      Infer(truth, [](int, int right) { return right == 2 ? Way::kNone : Way::kRelayed; });

  EXPECT_EQ(seen.failures, 2 * 8);
  EXPECT_THAT(seen.outcome.excluded, SizeIs(32));
  EXPECT_THAT(seen.outcome.excluded,
              Each(Field(&Excluded::why, "no way to its site, not even through a relay")));
  for (const Excluded& excluded : seen.outcome.excluded) {
    EXPECT_EQ(truth.cluster_of[excluded.host], 2);
  }
}

TEST(Islands, OfFewHostsAreNotBlamedForTheFirewallsBetween) {
  sim::Truth truth = sim::MakeGrid(6, 3, 77);

  const Seen seen = Infer(truth, [](int, int) { return Way::kNone; });

  EXPECT_THAT(seen.outcome.tree.links, SizeIs(1));  // between the two hosts of a site
  EXPECT_THAT(seen.outcome.excluded, SizeIs(4));
  EXPECT_THAT(seen.outcome.excluded,
              Each(Field(&Excluded::why, "no way to its site, not even through a relay")));
}

TEST(Islands, WithoutAnyHostThatAnswersAreNamedAndTheTreeIsTheOthers) {
  sim::Truth truth = sim::MakeGrid(32, 2, 78);
  for (const int host : HostsOf(truth, {1})) {
    truth.is_dead[host] = true;
  }

  const Seen seen = Infer(truth, [](int, int) { return Way::kRelayed; });

  EXPECT_EQ(seen.outcome.excluded.size(), HostsOf(truth, {1}).size());
  EXPECT_THAT(seen.outcome.excluded, Each(Field(&Excluded::why, "no answer")));
  EXPECT_THAT(RelayedSides(seen), SizeIs(0));
}

TEST(Ledger, ForgetsTheRelayWhereTheDirectWayIsKnown) {
  Ledger ledger(2);
  const Request request{.from = 0, .to = 1};
  const auto answer = [](double us, bool is_relayed) {
    return Answer{.is_ok = true, .min_us = us, .pings = 4, .is_relayed = is_relayed};
  };

  ledger.Add(request, answer(100, true));
  EXPECT_TRUE(ledger.IsRelayed(0, 1));
  EXPECT_THAT(ledger.Between({0}, {1}), SizeIs(0));
  EXPECT_THAT(ledger.RelayedBetween({0}, {1}), SizeIs(1));

  ledger.Add(request, answer(300, false));
  ledger.Add(request, answer(90, true));
  EXPECT_EQ(ledger.Rtt(0, 1), 300);
  EXPECT_THAT(ledger.Between({0}, {1}), SizeIs(1));
  EXPECT_THAT(ledger.RelayedBetween({0}, {1}), SizeIs(0));
}

}  // namespace
}  // namespace sekisho::topology
