// SPDX-License-Identifier: Apache-2.0
// Whether it has paid of late to give the processor to others while waiting.  Pure.
// docs/operations/pm.md, "Waiting".
#pragma once

#include <algorithm>

#include "transport/pm/types.h"

namespace sekisho::pm {

class YieldHistory {
 public:
  static constexpr Nanos kOthersRan = 1500;  // a yield to nobody takes less
  static constexpr Nanos kOthersCompute = 500 * kMicrosecond;
  static constexpr Nanos kLeastPause = kMillisecond, kMostPause = 100 * kMillisecond;
  static constexpr Nanos kForgets = kSecond;  // without a long one

  bool MayYield(Nanos now) const { return now >= not_before_; }
  // At the last yield another process ran, for a short time: perhaps the one we wait for.
  bool others_ran() const { return others_ran_; }

  // Others need this processor, as far as is known: they had it for a short time at the last yield,
  // or computed lately.
  bool is_shared(Nanos now) const { return others_ran_ || !MayYield(now); }

  // At the last one somebody else had the processor, for however long.
  bool gave_away() const { return gave_away_; }

  // One began and ended.  Others who compute keep the processor for long, and to sleep would have
  // been better; but a single long one may be chance (the host's, of a virtual machine).
  void Note(Nanos before, Nanos after) {
    const Nanos took = after - before;
    gave_away_ = took > kOthersRan;
    others_ran_ = gave_away_ && took < kOthersCompute;
    if (others_ran_) pause_ -= pause_ / 256;
    if (took < kOthersCompute) return;
    if (before > not_before_ + kForgets) pause_ = 0;
    pause_ = std::clamp(2 * pause_, kLeastPause, kMostPause);
    not_before_ = after + pause_;
  }

 private:
  bool gave_away_ = false, others_ran_ = false;
  Nanos pause_ = 0;  // for how long it was not done, the last time
  Nanos not_before_ = 0;
};

}  // namespace sekisho::pm
