// SPDX-License-Identifier: Apache-2.0
#include "topology/ledger.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

namespace sekisho::topology {
namespace {

constexpr size_t kExcessSamples = 24;
constexpr double kPairShare = 0.002;  // of a round trip that differs from pair to pair
constexpr double kRelayShare = 0.1;   // the same through a relay, which takes its own time
constexpr int kSilentFailures = 4;
constexpr size_t kSilentPartners = 2;  // one that cannot be reached from here may be to blame

}  // namespace

uint64_t Ledger::Key(int a, int b) const {
  return static_cast<uint64_t>(std::min(a, b)) * static_cast<uint64_t>(hosts_) +
         static_cast<uint64_t>(std::max(a, b));
}

void Ledger::Add(const Request& request, const Answer& answer) {
  ++added_;
  for (const auto& [host, other] :
       {std::pair(request.from, request.to), {request.to, request.from}}) {
    HostFacts& facts = of_host_[host];
    (answer.is_ok ? facts.answered : facts.failed) += 1;
    if (answer.is_ok) {
      facts.last_answer = added_;
      facts.failures.clear();
    } else {
      facts.failures.push_back({other, added_});
    }
  }
  if (!answer.is_ok) {
    return;
  }
  // Time spent beyond the shortest ping, of which 1.5 a connection: a relay's says nothing of them.
  const double excess =
      std::max(0.0, answer.duration_us / (answer.pings + 1.5 * request.sets) - answer.min_us);
  for (const int host : {request.from, request.to}) {
    if (of_host_[host].excess_us.size() < kExcessSamples && !answer.is_relayed) {
      of_host_[host].excess_us.push_back(excess);
    }
  }
  const auto [place, is_new] = samples_.try_emplace(Key(request.from, request.to),
                                                    Sample{answer.min_us, 0, answer.is_relayed, added_});
  Sample& sample = place->second;
  if (sample.is_relayed && !answer.is_relayed) {
    sample = {.min_us = answer.min_us, .when = added_};  // the direct way is the true one
  }
  if (sample.is_relayed == answer.is_relayed) {
    if (answer.min_us < sample.min_us) {
      sample.min_us = answer.min_us;
      sample.when = added_;
    }
    sample.pings += answer.pings;
  }
  if (is_new) {
    of_host_[request.from].partners.push_back(request.to);
    of_host_[request.to].partners.push_back(request.from);
  }
}

// Others that fail with it, if they are well themselves: they have answered after that; or, where
// there is nothing else to ask them, later than it and fail with fewer.
bool Ledger::HasFallenSilent(int host) const {
  const auto partners_of = [](const HostFacts& facts) {
    std::set<int> partners;
    for (const Failure& failure : facts.failures) {
      partners.insert(failure.partner);
    }
    return partners.size();
  };
  const HostFacts& facts = of_host_[host];
  const size_t own = partners_of(facts);
  int failures = 0;
  std::set<int> witnesses;
  for (const Failure& failure : facts.failures) {
    const HostFacts& partner = of_host_[failure.partner];
    if (partner.last_answer > failure.when ||
        (partner.last_answer > facts.last_answer && partners_of(partner) < own)) {
      ++failures;
      witnesses.insert(failure.partner);
    }
  }
  return facts.answered > 0 && failures >= kSilentFailures && witnesses.size() >= kSilentPartners;
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

bool Ledger::IsRelayed(int a, int b) const {
  const auto found = samples_.find(Key(a, b));
  return found != samples_.end() && found->second.is_relayed;
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
  const double share = sample.is_relayed ? kRelayShare : kPairShare;
  return {a, b, sample.min_us, std::hypot(0.8, share * sample.min_us, 0.7 * ping_noise),
          sample.when};
}

std::vector<Observation> Ledger::Among(const std::vector<int>& hosts) const {
  return Between(hosts, hosts);
}

std::vector<Observation> Ledger::Between(const std::vector<int>& left,
                                         const std::vector<int>& right) const {
  return Select(left, right, false);
}

std::vector<Observation> Ledger::RelayedBetween(const std::vector<int>& left,
                                                const std::vector<int>& right) const {
  return Select(left, right, true);
}

std::vector<Observation> Ledger::Select(const std::vector<int>& left, const std::vector<int>& right,
                                        bool is_relayed) const {
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
      const Sample& sample = samples_.at(Key(left[i], partner));
      if (sample.is_relayed != is_relayed) {
        continue;
      }
      Observation o = Observe(left[i], partner, sample);
      o.a = static_cast<int>(i);
      o.b = position[partner];
      found.push_back(o);
    }
  }
  return found;
}

}  // namespace sekisho::topology
