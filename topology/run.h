// SPDX-License-Identifier: Apache-2.0
// Runs a method on a virtual clock: each measurement ends when its answer says.  Pure but for
// `measure`.
#pragma once

#include <functional>

#include "common/status.h"
#include "topology/method.h"

namespace sekisho::topology {

struct RunTotals {
  double makespan_us = 0;
  long measurements = 0;
  long pings = 0;
  long relayed = 0;  // of the measurements: through a relay
};

// The answer to a measurement that starts at this time.  An error ends the run.
using Measure = std::function<absl::StatusOr<Answer>(const Request&, double start_us)>;

// `turnaround_us`: from the end of a measurement until its hosts may begin the next.
absl::StatusOr<RunTotals> RunVirtually(Method& method, const Measure& measure,
                                       double turnaround_us = 50);

}  // namespace sekisho::topology
