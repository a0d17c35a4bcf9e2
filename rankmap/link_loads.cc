// SPDX-License-Identifier: Apache-2.0
#include "rankmap/link_loads.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <functional>
#include <numeric>

#include "rankmap/load_kernels.h"

namespace sekisho::rankmap {
namespace {

constexpr int kSpoiled = 8;  // changes written at once: most routes are no longer
constexpr size_t kBlock = 4;  // flows added before the trial is judged

}  // namespace

LinkLoads::LinkLoads(const Pattern& pattern, const Network& network, bool by_step,
                     Placement placement, LoadShares shares)
    : network_(network),
      shares_(shares),
      planes_(by_step ? pattern.steps() : 1),
      links_(network.links()),
      plane_bits_(std::bit_width(links_)) {
  if (network.kind() == Network::Kind::kGrid) {
    routes_.emplace(network);
    longest_route_ = network.diameter();
  } else {
    longest_route_ = 2 * network.levels().size();
  }
  MakeFlows(pattern, by_step);
  Reset(std::move(placement));
}

void LinkLoads::MakeFlows(const Pattern& pattern, bool by_step) {
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
  offsets_.assign(2 * network_.slots() + 1, 0);
  for (const Message& m : messages) {
    ++offsets_[2 * m.source + 1];
    ++offsets_[2 * m.target + 2];
  }
  std::partial_sum(offsets_.begin(), offsets_.end(), offsets_.begin());
  flows_.resize(offsets_.back());
  const auto size_of = [&](const Message& m) {
    const uint32_t plane = by_step ? static_cast<uint32_t>(m.step) << plane_bits_ : 0;
    return Size{m.bytes / unit_, m.count, plane};
  };
  for (const Message& m : messages) {
    sizes_.push_back(size_of(m));
  }
  std::sort(sizes_.begin(), sizes_.end(), std::greater<>());
  sizes_.erase(std::unique(sizes_.begin(), sizes_.end()), sizes_.end());
  sizes_.shrink_to_fit();
  std::vector<uint32_t> next(offsets_.begin(), offsets_.end() - 1);
  for (const Message& m : messages) {
    const auto size = std::lower_bound(sizes_.begin(), sizes_.end(), size_of(m), std::greater<>());
    const uint32_t index = static_cast<uint32_t>(size - sizes_.begin());
    flows_[next[2 * m.source]++] = {m.target, index};
    flows_[next[2 * m.target + 1]++] = {m.source, index};
  }
  for (size_t list = 0; list + 1 < offsets_.size(); ++list) {
    std::stable_sort(flows_.begin() + offsets_[list], flows_.begin() + offsets_[list + 1],
                     [](const Flow& a, const Flow& b) { return a.size < b.size; });
  }
}

void LinkLoads::Reset(Placement placement) {
  placement_ = std::move(placement);
  next_ = placement_.slots();
  loads_.assign(planes_ == 1 ? links_ : static_cast<size_t>(planes_) << plane_bits_, 0);
  hops_sum_ = 0;
  load_sum_ = 0;
  for (uint32_t rank = 0; 2 * rank + 1 < offsets_.size(); ++rank) {
    for (uint32_t i = offsets_[2 * rank]; i < offsets_[2 * rank + 1]; ++i) {
      const Size& size = sizes_[flows_[i].size];
      const int from = static_cast<int>(placement_.slot_of(rank)) / network_.capacity();
      const int to = static_cast<int>(placement_.slot_of(flows_[i].peer)) / network_.capacity();
      network_.Route(from, to, [&](int link) {
        loads_[size.plane + link] += static_cast<double>(size.bytes);
        load_sum_ += size.bytes;
      });
      hops_sum_ += size.count * network_.Distance(from, to);
    }
  }
  max_.assign(planes_, 0);
  at_max_.assign(planes_, 0);
  for (int plane = 0; plane < planes_; ++plane) {
    Rescan(plane);
  }
  max_sum_ = std::accumulate(max_.begin(), max_.end(), 0.0);
  set_power(power_);
}

void LinkLoads::Rescan(int plane) {
  const double* loads = loads_.data() + (static_cast<size_t>(plane) << plane_bits_);
  double most = 0;
  for (uint32_t link = 0; link < links_; ++link) {
    most = loads[link] > most ? loads[link] : most;
  }
  int count = 0;
  for (uint32_t link = 0; link < links_; ++link) {
    count += loads[link] == most ? 1 : 0;
  }
  max_[plane] = most;
  at_max_[plane] = count;
}

void LinkLoads::set_power(int power) {
  power_ = power;
  scale_ = 1.0 / std::max(*std::max_element(max_.begin(), max_.end()), 1.0);
  ResetSums();
}

void LinkLoads::ResetSums() {
  sums_.assign(planes_, 0.0);
  roots_.assign(planes_, 0.0);
  smooth_ = 0;
  for (int plane = 0; plane < planes_; ++plane) {
    const double* loads = loads_.data() + (static_cast<size_t>(plane) << plane_bits_);
    for (uint32_t link = 0; link < links_; ++link) {
      sums_[plane] += Power(loads[link]);
    }
    roots_[plane] = Root(sums_[plane]);
    smooth_ += roots_[plane];
  }
}

double LinkLoads::Power(double load) const {
  double x = load * scale_;
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

// The trial's placement, and room for what it changes.
void LinkLoads::Begin(std::span<const uint32_t> ranks) {
  cycle_.assign(ranks.begin(), ranks.end());
  size_t flows = 0;
  for (size_t i = 0; i < cycle_.size(); ++i) {
    const uint32_t rank = cycle_[i];
    next_[rank] = placement_.slot_of(cycle_[(i + 1) % cycle_.size()]);
    for (const uint32_t list : {2 * rank, 2 * rank + 1}) {
      __builtin_prefetch(FlowsOf(list).data());
      flows += FlowsOf(list).size();
    }
  }
  const size_t room = 2 * flows * longest_route_ + kSpoiled + GridRoutes::kSpoiled;
  if (room > cells_.size()) {
    cells_.resize(room);
    changes_.resize(room);
    before_.resize(room);
    rises_.resize(room);
  }
  touched_ = 0;
  trial_ = {hops_sum_, load_sum_, smooth_};
  trial_sums_ = sums_;
  trial_roots_ = roots_;
}

void LinkLoads::Append(const Size& size, uint32_t from, uint32_t to, int sign) {
  uint32_t* cells = cells_.data() + touched_;
  int64_t links = 0;
  int64_t distance = 0;
  if (routes_) {
    links = routes_->Write(from, to, cells) - cells;
    distance = links;
  } else {
    const int source = static_cast<int>(from) / network_.capacity();
    const int target = static_cast<int>(to) / network_.capacity();
    network_.Route(source, target, [&](int link) { cells[links++] = link; });
    distance = network_.Distance(source, target);
  }
  const double change = static_cast<double>(sign * size.bytes);
  double* changes = changes_.data() + touched_;
  for (int k = 0; k < kSpoiled; ++k) {
    changes[k] = change;
  }
  for (int k = kSpoiled; k < links; ++k) {
    changes[k] = change;
  }
  if (planes_ > 1) {
    for (int k = 0; k < links; ++k) {
      cells[k] += size.plane;
    }
  }
  touched_ += links;
  trial_.load_sum += sign * size.bytes * links;
  trial_.hops_sum += sign * size.count * distance;
}

// The routes of what a rank sends or receives, where it is or where it will be.
void LinkLoads::AppendFlows(uint32_t list, std::span<const Flow> flows, const std::vector<uint32_t>& slots, int sign) {
  const uint32_t slot = slots[list / 2];
  const bool is_out = list % 2 == 0;
  for (const Flow flow : flows) {
    const uint32_t peer = slots[flow.peer];
    if (is_out) {
      Append(sizes_[flow.size], slot, peer, sign);
    } else if (next_[flow.peer] == placement_.slot_of(flow.peer)) {  // else the sender counts it
      Append(sizes_[flow.size], peer, slot, sign);
    }
  }
}

// The changes from `first` on.
void LinkLoads::Apply(size_t first) {
  const size_t end = touched_;
  const uint32_t* cells = cells_.data();
  double* changes = changes_.data();
  double* before = before_.data();
  double* loads = loads_.data();
  for (size_t i = first; i < end; ++i) {
    before[i] = loads[cells[i]];
    loads[cells[i]] = before[i] + changes[i];
  }
  std::fill(before + end, before + end + 3, 0.0);
  std::fill(changes + end, changes + end + 3, 0.0);
  const size_t padded = (end - first + 3) / 4 * 4;
  if (planes_ == 1) {
    trial_sums_[0] += PowerRise(before + first, changes + first, padded, scale_, power_);
    return;
  }
  double* rises = rises_.data();
  PowerRises(before + first, changes + first, padded, scale_, power_, rises);
  for (size_t i = first; i < end; ++i) {
    trial_sums_[PlaneOf(cells[i])] += rises[i - first];
  }
}

// By how much hops and the sum of the loads rise, in their shares.
double LinkLoads::RiseOfOthers() const {
  const auto relative = [](int64_t before, int64_t after) {
    return static_cast<double>(after - before) / static_cast<double>(std::max<int64_t>(before, 1));
  };
  return shares_.hops * relative(hops_sum_, trial_.hops_sum) + shares_.loads * relative(load_sum_, trial_.load_sum);
}

// While flows are added, all sums only rise.  `flows` are the last that were.
bool LinkLoads::IsSurelyAbove(double most, std::span<const Flow> flows) {
  const double smooth = smooth_ * (1.0 + most - RiseOfOthers());
  if (planes_ == 1) {  // a power is cheaper than a root
    return smooth < 0 || trial_sums_[0] > Power(smooth);
  }
  for (const Flow& flow : flows) {
    UpdateRoot(PlaneOf(sizes_[flow.size].plane));
  }
  return trial_.smooth > smooth;
}

void LinkLoads::UpdateRoot(uint32_t plane) {
  const double root = Root(trial_sums_[plane]);
  trial_.smooth += root - trial_roots_[plane];
  trial_roots_[plane] = root;
}

double LinkLoads::Rise() {
  if (planes_ == 1) {
    UpdateRoot(0);
  }
  trial_.smooth = std::accumulate(trial_roots_.begin(), trial_roots_.end(), 0.0);
  return trial_.smooth / smooth_ - 1.0 + RiseOfOthers();
}

void LinkLoads::RemoveAll() {
  for (const uint32_t rank : cycle_) {
    AppendFlows(2 * rank, FlowsOf(2 * rank), placement_.slots(), -1);
    AppendFlows(2 * rank + 1, FlowsOf(2 * rank + 1), placement_.slots(), -1);
  }
  Apply(0);
  for (int plane = 0; plane < planes_ && planes_ > 1; ++plane) {
    if (trial_sums_[plane] != sums_[plane]) {
      UpdateRoot(plane);
    }
  }
}

// False as soon as the trial is sure to be above.
bool LinkLoads::AddAll(double most) {
  for (const uint32_t way : {0u, 1u}) {
    for (const uint32_t rank : cycle_) {
      const uint32_t list = 2 * rank + way;
      for (auto left = FlowsOf(list); !left.empty();) {
        const auto flows = left.first(std::min<size_t>(kBlock, left.size()));
        left = left.subspan(flows.size());
        const size_t first = touched_;
        AppendFlows(list, flows, next_, 1);
        Apply(first);
        if (IsSurelyAbove(most, flows)) {
          return false;
        }
      }
    }
  }
  return true;
}

double LinkLoads::TryCycle(std::span<const uint32_t> ranks, double most) {
  Begin(ranks);
  RemoveAll();
  const double rise = AddAll(most) ? Rise() : std::numeric_limits<double>::infinity();
  for (size_t i = touched_; i > 0; --i) {  // backwards: one cell may have changed more than once
    loads_[cells_[i - 1]] = before_[i - 1];
  }
  for (const uint32_t rank : cycle_) {
    next_[rank] = placement_.slot_of(rank);
  }
  return rise;
}

void LinkLoads::Commit() {
  for (size_t i = 0; i < touched_; ++i) {
    const uint32_t plane = PlaneOf(cells_[i]);
    const double before = loads_[cells_[i]];
    const double after = before + changes_[i];
    loads_[cells_[i]] = after;
    at_max_[plane] -= before == max_[plane] ? 1 : 0;
    if (after > max_[plane]) {
      max_[plane] = after;
      at_max_[plane] = 1;
    } else {
      at_max_[plane] += after == max_[plane] ? 1 : 0;
    }
  }
  max_sum_ = 0;
  for (int plane = 0; plane < planes_; ++plane) {
    if (at_max_[plane] <= 0) {
      Rescan(plane);
    }
    max_sum_ += max_[plane];
    sums_[plane] = trial_sums_[plane];
    roots_[plane] = trial_roots_[plane];
  }
  smooth_ = trial_.smooth;
  hops_sum_ = trial_.hops_sum;
  load_sum_ = trial_.load_sum;
  const uint32_t first = placement_.slot_of(cycle_[0]);
  for (size_t i = 0; i < cycle_.size(); ++i) {
    const uint32_t slot = i + 1 < cycle_.size() ? placement_.slot_of(cycle_[i + 1]) : first;
    placement_.Put(cycle_[i], slot);
    next_[cycle_[i]] = slot;
  }
}

std::vector<int64_t> LinkLoads::PlaneLoads(int plane) const {
  const auto first = loads_.begin() + (static_cast<size_t>(plane) << plane_bits_);
  std::vector<int64_t> loads;
  for (auto load = first; load != first + links_; ++load) {
    loads.push_back(static_cast<int64_t>(*load) * unit_);
  }
  return loads;
}

}  // namespace sekisho::rankmap
