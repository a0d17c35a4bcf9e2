// SPDX-License-Identifier: Apache-2.0
// One inference on a known network, judged as an outsider would from the oracle's log.
#pragma once

#include <string_view>

#include "common/status.h"
#include "topology/method.h"
#include "topology/run.h"
#include "topology/sim/score.h"
#include "topology/sim/truth.h"

namespace sekisho::topology::sim {

struct Trial {
  Outcome outcome;
  RunTotals totals;
  Score score;
  long pairs_between = 0;    // of hosts of two sites, that measured
  double between_share = 0;  // of all such pairs
  double within_share = 0;   // the same inside sites
  int most_local = 0;        // measurements inside its site that one host took part in at once
  int most_wide = 0;
};

// `seed` drives the method; the noise follows from it and from the truth's own.  The method is told of `most_at_once`,
// virtual time does not know it.
absl::StatusOr<Trial> RunTrial(const Truth& truth, std::string_view method, bool has_site_hints,
                               uint64_t seed, int questions = 100000, int most_at_once = 0);

// Neighbour joining on the full matrix of 3 sets of up to 30 pings, links under 1.2 us one way
// contracted (1.6 us with the lab's noise): what the others are compared with.
Trial RunFullMatrix(const Truth& truth, uint64_t seed, int questions = 100000);

}  // namespace sekisho::topology::sim
