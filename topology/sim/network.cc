// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/network.h"

#include <algorithm>
#include <cmath>

namespace sekisho::topology::sim {
namespace {

constexpr double kTimeoutUs = 1e6;

uint64_t Mix(uint64_t x) {
  x += 0x9E3779B97F4A7C15u;
  x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
  x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
  return x ^ (x >> 31);
}

uint64_t Hash(uint64_t seed, int a, int b) {
  return Mix(Mix(seed + static_cast<uint64_t>(std::min(a, b))) +
             static_cast<uint64_t>(std::max(a, b)));
}

double Unit(uint64_t bits) { return (static_cast<double>(bits >> 11) + 0.5) / 9007199254740992.0; }

}  // namespace

Network::Network(const Truth& truth, uint64_t seed)
    : truth_(truth), seed_(Mix(seed)), random_(Mix(seed + 7)) {
  rooted_ = HangUp(TreeOf(truth), truth.vertex_count - 1);
  answers_left_.assign(truth.host_count, -1);
  for (const auto& [host, answers] : truth.dying) {
    answers_left_[host] = answers;
  }
}

double Network::PathRtt(int a, int b) const {
  double rtt = rooted_.Rtt(a, b);
  if (truth_.spines > 0 && rooted_.Ancestor(a, b) == truth_.core) {
    const int spine = static_cast<int>(Hash(truth_.seed, a, b) % truth_.spines);
    for (const int host : {a, b}) {
      rtt += 1.7 * Unit(Hash(truth_.seed + 77, rooted_.parent[host], spine));
    }
  }
  return rtt;
}

double Network::PairBias(int a, int b, double rtt_us) const {
  const uint64_t bits = Hash(seed_, a, b);
  const double normal =
      std::sqrt(-2 * std::log(Unit(bits))) * std::cos(6.283185307179586 * Unit(Mix(bits)));
  return normal * std::hypot(truth_.noise.pair_us, truth_.noise.pair_share * rtt_us);
}

double Network::HostShift(int host) const {
  return truth_.noise.session_us * Unit(Mix(seed_ + 3)) -
         truth_.noise.host_us * std::log(Unit(Hash(seed_ + 5, host, host)));
}

double Network::Ping(double base_us, int from, int to) {
  if (truth_.noise.is_exact) {
    return base_us;
  }
  std::uniform_real_distribution<double> unit(0, 1);
  const auto exponential = [&](double mean) { return -mean * std::log(1 - unit(random_)); };
  double rtt = base_us + 2.8 * std::exp(0.8 * std::normal_distribution<double>()(random_));
  if (unit(random_) < 0.12) {
    rtt += exponential(18);
  }
  if (unit(random_) < 0.012) {
    rtt += exponential(300);
  }
  if (unit(random_) < 0.001) {
    rtt += 1000 + 19000 * unit(random_);
  }
  for (const int host : {from, to}) {
    if (truth_.is_busy[host]) {
      if (unit(random_) < truth_.noise.busy_chance) {
        rtt += exponential(truth_.noise.busy_us);
      }
      if (unit(random_) < 0.03) {
        rtt += 1000 + 9000 * unit(random_);
      }
    }
  }
  return rtt;
}

bool Network::Answers(const Request& request) {
  for (const int host : {request.from, request.to}) {
    if (truth_.is_dead[host] || answers_left_[host] == 0) {
      return false;
    }
  }
  for (const int host : {request.from, request.to}) {
    answers_left_[host] -= answers_left_[host] > 0 ? 1 : 0;
  }
  return true;
}

Answer Network::Measure(const Request& request) {
  if (!Answers(request)) {
    return {.duration_us = kTimeoutUs};
  }
  const double path = PathRtt(request.from, request.to);
  const Noise& noise = truth_.noise;
  const double base = noise.is_exact ? path
                                     : path + PairBias(request.from, request.to, path) +
                                           HostShift(request.from) + HostShift(request.to);
  std::uniform_real_distribution<double> unit(0, 1);
  if (noise.slow_for > 0 && unit(random_) < 1 / noise.slow_for) {
    is_slow_ = !is_slow_;
  }
  const double slow_us = is_slow_ ? noise.slow_us : 0;
  Answer answer{.is_ok = true};
  for (int set = 0; set < request.sets; ++set) {
    double offset = 0;
    if (!noise.is_exact && unit(random_) < noise.connection_chance) {
      offset = -noise.connection_us * std::log(1 - unit(random_));
    }
    double best = 1e18;
    int without = 0;
    int sent = 0;
    answer.duration_us += 1.5 * path;
    while (sent < request.most && without < request.stop) {
      const double rtt = Ping(base + slow_us + offset, request.from, request.to);
      answer.duration_us += rtt;
      ++sent;
      without = rtt < best ? 0 : without + 1;
      best = std::min(best, rtt);
    }
    answer.pings += sent;
    answer.low_us = set == 0 ? best : std::min(answer.low_us, best);
    answer.high_us = set == 0 ? best : std::max(answer.high_us, best);
  }
  for (const int liar : truth_.liars) {
    if (request.from == liar || request.to == liar) {
      answer.low_us = answer.high_us = 3000 * unit(random_);
    }
  }
  answer.min_us = answer.low_us;
  return answer;
}

}  // namespace sekisho::topology::sim
