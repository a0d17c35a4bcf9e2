// SPDX-License-Identifier: Apache-2.0
// All nodes of a job stop, know that nothing is under way, and go on: docs/protocol/9-pm.md,
// "Network preemption".  Pure.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sekisho::pm {

enum class GangPhase : std::uint8_t {
  kRunning,   // of wave 0, 4, 8 ...
  kStopping,  // no new data leaves
  kFlushed,   // nothing of any node is under way
  kSettled,   // and it is known which nodes wait for messages
};

constexpr GangPhase PhaseOf(std::uint64_t wave) { return static_cast<GangPhase>(wave & 3); }
constexpr std::uint64_t NextRunning(std::uint64_t wave) { return (wave | 3) + 1; }

inline constexpr std::uint64_t kWaveMax = std::uint64_t{1} << 60;  // no job comes so far

// What a node says of the job.  Every number but the leader only grows, so that notes may be lost,
// repeated and come in any order.
struct GangNote {
  std::uint64_t wave = 0;      // the newest that it knows
  std::uint64_t asked = 0;     // a wave that it wants: one node is enough
  std::uint64_t joined = 0;    // a wave that it wants if all do
  std::uint64_t reported = 0;  // a wave that it is ready for
  // 1 if its program waits for messages; the leader, when settled: how many do.
  std::uint32_t idle = 0;
  std::uint32_t gone = 0;    // the leader, when settled: how many nodes have left
  std::uint32_t leader = 0;  // whom it follows; may become smaller

  bool operator==(const GangNote&) const = default;
};

// Its own program wanted this stop (pmCheckpoint), and has what it waited for.
constexpr bool HasStoppedAsJoined(const GangNote& own) {
  return PhaseOf(own.wave) == GangPhase::kSettled && own.joined + 2 == own.wave;
}

// The same note, if `wave` is the newest that the reader knows.  Who wants more than the next job
// that runs is not one of us.
constexpr GangNote Bounded(GangNote note, std::uint64_t wave) {
  const std::uint64_t last = NextRunning(std::max(note.wave, wave));
  note.asked = std::min(note.asked, last);
  note.joined = std::min(note.joined, last);
  return note;
}

// What the leader knows of all nodes that have not left.
struct GangView {
  std::uint64_t asked = 0;              // largest
  std::uint64_t joined = UINT64_MAX;    // smallest
  std::uint64_t reported = UINT64_MAX;  // smallest
  std::uint64_t idle = 0, gone = 0;     // sums

  void Add(const GangNote& note) {
    if (note.asked > asked) asked = note.asked;
    if (note.joined < joined) joined = note.joined;
    if (note.reported < reported) reported = note.reported;
    idle += note.idle;
  }
};

// The wave that the leader announces: `wave` itself, or a later one.
constexpr std::uint64_t NextWave(std::uint64_t wave, const GangView& all) {
  switch (PhaseOf(wave)) {
    case GangPhase::kRunning:
    case GangPhase::kSettled:
      return all.asked > wave || all.joined > wave ? wave + 1 : wave;
    case GangPhase::kStopping:
    case GangPhase::kFlushed:
      if (all.asked >= NextRunning(wave)) return NextRunning(wave);  // someone gave up
      return all.reported > wave ? wave + 1 : wave;
  }
  return wave;
}

}  // namespace sekisho::pm
