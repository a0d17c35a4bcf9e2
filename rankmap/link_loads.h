// SPDX-License-Identifier: Apache-2.0
// Bytes on every directed link, in all or step by step, with exact incremental evaluation of moving
// any few ranks; and the smooth p-norm that annealing needs because the largest load alone is
// blind.
#pragma once

#include <compare>
#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <vector>

#include "rankmap/grid_routes.h"
#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::rankmap {

// What counts beside smooth loads, relative changes as they.
struct LoadShares {
  double hops = 0;   // of the sum of hops
  double loads = 0;  // of the sum of all loads
};

class LinkLoads {
 public:
  // One plane of loads per step if `by_step`, else one.  Pattern and network outlive this.
  LinkLoads(const Pattern& pattern, const Network& network, bool by_step, Placement placement, LoadShares shares = {});

  const Placement& placement() const { return placement_; }
  void Reset(Placement placement);

  // Exact values of the placement as committed.
  int64_t max_link() const { return static_cast<int64_t>(max_sum_) * unit_; }  // of one plane, or the sum over planes
  int64_t hops_sum() const { return hops_sum_; }

  // Which power: smooth() is the sum over planes of (sum load^p)^(1/p), p one of 8, 16, 32.  Takes
  // the sums afresh: they drift by rounding, and a resumed run must see the same bits as an
  // unbroken one, so annealers call this at every chunk.
  void set_power(int power);
  int power() const { return power_; }
  double smooth() const { return smooth_; }

  // By how much, relatively, all is worse with ranks[i] in the slot of ranks[i + 1], the last in that of the first;
  // something above `most` as soon as it is sure to be that.  Call Commit, unless it is above, or forget it.
  double TryCycle(std::span<const uint32_t> ranks, double most = std::numeric_limits<double>::infinity());
  void Commit();

  int planes() const { return planes_; }
  std::vector<int64_t> PlaneLoads(int plane) const;

 private:
  // Many are of few sizes: what is common to them stands apart, for the sake of the cache.
  struct Size {
    int64_t bytes = 0;  // in unit
    int64_t count = 0;
    uint32_t plane = 0;  // its first load
    auto operator<=>(const Size&) const = default;
  };
  struct Flow {
    uint32_t peer = 0;
    uint32_t size = 0;  // in sizes_
  };
  // Of a trial: what is known of it so far.
  struct Trial {
    int64_t hops_sum = 0;
    int64_t load_sum = 0;  // over all links, in unit
    double smooth = 0;
  };

  void MakeFlows(const Pattern& pattern, bool by_step);
  void ResetSums();
  void Rescan(int plane);

  std::span<const Flow> FlowsOf(uint32_t list) const {
    return {flows_.data() + offsets_[list], flows_.data() + offsets_[list + 1]};
  }
  void Begin(std::span<const uint32_t> ranks);
  void RemoveAll();
  bool AddAll(double most);
  void AppendFlows(uint32_t list, std::span<const Flow> flows, const std::vector<uint32_t>& slots, int sign);
  void Append(const Size& size, uint32_t from, uint32_t to, int sign);
  void Apply(size_t first);
  bool IsSurelyAbove(double most, std::span<const Flow> flows);
  void UpdateRoot(uint32_t plane);
  double RiseOfOthers() const;
  double Rise();

  double Power(double load) const;
  double Root(double sum) const;
  uint32_t PlaneOf(uint32_t cell) const { return planes_ == 1 ? 0 : cell >> plane_bits_; }

  const Network& network_;
  const LoadShares shares_;
  int planes_ = 1;
  uint32_t links_ = 0;
  int plane_bits_ = 0;
  int64_t unit_ = 1;
  std::optional<GridRoutes> routes_;
  size_t longest_route_ = 0;
  Placement placement_;
  std::vector<uint32_t> offsets_;  // 2 * rank: what it sends, then what it receives, the largest first
  std::vector<Flow> flows_;
  std::vector<Size> sizes_;  // falling

  std::vector<double> loads_;  // by plane (2^plane_bits_ apart), link: whole numbers, below 2^53
  std::vector<double> max_;    // by plane
  std::vector<int> at_max_;    // links that carry it
  double max_sum_ = 0;
  int64_t hops_sum_ = 0;
  int64_t load_sum_ = 0;

  int power_ = 8;
  double scale_ = 1;          // loads are multiplied by it before the power
  std::vector<double> sums_;  // by plane
  std::vector<double> roots_;
  double smooth_ = 0;

  // The trial.
  std::vector<uint32_t> cycle_;
  std::vector<uint32_t> next_;  // by rank: its slot
  Trial trial_;
  std::vector<double> trial_sums_;  // by plane
  std::vector<double> trial_roots_;
  std::vector<uint32_t> cells_;  // whose load changes, in order, one more than once
  std::vector<double> changes_;  // by how much
  std::vector<double> before_;   // and its load before that
  std::vector<double> rises_;    // of powers, while they are added up
  size_t touched_ = 0;           // how many of these
};

}  // namespace sekisho::rankmap
