// SPDX-License-Identifier: Apache-2.0
// Bytes on every directed link, in all or step by step, with exact incremental evaluation of moving
// any few ranks; and the smooth p-norm that annealing needs because the largest load alone is
// blind.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::rankmap {

class LinkLoads {
 public:
  // One plane of loads per step if `by_step`, else one.  Both arguments outlive this.
  LinkLoads(const Pattern& pattern, const Network& network, bool by_step, Placement placement);

  const Placement& placement() const { return placement_; }
  void Reset(Placement placement);

  // Exact values of the placement as committed.
  int64_t max_link() const { return max_sum_ * unit_; }  // of one plane, or the sum over planes
  int64_t hops_sum() const { return hops_sum_; }
  int64_t load_sum() const { return load_sum_; }

  // Which power: smooth() is the sum over planes of (sum load^p)^(1/p), p one of 8, 16, 32.  Takes
  // the sums afresh: they drift by rounding, and a resumed run must see the same bits as an
  // unbroken one, so annealers call this at every chunk.
  void set_power(int power);
  int power() const { return power_; }
  double smooth() const { return smooth_; }

  // Moves ranks[i] to the slot of ranks[i + 1], the last to that of the first.  Call Commit or
  // forget it.
  struct Trial {
    double smooth = 0;
    int64_t hops_sum = 0;
    int64_t load_sum = 0;  // over all links, in the unit of the loads
  };
  Trial TryCycle(std::span<const uint32_t> ranks);
  void Commit();

  int planes() const { return planes_; }
  std::vector<int64_t> PlaneLoads(int plane) const;

 private:
  struct Flow {
    uint32_t peer;
    int32_t plane;
    int64_t bytes;
    int64_t count;
    bool is_out;
  };
  struct Touched {
    uint32_t link;
    int64_t change;
  };

  void AddRoute(uint32_t from_slot, uint32_t to_slot, const Flow& flow, int64_t sign);
  void Touch(uint32_t link, int64_t change);
  double Power(int64_t load) const;
  double Root(double sum) const;
  void Rescan(int plane);
  void ResetSums();

  const Network& network_;
  int planes_ = 1;
  int links_ = 0;
  int64_t unit_ = 1;
  Placement placement_;
  std::vector<uint32_t> offsets_;
  std::vector<Flow> flows_;  // by rank: all that it sends and receives

  std::vector<int64_t> loads_;  // plane * links + link, in unit
  std::vector<int64_t> max_;    // by plane
  std::vector<int> at_max_;     // links that carry it
  int64_t max_sum_ = 0;
  int64_t hops_sum_ = 0;
  int64_t load_sum_ = 0;

  int power_ = 8;
  double scale_ = 1;          // loads are divided by it before the power
  std::vector<double> sums_;  // by plane
  std::vector<double> roots_;
  double smooth_ = 0;

  std::vector<uint32_t> cycle_;
  std::vector<char> moving_;  // by rank: 1 + order in the cycle while trying
  std::vector<uint32_t> target_slot_;
  std::vector<Touched> touched_;
  std::vector<uint32_t> position_;  // by link: 1 + index in touched_ if stamped
  std::vector<uint32_t> stamp_;
  uint32_t now_ = 0;
  std::vector<double> trial_sums_;
  std::vector<int> trial_planes_;
  Trial trial_;
};

}  // namespace sekisho::rankmap
