// SPDX-License-Identifier: Apache-2.0
#include "topology/ledger.h"

#include <algorithm>
#include <cmath>

namespace sekisho::topology {
namespace {

constexpr size_t kExcessSamples = 24;
constexpr double kPairShare = 0.002;  // of a round trip that differs from pair to pair

}  // namespace

uint64_t Ledger::Key(int a, int b) const {
  return static_cast<uint64_t>(std::min(a, b)) * static_cast<uint64_t>(hosts_) +
         static_cast<uint64_t>(std::max(a, b));
}

void Ledger::Add(const Request& request, const Answer& answer) {
  for (const int host : {request.from, request.to}) {
    (answer.is_ok ? of_host_[host].answered : of_host_[host].failed) += 1;
  }
  if (!answer.is_ok) {
    return;
  }
  // Time spent beyond the shortest ping, of which 1.5 a connection.
  const double excess =
      std::max(0.0, answer.duration_us / (answer.pings + 1.5 * request.sets) - answer.min_us);
  for (const int host : {request.from, request.to}) {
    if (of_host_[host].excess_us.size() < kExcessSamples) {
      of_host_[host].excess_us.push_back(excess);
    }
  }
  const auto [place, is_new] =
      samples_.try_emplace(Key(request.from, request.to), Sample{answer.min_us, 0, excess});
  Sample& sample = place->second;
  sample.min_us = std::min(sample.min_us, answer.min_us);
  sample.pings += answer.pings;
  if (is_new) {
    of_host_[request.from].partners.push_back(request.to);
    of_host_[request.to].partners.push_back(request.from);
  }
}

void Ledger::Forget(int host) {
  for (const int partner : of_host_[host].partners) {
    samples_.erase(Key(host, partner));
    std::erase(of_host_[partner].partners, host);
  }
  of_host_[host] = {};
}

double Ledger::Rtt(int a, int b) const {
  const auto found = samples_.find(Key(a, b));
  return found == samples_.end() ? -1 : found->second.min_us;
}

double Ledger::Excess(int host) const {
  std::vector<double> sorted = of_host_[host].excess_us;
  if (sorted.empty()) {
    return -1;
  }
  // Low: a quiet host met some busy ones.
  const size_t rank = sorted.size() * 3 / 10;
  std::nth_element(sorted.begin(), sorted.begin() + static_cast<long>(rank), sorted.end());
  return sorted[rank];
}

Observation Ledger::Observe(int a, int b, const Sample& sample) const {
  const double ping_noise = std::max(Excess(a), Excess(b)) / std::max(sample.pings, 1);
  return {a, b, sample.min_us, std::hypot(0.8, kPairShare * sample.min_us, 0.7 * ping_noise)};
}

std::vector<Observation> Ledger::Among(const std::vector<int>& hosts) const {
  return Between(hosts, hosts);
}

std::vector<Observation> Ledger::Between(const std::vector<int>& left,
                                         const std::vector<int>& right) const {
  std::vector<int> position(hosts_, -1);
  for (size_t i = 0; i < right.size(); ++i) {
    position[right[i]] = static_cast<int>(i);
  }
  const bool is_same = &left == &right;
  std::vector<Observation> found;
  for (size_t i = 0; i < left.size(); ++i) {
    for (const int partner : of_host_[left[i]].partners) {
      if (position[partner] < 0 || (is_same && position[partner] <= static_cast<int>(i))) {
        continue;
      }
      Observation o = Observe(left[i], partner, samples_.at(Key(left[i], partner)));
      o.a = static_cast<int>(i);
      o.b = position[partner];
      found.push_back(o);
    }
  }
  return found;
}

}  // namespace sekisho::topology
