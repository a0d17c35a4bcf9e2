// SPDX-License-Identifier: Apache-2.0
// How one who waits spends its time, over whatever looks, yields and sleeps.  Pure.
// docs/operations/pm.md, "Waiting".
#pragma once

#include <cstdint>

#include "transport/pm/spin_history.h"
#include "transport/pm/yield_history.h"

namespace sekisho::pm {

enum class Waiting : std::uint8_t { kSpin, kYield, kAdaptive, kSleep, kClassic };

// True once `ways.Holds()`; false: it is `until`.  Besides, `ways` has
//   Nanos Look(bool spins)   makes progress, and says when; `spins`: did not sleep before
//   bool IsInVain()          nothing at all came by the last look
//   bool HasDatagram()       one waits, whether or not a message does
//   bool IsStopped()         the job, whose programs sleep
//   void Yield(Nanos now)    as far as `yields` permits, which is told how it went
//   void GiveAway()          at any rate
//   void Sleep()             until there may be something to look for, or `until`
template <typename Ways>
bool WaitLoop(Ways& ways, Waiting waiting, SpinHistory& spins, const YieldHistory& yields,
              Nanos begin, Nanos until) {
  const bool adapts = waiting == Waiting::kAdaptive;
  // Whoever we wait for shares this processor: nothing can have arrived before it runs.
  if (adapts && yields.others_ran() && !ways.Holds()) ways.Yield(begin);
  spins.Begin(begin, yields.is_shared(begin));
  bool slept = waiting == Waiting::kSleep && !ways.Holds() && begin < until;
  if (slept) ways.Sleep();
  for (;;) {
    const Nanos now = ways.Look(!slept);
    slept = false;
    if (ways.Holds()) {
      spins.Found(now);
      return true;
    }
    if (now >= until) return false;
    if (waiting == Waiting::kYield) ways.GiveAway();
    if (waiting == Waiting::kClassic && ways.HasDatagram()) ways.GiveAway();
    const bool may_look =
        adapts ? spins.MayLookAgain(now, ways.IsInVain()) : waiting != Waiting::kSleep;
    if (!ways.IsStopped() && may_look) {
      // Not spinning alone: whoever we wait for may need this very processor.
      if (adapts) ways.Yield(now);
      continue;
    }
    ways.Sleep();
    slept = true;
  }
}

}  // namespace sekisho::pm
