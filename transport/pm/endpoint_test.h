// SPDX-License-Identifier: Apache-2.0
// What tests of an endpoint begin with.
#pragma once

#include "transport/pm/sim/cluster.h"

namespace sekisho::pm {

inline constexpr Nanos kOneWay = 100 * kMicrosecond;

inline void MakeSteady(sim::Cluster& cluster) {
  for (sim::Link& link : cluster.network().links()) link.delay = kOneWay, link.jitter = 0;
}

// A session between 0 and 1, with a measured round trip and nothing in flight.
inline void Connect(sim::Cluster& cluster) {
  MakeSteady(cluster);
  for (int i = 0; i < 4; ++i) {
    cluster.SendText(0, 1, 0, 8);
    cluster.SendText(1, 0, 0, 8);
    cluster.Run(20 * kMillisecond);
  }
}

}  // namespace sekisho::pm
