// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/sampler.h"

#include <algorithm>

namespace sekisho::topology {

void Sampler::EndSet() {
  low_us_ = sets_ == 0 ? best_us_ : std::min(low_us_, best_us_);
  high_us_ = sets_ == 0 ? best_us_ : std::max(high_us_, best_us_);
  ++sets_;
  pings_ = without_ = 0;
  step_ = sets_ >= request_.sets ? Step::kEnd : Step::kConnect;
}

void Sampler::Ponged(double rtt_us) {
  if (!(rtt_us > 0)) {  // the clock went backwards
    rtt_us = pings_ == 0 ? 1e9 : best_us_;
  }
  without_ = pings_ == 0 || rtt_us < best_us_ ? 0 : without_ + 1;
  best_us_ = pings_ == 0 ? rtt_us : std::min(best_us_, rtt_us);
  ++pings_;
  ++all_pings_;
  sum_us_ += rtt_us;
  if (pings_ >= request_.most || without_ >= request_.stop) {
    EndSet();
  }
}

void Sampler::Failed() {
  if (pings_ > 0) {
    EndSet();
  }
  step_ = Step::kEnd;
}

Answer Sampler::Result() const {
  return {.is_ok = sets_ > 0 && low_us_ < 1e9,
          .min_us = low_us_,
          .low_us = low_us_,
          .high_us = high_us_,
          .pings = all_pings_,
          .duration_us = sum_us_ + 1.5 * low_us_ * sets_};
}

}  // namespace sekisho::topology
