// SPDX-License-Identifier: Apache-2.0
#include "topology/shifts.h"

#include <cmath>
#include <utility>

#include "topology/median.h"

namespace sekisho::topology {
namespace {

constexpr int kRounds = 8;

}  // namespace

Shifts FitShifts(int hosts, const std::vector<Excess>& pairs) {
  std::vector<double> all;
  std::vector<std::vector<std::pair<int, double>>> of_host(hosts);
  for (const Excess& pair : pairs) {
    all.push_back(pair.us / 2);
    of_host[pair.a].emplace_back(pair.b, pair.us);
    of_host[pair.b].emplace_back(pair.a, pair.us);
  }
  Shifts shifts{.host_us = {}, .usual_us = Median(std::move(all))};
  shifts.host_us.assign(hosts, shifts.usual_us);
  // What most of a host's pairs say; the usual shift has a vote, and wins where they disagree.
  for (int round = 0; round < kRounds; ++round) {
    for (int host = 0; host < hosts; ++host) {
      std::vector<double> votes{shifts.usual_us};
      for (const auto& [other, us] : of_host[host]) {
        votes.push_back(us - shifts.host_us[other]);
      }
      if (votes.size() % 2 == 0) {
        votes.push_back(shifts.usual_us);
      }
      shifts.host_us[host] = Median(std::move(votes));
    }
  }
  std::vector<double> off;
  for (int host = 0; host < hosts; ++host) {
    if (!of_host[host].empty()) {
      off.push_back(std::abs(shifts.host_us[host] - shifts.usual_us));
    }
  }
  shifts.spread_us = 1.4826 * Median(std::move(off));
  return shifts;
}

}  // namespace sekisho::topology
