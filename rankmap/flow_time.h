// SPDX-License-Identifier: Apache-2.0
// How long communication takes if messages share the links max-min fairly: bytes as a fluid, no buffers, no
// protocol.  A message's last byte arrives its route's latency after it was sent.
#pragma once

#include <functional>
#include <span>

#include "rankmap/evaluate.h"

namespace sekisho::rankmap {

struct FlowOptions {
  // Flows that end within this share of the time so far end together: tens of thousands of ends are thousands
  // of solutions then.  The result is about so much too long at most.
  double together = 0.002;
  // After every solution: seconds since the start, and by link the bytes of those messages that this link holds
  // back most.  A real router's buffers are full where that is not 0.
  std::function<void(double, std::span<const double>)> observe;
  std::function<bool()> stop;
};

// All messages at once; seconds, infinite if stopped.  `network` has links.
double TimeAtOnce(const Pattern& pattern, const Network& network, const Placement& placement,
                  const FlowOptions& options);

// One step after the other, everybody waiting for the last message of a step.
double TimeByStep(const Pattern& pattern, const Network& network, const Placement& placement,
                  const FlowOptions& options);

}  // namespace sekisho::rankmap
