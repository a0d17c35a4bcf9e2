// SPDX-License-Identifier: Apache-2.0
// Whether packets are lost by chance or because somebody measures the rate and drops what is more:
// the first hits few, one by one, the second many or several in a row, again and again.  Pure.
// docs/protocol/9-pm.md, "Congestion".
#pragma once

#include <cstdint>
#include <initializer_list>

namespace sekisho::pm {

class LossPattern {
 public:
  static constexpr unsigned kJudged = 512;       // packets
  static constexpr unsigned kLeastPart = 48;     // one of so many must be lost
  static constexpr unsigned kMuch = 8;           // one of so many is too much to be chance
  static constexpr unsigned kMostByChance = 16;  // less than one of so many may be
  static constexpr unsigned kLeastRuns = 4;
  static constexpr unsigned kLeastByChance = 8;

  enum class Verdict : std::uint8_t { kUnknown, kByChance, kPoliced };

  void OnArrived() { Count(false, false); }
  void OnLost(std::uint64_t number) {
    const auto low = static_cast<std::uint16_t>(number);
    Count(true, low != static_cast<std::uint16_t>(last_ + 1));
    last_ = low;
  }
  // One of those that were lost was only late; it arrives.
  void OnFound() {
    Packets& of = round_.lost > 0 ? round_ : all_;
    if (of.lost == 0) return;
    --of.packets;
    if (of.runs == of.lost) --of.runs;
    --of.lost;
  }
  void Forget() {
    all_ = round_ = {};
    seen_ = Verdict::kUnknown;
  }

  // At the end of a round; `counts`: what happened in it says something.  What is not seen twice in
  // a row is not known.
  Verdict Judge(bool counts) {
    if (counts) all_.Add(round_.packets, round_.lost, round_.runs);
    round_ = {};
    if (all_.packets < kJudged) return Verdict::kUnknown;
    // So few lost say nothing yet, but that nobody measures the rate.
    if (all_.lost < kLeastByChance && all_.packets < kMost / 2) {
      if (seen_ == Verdict::kPoliced) seen_ = Verdict::kUnknown;
      return Verdict::kUnknown;
    }
    const Verdict before = seen_;
    seen_ = Look();
    all_ = {};
    return seen_ == before ? seen_ : Verdict::kUnknown;
  }

 private:
  static constexpr std::uint16_t kMost = 32'768;

  struct Packets {
    std::uint16_t packets = 0;  // of which
    std::uint16_t lost = 0;     // in
    std::uint16_t runs = 0;     // of one or more

    void Add(unsigned more, unsigned more_lost, unsigned more_runs) {
      packets = static_cast<std::uint16_t>(packets + more);
      lost = static_cast<std::uint16_t>(lost + more_lost);
      runs = static_cast<std::uint16_t>(runs + more_runs);
    }
  };

  Verdict Look() const {
    const auto [packets, lost, runs] = all_;
    const unsigned in_a_row = static_cast<unsigned>(lost - runs);
    if (kMuch * lost >= packets) return Verdict::kPoliced;
    if (kLeastPart * lost >= packets && runs >= kLeastRuns && 3 * in_a_row >= lost) {
      return Verdict::kPoliced;
    }
    const bool few = lost >= kLeastByChance && kMostByChance * lost < packets;
    return few && 4 * in_a_row < lost ? Verdict::kByChance : Verdict::kUnknown;
  }

  void Count(bool is_lost, bool begins) {
    round_.Add(1, is_lost, begins);
    if (round_.packets < kMost) return;
    for (std::uint16_t* one : {&round_.packets, &round_.lost, &round_.runs}) *one /= 2;
  }

  Packets all_, round_;
  std::uint16_t last_ = 0;
  Verdict seen_ = Verdict::kUnknown;
};

}  // namespace sekisho::pm
