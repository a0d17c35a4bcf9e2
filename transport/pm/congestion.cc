// SPDX-License-Identifier: Apache-2.0
// A model of the path in the manner of BBR (Cardwell et al. 2016): bottleneck rate and smallest
// round trip.
#include "transport/pm/congestion.h"

#include <algorithm>
#include <cmath>

namespace sekisho::pm {
namespace {

constexpr std::uint64_t kUsualDatagram = 1472;
constexpr std::uint32_t kInitialPackets = 10;
constexpr std::uint32_t kLeastPackets = 4;
// What may leave together: 16 packets, and on a fast path what it carries in so little time that no
// timer could tell it apart.
constexpr std::uint32_t kBurstPackets = 16;
constexpr Nanos kBurstTime = 100 * kMicrosecond;
constexpr std::uint64_t kSlowest = 1000;  // bytes a second
// From here on (bytes a second) one buffer of segmentation offload takes less time than to sleep
// and to be woken: only the window limits, the processors are what is slow.
constexpr std::uint64_t kUnpaced = 500'000'000;
// On a shorter way (its empty round trip) a rate that is seen is more often what processes get of
// their processors than what the path carries: who keeps to it is woken for each few packets, and
// then gets no more.  After a loss it may be the path's, and what leaves at once would queue there.
constexpr Nanos kShortWay = kMillisecond;
constexpr std::uint16_t kPacedRounds = 100;  // twice as long each time
constexpr std::uint8_t kMostRelapses = 4;
// By so much a host may be late to acknowledge or to send, because others had its processor: what
// the path carries meanwhile must be in flight, too.
constexpr Nanos kLateness = 200 * kMicrosecond;
// Less is what hosts take; and a sixteenth of the round trip, but no more than others' queues vary.
constexpr Nanos kQueue = 100 * kMicrosecond;
constexpr Nanos kMostVariation = kMillisecond;
constexpr std::uint32_t kMostProven = 256 * 1024;
constexpr Nanos kProvenFor = 10 * kSecond;  // without sending anything
constexpr std::uint32_t kLeastSharing = 2;  // packets, where others want the path as well
// With few packets in flight losses are so many that a TCP often waits for its timer (200 ms), and
// what it sends comes in trains, of which more is lost.  It is not so for PM: it gives away more
// than TCP, and grows slower, the more so the longer that timer is beside a round trip.
constexpr int kFewPackets = 16;  // twice as many are not few at all
constexpr Nanos kNear = 10 * kMillisecond, kFar = 40 * kMillisecond;
constexpr double kGiveWay = 0.7, kGiveWayOfFew = 0.4;  // of many as CUBIC does
constexpr double kMore = 0.5, kMoreOfFew = 1.0 / 12;   // packets a round, where the curve is slower
// Where the rate is measured nobody sees a queue, and a TCP that has lost a train of packets waits
// for its timer, too; PM gives away once for what may have been one train of somebody else.
constexpr Nanos kRegain = 150 * kMillisecond;
constexpr Nanos kOneTrain = 3 * kMillisecond;
constexpr std::uint32_t kLeastPoliced = 512;  // bytes a turn
constexpr Nanos kFreeAgain = 2 * kSecond;     // without a loss, and whoever wanted more had it
constexpr int kManyRounds = 64;               // with a queue: that is the bottleneck now
constexpr std::uint32_t kManyLost = 8;        // packets, in a round of startup
constexpr unsigned kCalmRounds = 8;           // without a queue: nobody shares it any more
// Percent of the bottleneck rate in each phase of about one smallest round trip.
constexpr std::array<std::uint32_t, 8> kPhaseGain = {125, 75, 100, 100, 100, 100, 100, 100};
constexpr std::uint32_t kStartupGain = 289;
// A process that lost its processor for a tick must not push every good measurement out.
constexpr Nanos kLeastRound = kMillisecond;

// Inlined, for then a constant costs no division.
[[gnu::always_inline]] inline std::uint64_t MulDiv(std::uint64_t a, std::uint64_t b,
                                                   std::uint64_t c) {
  if (!__builtin_constant_p(c)) c = Once(c);
  if (c == 0) return 0;
  std::uint64_t product;  // most often no longer than a word, whose division is far cheaper
  if (!__builtin_mul_overflow(a, b, &product)) return product / c;
  return static_cast<std::uint64_t>(static_cast<unsigned __int128>(a) * b / c);
}

// So many packets of the usual size, or two longer ones, as of a first window in RFC 6928: the
// queues of a network with longer packets are not longer for that.
std::uint64_t BytesOf(std::uint32_t packets, std::uint64_t datagram) {
  return std::min(packets * datagram, std::max(2 * datagram, packets * kUsualDatagram));
}

// What the ceiling of a rate is for: on a shorter way there would be no whole packet.
Nanos Turn(const Rtt& rtt) { return std::max(rtt.smoothed(), kLeastRound); }

std::uint32_t Clamped(std::uint64_t value) {
  return static_cast<std::uint32_t>(std::min<std::uint64_t>(value, UINT32_MAX));
}

}  // namespace

void Congestion::Init(std::uint32_t fixed_window, std::uint32_t datagram, Nanos now) {
  *this = Congestion();
  fixed_ = fixed_window != 0;
  datagram_ = datagram;
  window_ = fixed_ ? fixed_window : kInitialPackets * datagram;
  delivered_time_ = first_sent_time_ = now;
  probe_rtt_due_ = now + 10 * kSecond;
}

RateSample Congestion::OnSent(std::uint32_t bytes, std::uint64_t in_flight_before, Nanos now) {
  if (in_flight_before == 0) {
    if (now - delivered_time_ > kProvenFor) {
      proven_ = round_in_flight_ = relapses_ = 0;
      round_rtt_ = kNever;
    }
    first_sent_time_ = delivered_time_ = now;
  }
  round_in_flight_ = std::max(round_in_flight_, Clamped(in_flight_before + bytes));
  return {delivered_, delivered_time_, first_sent_time_, app_limited_until_ > delivered_};
}

void Congestion::OnAcked(const RateSample& sample, Nanos sent_time, std::uint32_t bytes, Nanos now,
                         Newest& newest) {
  delivered_ += bytes;
  round_delivered_ += bytes;
  pattern_.OnArrived();
  delivered_time_ = now;
  if (sample.delivered >= round_end_ && now - round_start_ >= kLeastRound) {
    round_end_ = delivered_;
    round_length_ = Clamped(static_cast<std::uint64_t>(now - round_start_));
    round_start_ = now;
    round_over_ = true;
  }
  first_sent_time_ = std::max(first_sent_time_, sent_time);
  if (sent_time >= newest.sent) newest = {sample, sent_time};
}

// The newest packet of an ACK tells the rate of all that arrived since that packet was sent.
void Congestion::TakeRate(const Newest& newest, Nanos now) {
  const RateSample& sample = newest.sample;
  if (newest.sent < 0) return;
  // Neither faster than it was sent nor faster than it was acknowledged.
  const Nanos interval =
      std::max(now - sample.delivered_time, newest.sent - sample.first_sent_time);
  if (interval <= 0) return;
  const std::uint64_t rate =
      MulDiv(delivered_ - sample.delivered, kSecond, static_cast<std::uint64_t>(interval));
  if (sample.app_limited && rate <= bottleneck_) return;
  std::uint32_t& best = round_rate_[Slot()];
  best = std::max(best, Clamped((rate + kRateUnit - 1) / kRateUnit));
  bottleneck_ = std::max(bottleneck_, rate);
}

void Congestion::SetPace(std::uint64_t rate, bool is_short) {
  pacing_rate_ = rate;
  unpaced_ = !policed_ &&
             (bottleneck_ >= kUnpaced ||
              (is_short && ceiling_ == kNoCeiling && paced_rounds_ == 0 && mode_ != Mode::kDrain));
  pace_ = MulDiv(kSecond, 1 << kPaceShift, std::max<std::uint64_t>(rate, kSlowest));
  burst_ =
      Clamped(std::max(policed_ ? std::uint64_t{2} * datagram_ : BytesOf(kBurstPackets, datagram_),
                       std::min(MulDiv(policed_ ? rate : bottleneck_, kBurstTime, kSecond),
                                std::uint64_t{kBurstBytes})));
}

// A receiver that sleeps acknowledges much at once: so much more must be in flight to keep the
// rate.
void Congestion::NoteAggregation(Nanos now) {
  const std::uint64_t expected =
      MulDiv(bottleneck_, static_cast<std::uint64_t>(now - epoch_start_), kSecond);
  const std::uint32_t got = static_cast<std::uint32_t>(delivered_) - epoch_delivered_;
  if (got <= expected) {
    epoch_start_ = now;
    epoch_delivered_ = static_cast<std::uint32_t>(delivered_);
    return;
  }
  std::uint32_t& extra = round_extra_[Slot()];
  extra = std::max(extra,
                   Clamped(std::min<std::uint64_t>(got - expected, std::min(window_, ceiling_))));
  extra_ = std::max(extra_, extra);
}

std::uint64_t Congestion::RateDelay(const Rtt& rtt) const {
  return MulDiv(bottleneck_, static_cast<std::uint64_t>(rtt.minimum()), kSecond);
}

// 0 where few were in flight, on a way that is short beside TCP's timer, when a loss said that
// others want the path as well; 1 where there were many, or the way is long.
double Congestion::Many(const Rtt& rtt) const {
  if (policed_) return 1;
  const double packets = static_cast<double>(shared_most_) / datagram_;
  const double many = (packets - kFewPackets) / kFewPackets;
  const double far =
      static_cast<double>(rtt.smoothed() - kNear) / static_cast<double>(kFar - kNear);
  return std::clamp(std::max(many, far), 0.0, 1.0);
}

// The part of what was in flight that may still be then.
double Congestion::Left(const Rtt& rtt) const {
  return kGiveWayOfFew + (kGiveWay - kGiveWayOfFew) * Many(rtt);
}

// How much a flow that shares the path may have in flight so long after it had to give way: the
// curve of CUBIC (RFC 9438), which soon comes near what was too much and stays there for a while.
std::uint64_t Congestion::Curve(const Rtt& rtt, Nanos since) const {
  constexpr double kSteepness = 0.4;  // packets a cubic second
  const double most = static_cast<double>(shared_most_) / datagram_;
  const double flat = std::cbrt(most * (1 - Left(rtt)) / kSteepness);  // seconds until then
  const double ahead = static_cast<double>(since) / kSecond - flat;
  const double packets = kSteepness * ahead * ahead * ahead + most;
  return static_cast<std::uint64_t>(std::clamp(packets, 0.0, 1e9) * datagram_);
}

// One of the same form that is there after kRegain, however much it is.
std::uint64_t Congestion::PolicedCurve(Nanos since) const {
  const double ahead = static_cast<double>(since) / kRegain - 1;
  const double part = 1 + (1 - kGiveWay) * ahead * ahead * ahead;
  return static_cast<std::uint64_t>(std::clamp(part, 0.0, 1e3) * shared_most_);
}

// Only on short ways: on longer ones a rate's limit is found too late to be kept.  A queue that is
// seen tells more than a pattern; but a process that waits for its processor looks like a short
// one.  Who sends now and then loses little, and that in a row; and who looks for the rate of the
// path tries too much.
void Congestion::JudgeLosses(const Rtt& rtt, Nanos now) {
  const bool queue = round_rtt_ != kNever && round_rtt_ > rtt.lowest() + kShortWay;
  if (round_limited_ && !policed_) pattern_.Forget();
  // What is lost near the limit, or above it, is lost to that.
  const bool below =
      !policed_ || ceiling_ <= std::max(kLeastPoliced, shared_most_ - shared_most_ / 8);
  const LossPattern::Verdict verdict = pattern_.Judge(!queue && below && mode_ == Mode::kProbe);
  queues_ = queue ? static_cast<std::uint8_t>(std::min(queues_ + 1, kManyRounds)) : std::uint8_t{0};
  if (policed_ && (verdict == LossPattern::Verdict::kByChance || queues_ == kManyRounds)) {
    ceiling_ = kNoCeiling;
    policed_ = false;
  }
  if (policed_ || verdict != LossPattern::Verdict::kPoliced || rtt.lowest() >= kShortWay) return;
  policed_ = true;
  ceiling_ = Clamped(MulDiv(round_delivered_, static_cast<std::uint64_t>(Turn(rtt)),
                            std::max<std::uint64_t>(round_length_, kLeastRound)));
  shared_since_ = now - kSecond;
  GiveWay(rtt, now);
}

// Others want the path as well.
void Congestion::GiveWay(const Rtt& rtt, Nanos now) {
  if (policed_ && now - shared_since_ < kOneTrain) return;
  shared_most_ = policed_ ? ceiling_ : std::min(ceiling_, window_);
  shared_since_ = now;
  ceiling_ = std::max(static_cast<std::uint32_t>(shared_most_ * Left(rtt)),
                      policed_ ? kLeastPoliced : kLeastSharing * datagram_);
  full_ = true;
  calm_ = 0;
  proven_ = 0;
}

// On short ways the curve is slower than TCP was before it: half a packet a round.
void Congestion::Regain(bool queue, const Rtt& rtt, Nanos now) {
  if (policed_ && round_limited_) return;  // it was not tried
  const Nanos since = now - shared_since_;
  const std::uint64_t ceiling = ceiling_;
  const double more = kMoreOfFew + (kMore - kMoreOfFew) * Many(rtt);
  const auto least = policed_ ? 0 : static_cast<std::uint32_t>(datagram_ * more);
  const std::uint64_t curve = policed_ ? PolicedCurve(since) : Curve(rtt, since);
  ceiling_ = Clamped(std::max(ceiling + least, std::min(curve, ceiling + ceiling / 2)));
  calm_ = queue ? 0 : std::min<unsigned>(calm_ + 1, kCalmRounds) & 15;
  if (policed_ ? now - shared_since_ < kFreeAgain : calm_ < kCalmRounds) return;
  ceiling_ = kNoCeiling;
  policed_ = false;
}

void Congestion::EndRound(const Rtt& rtt, Nanos now) {
  // A queue is there if even the luckiest packet of the round waited.  Then a loss is one, as it is
  // for TCP, with which it may be shared; without a queue it says nothing.
  const Nanos empty = rtt.lowest() + std::min(rtt.lowest() / 16, kMostVariation) + kQueue;
  const bool queue = round_rtt_ != kNever && round_rtt_ > empty;
  const bool was_calm = ceiling_ == kNoCeiling && paced_rounds_ == 0;
  if (round_lost_ > 0 || round_ce_) undo_lost_ = was_calm && !round_ce_ ? round_lost_ : 0;
  if (round_gap_ || round_ce_) {
    if (paced_rounds_ == 0) ++relapses_;
    relapses_ = std::clamp<std::uint8_t>(relapses_, 1, kMostRelapses) & 15U;
    paced_rounds_ = static_cast<std::uint16_t>(kPacedRounds << (relapses_ - 1));
  } else if (paced_rounds_ > 0) {
    --paced_rounds_;
  }
  JudgeLosses(rtt, now);
  if (round_ce_ || ((queue || policed_) && round_lost_ > 0)) {
    GiveWay(rtt, now);
  } else if (ceiling_ != kNoCeiling) {
    Regain(queue, rtt, now);
  }
  round_limited_ = app_limited_until_ > delivered_;
  // What was in flight and met neither a loss nor a queue, where nobody shares the path: twice as
  // much may follow.  A program that sends now and then has no rate to measure.
  if (ceiling_ == kNoCeiling && !queue && round_lost_ == 0) {
    proven_ = std::max(proven_, 2 * std::min(round_in_flight_, kMostProven / 2));
  } else if (queue || round_lost_ > round_in_flight_ / 8) {
    proven_ /= 2;
  }
  round_in_flight_ = 0;
  // Startup ends when three rounds brought no quarter more, or one round lost that much.
  if (!full_ && app_limited_until_ <= delivered_) {
    const std::uint32_t much = std::max(round_delivered_ / 4, kManyLost * datagram_);
    full_ = round_gap_ && round_lost_ > much;
    const std::uint64_t full = kRateUnit * full_rate_;
    if (bottleneck_ >= full + full / 4) {
      full_rate_ = Clamped(bottleneck_ / kRateUnit);
      full_rounds_ = 0;
    } else if (++full_rounds_ >= 3) {
      full_ = true;
    }
  }
  // An idle round must not push a good measurement out.
  const std::uint32_t rate = app_limited_until_ > delivered_ ? round_rate_[Slot()] : 0;
  round_ = static_cast<std::uint8_t>((Slot() + 1) % kHistory);
  round_rate_[Slot()] = rate;
  bottleneck_ = kRateUnit * *std::max_element(round_rate_.begin(), round_rate_.end());
  round_extra_[Slot()] = 0;
  extra_ = *std::max_element(round_extra_.begin(), round_extra_.end());
  round_lost_ = round_delivered_ = 0;
  round_ce_ = false;
  round_gap_ = false;
  round_rtt_ = kNever;
}

void Congestion::UpdateMode(const Rtt& rtt, std::uint64_t in_flight, Nanos now) {
  const std::uint64_t rate_delay = RateDelay(rtt);
  if (mode_ == Mode::kStartup && full_) mode_ = Mode::kDrain;
  if (mode_ == Mode::kDrain && in_flight <= rate_delay + BytesOf(kLeastPackets, datagram_)) {
    mode_ = Mode::kProbe;
    phase_ = 2;
    phase_start_ = now;
  }
  if (mode_ == Mode::kProbe && now - phase_start_ > std::max(rtt.minimum(), 20 * kMicrosecond)) {
    phase_ = (phase_ + 1) % kPhaseGain.size() & 15U;
    phase_start_ = now;
  }
  if (mode_ == Mode::kProbe && now > probe_rtt_due_) {
    mode_ = Mode::kProbeRtt;
    probe_rtt_due_ = now + 2 * rtt.smoothed();  // until then
  }
  if (mode_ == Mode::kProbeRtt && now > probe_rtt_due_) {
    mode_ = Mode::kProbe;
    phase_ = 0;
    phase_start_ = now;
    probe_rtt_due_ = now + 10 * kSecond;
  }
}

void Congestion::OnAckEnd(const Newest& newest, const Rtt& rtt, std::uint64_t in_flight,
                          std::uint64_t new_ce, Nanos now) {
  timed_out_ = false;
  round_ce_ = round_ce_ || new_ce > 0;
  round_rtt_ = std::min(round_rtt_, rtt.latest());
  TakeRate(newest, now);
  NoteAggregation(now);
  if (round_over_) EndRound(rtt, now);
  round_over_ = false;
  UpdateMode(rtt, in_flight, now);
  if (bottleneck_ == 0 || !rtt.measured()) return;

  const std::uint64_t rate_delay = RateDelay(rtt);
  const std::uint32_t gain = mode_ == Mode::kStartup ? kStartupGain
                             : mode_ == Mode::kDrain ? 35
                             : mode_ == Mode::kProbe ? kPhaseGain[phase_ % kPhaseGain.size()]
                                                     : 100;
  // A measurement over a pause says nothing: the least window a round trip may always leave.
  const std::uint64_t least =
      MulDiv(BytesOf(kLeastPackets, datagram_), kSecond,
             static_cast<std::uint64_t>(std::max<Nanos>(rtt.smoothed(), 1)));
  std::uint64_t rate = std::max(MulDiv(bottleneck_, gain, 100), least);
  if (mode_ == Mode::kStartup) rate = std::max(pacing_rate_, rate);
  if (policed_) rate = MulDiv(ceiling_, kSecond, static_cast<std::uint64_t>(Turn(rtt)));
  SetPace(rate, rtt.lowest() < kShortWay);
  const std::uint64_t late =
      std::max<std::uint64_t>(burst_, MulDiv(bottleneck_, kLateness, kSecond));
  const std::uint64_t target = mode_ == Mode::kStartup
                                   ? MulDiv(rate_delay, kStartupGain, 100) + late
                                   : 2 * rate_delay + late + extra_;
  const std::uint64_t initial = BytesOf(kInitialPackets, datagram_);
  const std::uint64_t least_window = mode_ == Mode::kStartup ? window_ : 0;
  if (!fixed_) window_ = Clamped(std::max({target, initial, least_window}));
}

void Congestion::OnLost(std::uint64_t number, std::uint32_t bytes, bool by_gap, Nanos now) {
  if (round_lost_ == 0) {
    lost_since_ = now;
    undo_lost_ = 0;
  }
  pattern_.OnLost(number);
  round_lost_ += bytes;
  if (app_limited_until_ > delivered_) {  // as much will never be delivered
    app_limited_until_ -= std::min<std::uint64_t>(bytes, app_limited_until_ - delivered_);
  }
  round_gap_ = round_gap_ || by_gap;
}

void Congestion::OnSpurious(std::uint32_t bytes, Nanos declared) {
  pattern_.OnFound();
  if (declared < lost_since_) return;  // of an earlier round: what came after counts
  if (round_lost_ > 0) {
    round_lost_ -= std::min(round_lost_, bytes);
    round_gap_ = round_gap_ && round_lost_ > 0;
    return;
  }
  if (undo_lost_ == 0) return;
  undo_lost_ -= std::min(undo_lost_, bytes);
  if (undo_lost_ > 0) return;
  ceiling_ = kNoCeiling;
  policed_ = false;
  if (paced_rounds_ > 0 && relapses_ > 0) --relapses_;
  paced_rounds_ = 0;
}

void Congestion::OnTimeout() { timed_out_ = true; }

void Congestion::OnAppLimited(std::uint64_t in_flight) {
  app_limited_until_ = std::max<std::uint64_t>(delivered_ + in_flight, 1);
  round_limited_ = true;
}

std::uint64_t Congestion::window() const {
  if (fixed_) return window_;
  const std::uint64_t least = BytesOf(kLeastPackets, datagram_);
  if (timed_out_ || mode_ == Mode::kProbeRtt) return std::min<std::uint64_t>(least, ceiling_);
  // Less than two packets a round leave by the pace.
  return std::min<std::uint64_t>(std::max<std::uint64_t>(least, std::max(window_, proven_)),
                                 policed_ ? std::max(ceiling_, 2 * datagram_) : ceiling_);
}

}  // namespace sekisho::pm
