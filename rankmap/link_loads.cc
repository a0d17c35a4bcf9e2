// SPDX-License-Identifier: Apache-2.0
#include "rankmap/link_loads.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace sekisho::rankmap {

LinkLoads::LinkLoads(const Pattern& pattern, const Network& network, bool by_step,
                     Placement placement)
    : network_(network), planes_(by_step ? pattern.steps() : 1), links_(network.links()) {
  const int slots = network.slots();
  offsets_.assign(slots + 1, 0);
  int64_t unit = 0;
  // Without steps, the messages of a pair are one flow.
  std::vector<Message> messages;
  for (const Message& m : pattern.messages()) {
    if (m.source == m.target) {
      continue;
    }
    unit = std::gcd(unit, m.bytes);
    if (!by_step && !messages.empty() && messages.back().source == m.source &&
        messages.back().target == m.target) {
      messages.back().bytes += m.bytes;
      messages.back().count += m.count;
    } else {
      messages.push_back(m);
    }
  }
  unit_ = std::max<int64_t>(unit, 1);
  for (const Message& m : messages) {
    ++offsets_[m.source + 1];
    ++offsets_[m.target + 1];
  }
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  flows_.resize(offsets_[slots]);
  std::vector<uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (const Message& m : messages) {
    const int plane = by_step ? m.step : 0;
    flows_[next[m.source]++] = {m.target, plane, m.bytes / unit_, m.count, true};
    flows_[next[m.target]++] = {m.source, plane, m.bytes / unit_, m.count, false};
  }

  const size_t cells = static_cast<size_t>(planes_) * links_;
  position_.resize(cells);
  stamp_.resize(cells);
  moving_.resize(slots);
  target_slot_.resize(slots);
  trial_sums_.resize(planes_);
  Reset(std::move(placement));
}

void LinkLoads::Reset(Placement placement) {
  placement_ = std::move(placement);
  loads_.assign(static_cast<size_t>(planes_) * links_, 0);
  hops_sum_ = 0;
  for (uint32_t rank = 0; rank + 1 < offsets_.size(); ++rank) {
    for (uint32_t i = offsets_[rank]; i < offsets_[rank + 1]; ++i) {
      const Flow& flow = flows_[i];
      if (flow.is_out) {
        const int from = placement_.slot_of(rank) / network_.capacity();
        const int to = placement_.slot_of(flow.peer) / network_.capacity();
        int64_t* loads = loads_.data() + static_cast<size_t>(flow.plane) * links_;
        network_.Route(from, to, [&](int link) { loads[link] += flow.bytes; });
        hops_sum_ += flow.count * network_.Distance(from, to);
      }
    }
  }
  max_.assign(planes_, 0);
  at_max_.assign(planes_, 0);
  for (int plane = 0; plane < planes_; ++plane) {
    Rescan(plane);
  }
  max_sum_ = std::accumulate(max_.begin(), max_.end(), int64_t{0});
  load_sum_ = std::accumulate(loads_.begin(), loads_.end(), int64_t{0});
  set_power(power_);
}

void LinkLoads::Rescan(int plane) {
  const auto first = loads_.begin() + static_cast<size_t>(plane) * links_;
  max_[plane] = links_ == 0 ? 0 : *std::max_element(first, first + links_);
  at_max_[plane] = static_cast<int>(std::count(first, first + links_, max_[plane]));
}

void LinkLoads::set_power(int power) {
  power_ = power;
  scale_ =
      1.0 / static_cast<double>(std::max<int64_t>(*std::max_element(max_.begin(), max_.end()), 1));
  ResetSums();
}

void LinkLoads::ResetSums() {
  sums_.assign(planes_, 0.0);
  roots_.assign(planes_, 0.0);
  smooth_ = 0;
  for (int plane = 0; plane < planes_; ++plane) {
    const int64_t* loads = loads_.data() + static_cast<size_t>(plane) * links_;
    for (int link = 0; link < links_; ++link) {
      sums_[plane] += Power(loads[link]);
    }
    roots_[plane] = Root(sums_[plane]);
    smooth_ += roots_[plane];
  }
}

double LinkLoads::Power(int64_t load) const {
  double x = static_cast<double>(load) * scale_;
  for (int p = power_; p > 1; p >>= 1) {
    x *= x;
  }
  return x;
}

double LinkLoads::Root(double sum) const {
  double x = std::max(sum, 0.0);
  for (int p = power_; p > 1; p >>= 1) {
    x = std::sqrt(x);  // exactly rounded everywhere, unlike pow
  }
  return x / scale_;
}

void LinkLoads::Touch(uint32_t link, int64_t change) {
  if (stamp_[link] != now_) {
    stamp_[link] = now_;
    position_[link] = static_cast<uint32_t>(touched_.size());
    touched_.push_back({link, change});
  } else {
    touched_[position_[link]].change += change;
  }
}

void LinkLoads::AddRoute(uint32_t from_slot, uint32_t to_slot, const Flow& flow, int64_t sign) {
  if (!flow.is_out) {
    std::swap(from_slot, to_slot);
  }
  const uint32_t base = static_cast<uint32_t>(flow.plane) * links_;
  const int64_t change = sign * flow.bytes;
  const int from = static_cast<int>(from_slot) / network_.capacity();
  const int to = static_cast<int>(to_slot) / network_.capacity();
  int hops = 0;
  network_.Route(from, to, [&](int link) {
    Touch(base + link, change);
    ++hops;
  });
  trial_.load_sum += change * hops;
  trial_.hops_sum += sign * flow.count *
                     (network_.kind() == Network::Kind::kGrid ? hops : network_.Distance(from, to));
}

LinkLoads::Trial LinkLoads::TryCycle(std::span<const uint32_t> ranks) {
  cycle_.assign(ranks.begin(), ranks.end());
  touched_.clear();
  if (++now_ == 0) {
    std::fill(stamp_.begin(), stamp_.end(), 0);
    now_ = 1;
  }
  trial_.hops_sum = hops_sum_;
  trial_.load_sum = load_sum_;
  for (size_t i = 0; i < cycle_.size(); ++i) {
    moving_[cycle_[i]] = 1;
    target_slot_[cycle_[i]] = placement_.slot_of(cycle_[(i + 1) % cycle_.size()]);
  }
  for (const uint32_t rank : cycle_) {
    const uint32_t before = placement_.slot_of(rank);
    const uint32_t after = target_slot_[rank];
    for (uint32_t i = offsets_[rank]; i < offsets_[rank + 1]; ++i) {
      const Flow& flow = flows_[i];
      const uint32_t peer = placement_.slot_of(flow.peer);
      if (moving_[flow.peer] == 0) {
        AddRoute(before, peer, flow, -1);
        AddRoute(after, peer, flow, 1);
      } else if (flow.is_out) {  // both ends move: counted once, by the sender
        AddRoute(before, peer, flow, -1);
        AddRoute(after, target_slot_[flow.peer], flow, 1);
      }
    }
  }
  for (const uint32_t rank : cycle_) {
    moving_[rank] = 0;
  }

  if (planes_ == 1) {
    double sum = sums_[0];
    for (const Touched& t : touched_) {
      const int64_t load = loads_[t.link];
      sum += Power(load + t.change) - Power(load);
    }
    trial_sums_[0] = sum;
    trial_.smooth = Root(sum);
    return trial_;
  }
  trial_sums_ = sums_;
  trial_planes_.clear();
  for (const Touched& t : touched_) {
    if (t.change != 0) {
      const int64_t load = loads_[t.link];
      const int plane = static_cast<int>(t.link / static_cast<uint32_t>(links_));
      trial_sums_[plane] += Power(load + t.change) - Power(load);
    }
  }
  trial_.smooth = 0;
  for (int plane = 0; plane < planes_; ++plane) {
    trial_.smooth += trial_sums_[plane] == sums_[plane] ? roots_[plane] : Root(trial_sums_[plane]);
  }
  return trial_;
}

void LinkLoads::Commit() {
  for (const Touched& t : touched_) {
    if (t.change == 0) {
      continue;
    }
    const int plane = static_cast<int>(t.link / static_cast<uint32_t>(links_));
    const int64_t before = loads_[t.link];
    const int64_t after = before + t.change;
    loads_[t.link] = after;
    at_max_[plane] -= before == max_[plane];
    if (after > max_[plane]) {
      max_[plane] = after;
      at_max_[plane] = 1;
    } else {
      at_max_[plane] += after == max_[plane];
    }
  }
  max_sum_ = 0;
  for (int plane = 0; plane < planes_; ++plane) {
    if (at_max_[plane] <= 0) {
      Rescan(plane);
    }
    max_sum_ += max_[plane];
    if (sums_[plane] != trial_sums_[plane]) {
      sums_[plane] = trial_sums_[plane];
      roots_[plane] = Root(sums_[plane]);
    }
  }
  smooth_ = trial_.smooth;
  hops_sum_ = trial_.hops_sum;
  load_sum_ = trial_.load_sum;
  for (const uint32_t rank : cycle_) {
    placement_.Put(rank, target_slot_[rank]);
  }
}

std::vector<int64_t> LinkLoads::PlaneLoads(int plane) const {
  const auto first = loads_.begin() + static_cast<size_t>(plane) * links_;
  std::vector<int64_t> loads(first, first + links_);
  for (int64_t& load : loads) {
    load *= unit_;
  }
  return loads;
}

}  // namespace sekisho::rankmap
