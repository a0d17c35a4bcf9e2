// SPDX-License-Identifier: Apache-2.0
// How fast one peer may be sent to: a model of the path (docs/protocol/9-pm.md, "Congestion").
// Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>

#include "transport/pm/loss_pattern.h"
#include "transport/pm/memory.h"
#include "transport/pm/rtt.h"
#include "transport/pm/types.h"

namespace sekisho::pm {

// What a packet remembers of the moment it was sent.
struct RateSample {
  std::uint64_t delivered = 0;
  Nanos delivered_time = 0;
  Nanos first_sent_time = 0;
  bool app_limited = false;
};

class Congestion {
 public:
  // Of the packets that one ACK names the one that was sent last.
  struct Newest {
    RateSample sample;
    Nanos sent = -1;  // no packet yet
  };

  // `fixed_window` bytes, or 0 for the model.
  void Init(std::uint32_t fixed_window, std::uint32_t datagram, Nanos now);

  void OnDatagramSize(std::uint32_t datagram) { datagram_ = datagram; }
  RateSample OnSent(std::uint32_t bytes, std::uint64_t in_flight_before, Nanos now);

  // Once per packet, then OnAckEnd once per ACK.
  void OnAcked(const RateSample& sample, Nanos sent_time, std::uint32_t bytes, Nanos now,
               Newest& newest);
  void OnAckEnd(const Newest& newest, const Rtt& rtt, std::uint64_t in_flight, std::uint64_t new_ce,
                Nanos now);
  // The packet of this number; `by_gap`: newer ones arrived.
  void OnLost(std::uint64_t number, std::uint32_t bytes, bool by_gap, Nanos now);
  // What was `declared` lost at that time was not.
  void OnSpurious(std::uint32_t bytes, Nanos declared);
  void OnTimeout();

  // The application has nothing more to send: measured rates say nothing about the path now.
  void OnAppLimited(std::uint64_t in_flight);

  std::uint64_t window() const;
  // Somebody seems to measure the rate, and drops what is above it.
  bool is_policed() const { return policed_; }
  std::uint64_t rate() const { return pacing_rate_; }  // bytes per second; 0: not paced yet
  std::uint64_t bottleneck() const { return bottleneck_; }

  // When the next packet may leave, after one of `bytes` left now.
  Nanos NextSend(Nanos previous, std::uint32_t bytes, Nanos now) const {
    if (fixed_ || pacing_rate_ == 0 || unpaced_) return now;
    // Credit for at most one burst, so that a late timer does not slow the flow down.
    return std::max(previous, now - BurstTime()) + PaceOf(bytes);
  }

  // How long one who has used up his burst waits, to send some packets together again.
  Nanos Quantum() const { return std::min(BurstTime() / 2, kLongestQuantum); }

 private:
  enum class Mode : std::uint8_t { kStartup, kDrain, kProbe, kProbeRtt };
  static constexpr std::uint32_t kNoCeiling = UINT32_MAX;
  static constexpr int kPaceShift = 20;
  static constexpr std::uint32_t kBurstBytes = 128 * 1024;  // the most
  static constexpr Nanos kLongestQuantum = 50 * kMicrosecond;

  // Of a rate in the history, in units: seldom more than 32 bits of it are known.
  static constexpr std::uint64_t kRateUnit = 64;  // bytes a second
  static constexpr std::size_t kHistory = 10;     // rounds

  std::size_t Slot() const { return Once(round_) % kHistory; }  // in the histories
  void TakeRate(const Newest& newest, Nanos now);
  void SetPace(std::uint64_t rate, bool is_short);
  // The time that so many bytes take; without a division, as every packet asks.
  Nanos PaceOf(std::uint64_t bytes) const {
    return static_cast<Nanos>(bytes * pace_ >> kPaceShift);
  }
  Nanos BurstTime() const { return PaceOf(std::max(burst_, std::min(proven_, kBurstBytes))); }
  double Many(const Rtt& rtt) const;
  double Left(const Rtt& rtt) const;
  std::uint64_t Curve(const Rtt& rtt, Nanos since) const;
  std::uint64_t PolicedCurve(Nanos since) const;
  void JudgeLosses(const Rtt& rtt, Nanos now);
  void GiveWay(const Rtt& rtt, Nanos now);
  void Regain(bool queue, const Rtt& rtt, Nanos now);
  void EndRound(const Rtt& rtt, Nanos now);
  void NoteAggregation(Nanos now);
  void UpdateMode(const Rtt& rtt, std::uint64_t in_flight, Nanos now);
  std::uint64_t RateDelay(const Rtt& rtt) const;

  // A session has one of these, and 1 KiB in all: small fields lie together.
  Mode mode_ : 4 = Mode::kStartup;
  std::uint8_t calm_ : 4 = 0;  // rounds without a queue since a loss or a mark counted
  bool fixed_ : 1 = false;     // the window
  bool full_ : 1 = false;      // startup found the bottleneck
  bool timed_out_ : 1 = false;
  bool unpaced_ : 1 = false;
  bool round_over_ : 1 = false;
  bool round_gap_ : 1 = false;  // something was lost by a gap
  bool round_ce_ : 1 = false;   // something was marked
  bool policed_ : 1 = false;    // somebody measures the rate: the ceiling is what a turn may hold
  std::uint8_t full_rounds_ : 4 = 0;
  std::uint8_t relapses_ : 4 = 0;  // how often it was to be paced
  std::uint8_t phase_ : 4 = 0;
  bool round_limited_ : 1 = false;  // by the application, for a moment at least
  std::uint8_t round_ = 0;          // in the histories
  std::uint8_t queues_ = 0;         // rounds with one of 1 ms, in a row
  std::uint16_t paced_rounds_ = 0;  // to come, whatever the way is
  LossPattern pattern_;
  std::uint32_t datagram_ = 1200;
  std::uint32_t window_ = 0;
  std::uint64_t pace_ = 0;  // nanoseconds a byte, shifted
  std::uint64_t pacing_rate_ = 0;
  std::uint64_t delivered_ = 0;
  Nanos delivered_time_ = 0;
  Nanos first_sent_time_ = 0;
  std::uint64_t app_limited_until_ = 0;
  std::uint64_t round_end_ = 0;
  Nanos round_start_ = 0;
  std::uint64_t bottleneck_ = 0;
  Nanos round_rtt_ = kNever;  // smallest of the round: what even the best packet waited
  Nanos phase_start_ = 0;
  Nanos probe_rtt_due_ = 0;
  Nanos lost_since_ = 0;   // the first loss of the last round that had one
  Nanos epoch_start_ = 0;  // of a run of acknowledgements at the bottleneck rate or above
  Nanos shared_since_ = 0;
  std::uint32_t shared_most_ = 0;      // what was in flight when the ceiling was learned last
  std::uint32_t epoch_delivered_ = 0;  // until then, the low bits
  std::uint32_t extra_ = 0;
  std::uint32_t burst_ = 0;  // bytes that may leave together, whatever is proven
  std::array<std::uint32_t, kHistory> round_extra_{};  // what NoteAggregation saw, as round_rate_
  std::array<std::uint32_t, kHistory> round_rate_{};   // maximum of each of the last rounds
  std::uint32_t round_delivered_ = 0;                  // bytes
  std::uint32_t round_lost_ = 0;
  std::uint32_t round_in_flight_ = 0;   // the most of the round
  std::uint32_t round_length_ = 0;      // nanoseconds, of the last
  std::uint32_t ceiling_ = kNoCeiling;  // learned from losses that somebody's sharing explains
  std::uint32_t undo_lost_ = 0;  // of a round when all was calm: arrives it all, it is calm again
  std::uint32_t full_rate_ = 0;  // in units
  std::uint32_t proven_ = 0;     // may be in flight, as half of it met no queue
};

}  // namespace sekisho::pm
