// SPDX-License-Identifier: Apache-2.0
#include "topology/fit.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "topology/median.h"

namespace sekisho::topology {
namespace {

constexpr double kHuber = 2.0;  // standard deviations from which on an observation loses weight

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) {
    sum += a[i] * b[i];
  }
  return sum;
}

}  // namespace

Fit::Fit(Tree tree, const std::vector<Observation>& observations)
    : tree_(std::move(tree)), observations_(observations) {
  rooted_ = HangUp(tree_, tree_.vertex_count - 1);
  pairs_.reserve(observations.size());
  for (const Observation& o : observations) {
    pairs_.push_back({o.a, o.b, rooted_.Ancestor(o.a, o.b)});
    weights_.push_back(1 / (o.sigma_us * o.sigma_us));
  }
  is_gone_.assign(tree_.links.size(), false);
}

bool Fit::IsInner(int link) const {
  return !tree_.IsHost(tree_.links[link].u) && !tree_.IsHost(tree_.links[link].v);
}

// The transposed system: for each link the sum over the pairs that cross it.
void Fit::Gather(const std::vector<double>& per_pair, std::vector<double>& per_link) const {
  sums_.assign(tree_.vertex_count, 0);
  for (size_t i = 0; i < pairs_.size(); ++i) {
    sums_[pairs_[i].a] += per_pair[i];
    sums_[pairs_[i].b] += per_pair[i];
    sums_[pairs_[i].ancestor] -= 2 * per_pair[i];
  }
  per_link.assign(tree_.links.size(), 0);
  for (size_t i = rooted_.order.size(); i-- > 1;) {
    const int vertex = rooted_.order[i];
    const int link = rooted_.parent_link[vertex];
    per_link[link] = is_gone_[link] ? 0 : sums_[vertex];
    sums_[rooted_.parent[vertex]] += sums_[vertex];
  }
}

void Fit::Spread(const std::vector<double>& lengths, std::vector<double>& per_pair) const {
  depth_.assign(tree_.vertex_count, 0);
  for (size_t i = 1; i < rooted_.order.size(); ++i) {
    const int vertex = rooted_.order[i];
    const int link = rooted_.parent_link[vertex];
    depth_[vertex] = depth_[rooted_.parent[vertex]] + (is_gone_[link] ? 0 : lengths[link]);
  }
  per_pair.resize(pairs_.size());
  for (size_t i = 0; i < pairs_.size(); ++i) {
    per_pair[i] = depth_[pairs_[i].a] + depth_[pairs_[i].b] - 2 * depth_[pairs_[i].ancestor];
  }
}

// Conjugate gradients on the normal equations, preconditioned by their diagonal, from where we are.
void Fit::SolveWeighted(int iterations) {
  const size_t n = tree_.links.size();
  std::vector<double> x(n);
  for (size_t i = 0; i < n; ++i) {
    x[i] = is_gone_[i] ? 0 : tree_.links[i].rtt_us;
  }
  // Diagonal: the weight that crosses each link.
  std::vector<double> diagonal;
  Gather(weights_, diagonal);
  std::vector<double> per_pair;
  Spread(x, per_pair);
  for (size_t i = 0; i < pairs_.size(); ++i) {
    per_pair[i] = weights_[i] * (observations_[i].rtt_us - per_pair[i]);
  }
  std::vector<double> residual;
  Gather(per_pair, residual);
  std::vector<double> scaled(n);
  const auto precondition = [&] {
    for (size_t i = 0; i < n; ++i) {
      scaled[i] = diagonal[i] > 0 ? residual[i] / diagonal[i] : 0;
    }
  };
  precondition();
  std::vector<double> direction = scaled;
  std::vector<double> image;
  double energy = Dot(residual, scaled);
  const double enough = energy * 1e-10 + 1e-12;
  for (int k = 0; k < iterations && energy > enough; ++k) {
    Spread(direction, per_pair);
    for (size_t i = 0; i < pairs_.size(); ++i) {
      per_pair[i] *= weights_[i];
    }
    Gather(per_pair, image);
    const double curvature = Dot(direction, image);
    if (curvature <= 0) {
      break;
    }
    const double step = energy / curvature;
    for (size_t i = 0; i < n; ++i) {
      x[i] += step * direction[i];
      residual[i] -= step * image[i];
    }
    precondition();
    const double next = Dot(residual, scaled);
    for (size_t i = 0; i < n; ++i) {
      direction[i] = scaled[i] + next / energy * direction[i];
    }
    energy = next;
  }
  for (size_t i = 0; i < n; ++i) {
    tree_.links[i].rtt_us = x[i];
  }
}

std::vector<double> Fit::Residuals() const {
  std::vector<double> lengths;
  for (const Link& link : tree_.links) {
    lengths.push_back(link.rtt_us);
  }
  std::vector<double> residuals;
  Spread(lengths, residuals);
  for (size_t i = 0; i < residuals.size(); ++i) {
    residuals[i] = observations_[i].rtt_us - residuals[i];
  }
  return residuals;
}

double Fit::Spread() const {
  std::vector<double> ratios = Residuals();
  for (size_t i = 0; i < ratios.size(); ++i) {
    ratios[i] = std::abs(ratios[i]) / observations_[i].sigma_us;
  }
  // Few degrees of freedom left: say no less than what was assumed.
  const double freedom =
      static_cast<double>(pairs_.size()) - static_cast<double>(tree_.links.size());
  if (freedom < 3) {
    return 1;
  }
  return 1.4826 * Median(std::move(ratios)) *
         std::sqrt(static_cast<double>(pairs_.size()) / freedom);
}

void Fit::Reweigh() {
  const std::vector<double> residuals = Residuals();
  const double spread = std::max(Spread(), 1e-6);
  for (size_t i = 0; i < residuals.size(); ++i) {
    const double sigma = observations_[i].sigma_us * spread;
    const double distance = std::abs(residuals[i]) / sigma;
    weights_[i] = 1 / (observations_[i].sigma_us * observations_[i].sigma_us) *
                  (distance <= kHuber ? 1 : kHuber * kHuber / (distance * distance));
  }
}

void Fit::Solve(int rounds) {
  SolveWeighted(60);
  for (int i = 0; i < rounds; ++i) {
    Reweigh();
    SolveWeighted(30);
  }
}

double Fit::LengthError(int link) const {
  // The two switches as they stand: with all that was contracted into them.
  std::vector<char> side(tree_.vertex_count, 0);
  const int child =
      rooted_.parent_link[tree_.links[link].u] == link ? tree_.links[link].u : tree_.links[link].v;
  side[rooted_.parent[child]] = 2;
  for (int vertex = rooted_.parent[child];
       rooted_.parent[vertex] >= 0 && is_gone_[rooted_.parent_link[vertex]];
       vertex = rooted_.parent[vertex]) {
    side[rooted_.parent[vertex]] = 2;
  }
  std::vector<int> branch(tree_.vertex_count, -1);
  std::vector<char> branch_side{2};  // branch 0: what lies above
  for (const int vertex : rooted_.order) {
    const int parent = rooted_.parent[vertex];
    if (vertex == child) {
      side[vertex] = 1;
    } else if (parent >= 0 && side[parent] != 0 && is_gone_[rooted_.parent_link[vertex]]) {
      side[vertex] = side[parent];
    }
    if (side[vertex] != 0) {
      continue;
    }
    if (parent >= 0 && side[parent] != 0) {
      branch[vertex] = static_cast<int>(branch_side.size());
      branch_side.push_back(side[parent]);
    } else {
      branch[vertex] = parent < 0 ? 0 : branch[parent];
    }
  }
  // Unknown: the mean way of each branch to its switch, and the link.  Each pair of branches says
  // one thing, with the weight of the pairs of hosts between them.
  const int k = static_cast<int>(branch_side.size());
  std::vector<double> weight(static_cast<size_t>(k) * k, 0);
  for (size_t i = 0; i < pairs_.size(); ++i) {
    const int a = branch[pairs_[i].a];
    const int b = branch[pairs_[i].b];
    if (a >= 0 && b >= 0 && a != b) {
      weight[static_cast<size_t>(a) * k + b] += weights_[i];
      weight[static_cast<size_t>(b) * k + a] += weights_[i];
    }
  }
  std::vector<double> diagonal(k, 0);
  std::vector<double> coupling(k, 0);
  double own = 0;
  for (int a = 0; a < k; ++a) {
    for (int b = 0; b < k; ++b) {
      const double w = weight[static_cast<size_t>(a) * k + b];
      diagonal[a] += w;
      if (branch_side[a] != branch_side[b]) {
        coupling[a] += w;
        own += w / 2;
      }
    }
  }
  // own - coupling' M^-1 coupling, M = diagonal + weight, by conjugate gradients.
  std::vector<double> x(k, 0);
  std::vector<double> r = coupling;
  std::vector<double> z(k);
  std::vector<double> image(k);
  const auto precondition = [&] {
    for (int a = 0; a < k; ++a) {
      z[a] = diagonal[a] > 0 ? r[a] / diagonal[a] : 0;
    }
  };
  precondition();
  std::vector<double> p = z;
  double energy = Dot(r, z);
  for (int step = 0; step < 40 && energy > 1e-9 * own; ++step) {
    for (int a = 0; a < k; ++a) {
      double sum = diagonal[a] * p[a];
      for (int b = 0; b < k; ++b) {
        sum += weight[static_cast<size_t>(a) * k + b] * p[b];
      }
      image[a] = sum;
    }
    const double curvature = Dot(p, image);
    if (curvature <= 0) {
      break;
    }
    const double length = energy / curvature;
    for (int a = 0; a < k; ++a) {
      x[a] += length * p[a];
      r[a] -= length * image[a];
    }
    precondition();
    const double next = Dot(r, z);
    for (int a = 0; a < k; ++a) {
      p[a] = z[a] + next / energy * p[a];
    }
    energy = next;
  }
  const double information = own - Dot(x, coupling);
  return information > 1e-6 * own && information > 0 ? 1 / std::sqrt(information)
                                                     : std::numeric_limits<double>::infinity();
}

double Fit::ChanceZ(int link) const {
  // Hosts below; the others are above.
  std::vector<int> hosts(tree_.vertex_count, 0);
  int all = 0;
  for (size_t i = rooted_.order.size(); i-- > 0;) {
    const int vertex = rooted_.order[i];
    hosts[vertex] += tree_.IsHost(vertex) ? 1 : 0;
    all += tree_.IsHost(vertex) ? 1 : 0;
    if (rooted_.parent[vertex] >= 0) {
      hosts[rooted_.parent[vertex]] += hosts[vertex];
    }
  }
  const int child =
      rooted_.parent_link[tree_.links[link].u] == link ? tree_.links[link].u : tree_.links[link].v;
  const double k = std::min(hosts[child], all - hosts[child]);
  const double log_groups = std::lgamma(all + 1.0) - std::lgamma(k + 1) - std::lgamma(all - k + 1);
  return std::sqrt(2 * std::max(log_groups, 0.0));
}

// How many errors long a link must be.
double Fit::LeastZ(int link, const Limits& limits) const {
  return limits.beyond_chance < 0 ? limits.z
                                  : std::max(limits.z, ChanceZ(link) + limits.beyond_chance);
}

bool Fit::HasSureLink(const Limits& limits) const {
  const double spread = Spread();
  for (size_t i = 0; i < tree_.links.size(); ++i) {
    const int link = static_cast<int>(i);
    const double length = tree_.links[i].rtt_us;
    if (IsInner(link) && !is_gone_[i] && length >= limits.floor_us &&
        length >= LeastZ(link, limits) * spread * LengthError(link)) {
      return true;
    }
  }
  return false;
}

void Fit::Contract(const Limits& limits) {
  const double spread = Spread();
  std::vector<double> z(tree_.links.size(), 0);
  for (size_t i = 0; i < z.size(); ++i) {
    if (IsInner(static_cast<int>(i))) {
      z[i] = LeastZ(static_cast<int>(i), limits);
    }
  }
  std::vector<double> error(tree_.links.size(), -1);  // as computed last: it only shrinks
  const auto is_too_short = [&](int link) {
    const double length = tree_.links[link].rtt_us;
    if (length < limits.floor_us) {
      return true;
    }
    if (error[link] >= 0 && length >= z[link] * spread * error[link]) {
      return false;
    }
    error[link] = LengthError(link);
    return length < z[link] * spread * error[link];
  };
  for (;;) {
    std::vector<int> left;
    for (size_t i = 0; i < tree_.links.size(); ++i) {
      if (IsInner(static_cast<int>(i)) && !is_gone_[i]) {
        left.push_back(static_cast<int>(i));
      }
    }
    std::sort(left.begin(), left.end(),
              [this](int a, int b) { return tree_.links[a].rtt_us < tree_.links[b].rtt_us; });
    // The shortest; while all is far from certain, several at once.
    const size_t batch = 1 + left.size() / 10;
    size_t gone = 0;
    for (const int link : left) {
      const bool is_hopeless = tree_.links[link].rtt_us < limits.floor_us / 2;
      if (gone > 0 && (!is_hopeless || gone >= batch)) {
        break;
      }
      if (is_hopeless || is_too_short(link)) {
        is_gone_[link] = true;
        tree_.links[link].rtt_us = 0;
        ++gone;
      }
    }
    if (gone == 0) {
      return;
    }
    SolveWeighted(8);
  }
}

Tree Fit::Result() const {
  Tree result = tree_;
  const double spread = Spread();
  for (size_t i = 0; i < result.links.size(); ++i) {
    Link& link = result.links[i];
    link.rtt_us = std::max(link.rtt_us, 0.0);
    link.confidence = 1;
    if (IsInner(static_cast<int>(i)) && !is_gone_[i]) {
      const double error = spread * LengthError(static_cast<int>(i));
      link.confidence = error > 0 ? std::erf(link.rtt_us / error / 2) : 1;
    }
  }
  return Contracted(result, is_gone_);
}

double Fit::Rtt(const Observation& observation) const {
  double sum = 0;
  const int top = rooted_.Ancestor(observation.a, observation.b);
  for (const int end : {observation.a, observation.b}) {
    for (int vertex = end; vertex != top; vertex = rooted_.parent[vertex]) {
      sum += tree_.links[rooted_.parent_link[vertex]].rtt_us;
    }
  }
  return sum;
}

}  // namespace sekisho::topology
