// SPDX-License-Identifier: Apache-2.0
// How much longer each host's round trips are now than a tree says.  Between two sessions that is
// tens of microseconds, more where a host is busy, and says nothing of where it hangs: it is as if
// its own link were longer.  docs/protocol/12-topology.md, "Upkeep".  Pure.
#pragma once

#include <vector>

namespace sekisho::topology {

// Measured minus expected, between two hosts.
struct Excess {
  int a = 0;
  int b = 0;
  double us = 0;
};

struct Shifts {
  std::vector<double> host_us;  // of each; a pair is off by both ends'
  double usual_us = 0;
  double spread_us = 0;  // of those of all hosts, as a standard deviation
  double Of(int a, int b) const { return host_us[a] + host_us[b]; }
};

// Robust: a host that is elsewhere, too short to some and too long to others, shifts nobody.
Shifts FitShifts(int hosts, const std::vector<Excess>& pairs);

}  // namespace sekisho::topology
