// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/score.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>
#include <set>

namespace sekisho::topology::sim {
namespace {

// Which pairs of four hosts a tree separates by a link: 0 none, else 1 ab|cd, 2 ac|bd, 3 ad|bc.
int Quartet(const Rooted& tree, int a, int b, int c, int d) {
  const int sums[] = {tree.Hops(a, b) + tree.Hops(c, d), tree.Hops(a, c) + tree.Hops(b, d),
                      tree.Hops(a, d) + tree.Hops(b, c)};
  const int best = static_cast<int>(std::min_element(sums, sums + 3) - sums);
  return *std::max_element(sums, sums + 3) == sums[best] ? 0 : best + 1;
}

// Every split of the placed hosts by a link, as a sum of random numbers of one side.
std::set<uint64_t> Splits(const Tree& tree, const std::vector<bool>& is_placed) {
  std::mt19937_64 random(42);
  std::vector<uint64_t> below(tree.vertex_count, 0);
  std::vector<int> count(tree.vertex_count, 0);
  int root = 0;
  uint64_t all = 0;
  int hosts = 0;
  for (int i = 0; i < tree.host_count; ++i) {
    const uint64_t key = random();
    if (is_placed[i]) {
      below[i] = key;
      count[i] = 1;
      all += key;
      ++hosts;
      root = i;
    }
  }
  const Rooted rooted = HangUp(tree, root);
  std::set<uint64_t> splits;
  for (size_t i = rooted.order.size(); i-- > 1;) {
    const int vertex = rooted.order[i];
    if (count[vertex] > 1 && count[vertex] < hosts - 1) {
      splits.insert(std::min(below[vertex], all - below[vertex]));
    }
    below[rooted.parent[vertex]] += below[vertex];
    count[rooted.parent[vertex]] += count[vertex];
  }
  return splits;
}

}  // namespace

Score Judge(const Truth& truth, const Tree& inferred, int questions, uint64_t seed) {
  Score score;
  const Tree right = TreeOf(truth);
  std::vector<bool> is_placed(truth.host_count, false);
  for (const Link& link : inferred.links) {
    for (const int end : {link.u, link.v}) {
      if (end < truth.host_count) {
        is_placed[end] = true;
      }
    }
  }
  std::vector<int> placed;
  std::map<int, std::vector<int>> of_cluster;
  for (int i = 0; i < truth.host_count; ++i) {
    if (is_placed[i]) {
      placed.push_back(i);
      of_cluster[truth.cluster_of[i]].push_back(i);
    } else if (!truth.is_dead[i]) {
      ++score.hosts_lost;
    }
  }
  const std::set<uint64_t> true_splits = Splits(right, is_placed);
  score.splits_true = static_cast<int>(true_splits.size());
  if (placed.size() < 2) {
    return score;
  }
  const std::set<uint64_t> our_splits = Splits(inferred, is_placed);
  for (const auto& [one, other] :
       {std::pair(&true_splits, &our_splits), {&our_splits, &true_splits}}) {
    for (const uint64_t split : *one) {
      score.robinson_foulds += other->contains(split) ? 0 : 1;
    }
  }
  const Rooted true_tree = HangUp(right, placed[0]);
  const Rooted our_tree = HangUp(inferred, placed[0]);
  std::mt19937_64 random(seed);
  std::vector<double> errors;
  for (int i = 0; i < 5000; ++i) {
    const int a = placed[random() % placed.size()];
    const int b = placed[random() % placed.size()];
    if (a != b) {
      const double rtt = true_tree.Rtt(a, b);
      errors.push_back(std::abs(our_tree.Rtt(a, b) - rtt) / std::max(rtt, 1e-9));
    }
  }
  std::sort(errors.begin(), errors.end());
  score.rtt_error_median = errors.empty() ? 0 : errors[errors.size() / 2];
  score.rtt_error_p99 = errors.empty() ? 0 : errors[errors.size() * 99 / 100];

  score.accuracy = score.accuracy_same_cluster = score.quartets = 1;
  if (placed.size() < 4) {
    return score;
  }
  const auto draw = [&random](const std::vector<int>& from, int(&four)[4]) {
    for (int i = 0; i < 4; ++i) {
      do {
        four[i] = from[random() % from.size()];
      } while (std::find(four, four + i, four[i]) != four + i);
    }
  };
  int false_negative = 0;
  int false_positive = 0;
  int wrong = 0;
  int missed = 0;
  int extra = 0;
  for (int i = 0; i < questions; ++i) {
    int h[4];
    draw(placed, h);
    const int is = Quartet(true_tree, h[0], h[1], h[2], h[3]);
    const int said = Quartet(our_tree, h[0], h[1], h[2], h[3]);
    false_negative += is > 1 && said <= 1 ? 1 : 0;
    false_positive += is <= 1 && said > 1 ? 1 : 0;
    wrong += is != said && is != 0 && said != 0 ? 1 : 0;
    missed += is != 0 && said == 0 ? 1 : 0;
    extra += is == 0 && said != 0 ? 1 : 0;
  }
  score.false_negative = static_cast<double>(false_negative) / questions;
  score.false_positive = static_cast<double>(false_positive) / questions;
  score.accuracy = 1 - score.false_negative - score.false_positive;
  score.quartets_wrong = static_cast<double>(wrong) / questions;
  score.quartets_missed = static_cast<double>(missed) / questions;
  score.quartets_extra = static_cast<double>(extra) / questions;
  score.quartets = 1 - score.quartets_wrong - score.quartets_missed - score.quartets_extra;
  int same = 0;
  int asked = 0;
  for (int i = 0; i < questions / 2; ++i) {
    const auto& cluster = of_cluster[truth.cluster_of[placed[random() % placed.size()]]];
    if (cluster.size() >= 4) {
      int h[4];
      draw(cluster, h);
      ++asked;
      same += (Quartet(true_tree, h[0], h[1], h[2], h[3]) > 1) ==
                      (Quartet(our_tree, h[0], h[1], h[2], h[3]) > 1)
                  ? 1
                  : 0;
    }
  }
  score.accuracy_same_cluster = asked == 0 ? 1 : static_cast<double>(same) / asked;
  return score;
}

}  // namespace sekisho::topology::sim
