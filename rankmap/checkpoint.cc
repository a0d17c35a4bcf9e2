// SPDX-License-Identifier: Apache-2.0
// What a solver writes down of itself, and how it goes on from that.
#include <array>
#include <cmath>

#include "rankmap/archive.h"
#include "rankmap/errors.h"
#include "rankmap/solver.h"

namespace sekisho::rankmap {
uint64_t Solver::Key() const {
  const SolveOptions& o = problem_.options;
  uint64_t key = problem_.pattern.Hash() * 31 + problem_.network.Hash();
  for (const int64_t part :
       {static_cast<int64_t>(o.objective), static_cast<int64_t>(o.qap_weight),
        static_cast<int64_t>(o.method), static_cast<int64_t>(o.seed), int64_t{o.max_itrs},
        int64_t{o.range}, int64_t{o.num_swaps}, int64_t{island_}, int64_t{has_start_}}) {
    key = (key ^ part) * 0x100000001b3 + (key >> 31);
  }
  return key;
}

std::string Solver::Save() const {
  ArchiveWriter out;
  out.Put(Key());
  out.Put(phase_);
  out.Put(moves_);
  out.Put(construction_);
  out.Put(bisections_);
  out.Put<uint8_t>(has_levels_ ? 1 : 0);
  out.Put(random_.state());
  out.PutList(best_.slots());
  out.Put(best_value_);
  out.PutList(hop_best_.slots());
  out.Put(hop_cost_);
  out.Put(run_);
  out.Put(best_hot_);
  out.Put(best_probe_);
  out.Put(probe_start_);
  if (phase_ == Phase::kHops) {
    out.PutList(hops_->state().placement().slots());
    out.PutList(hops_->best().slots());
  } else if (phase_ == Phase::kLinks) {
    out.PutList(links_->state().placement().slots());
    out.PutList(links_->best().slots());
  }
  return std::move(out).Finish();
}

absl::Status Solver::Restore(std::string_view bytes) {
  ArchiveReader in(bytes);
  if (!in.is_good()) {
    return errors::BadCheckpoint("damaged or cut off");
  }
  if (in.Get<uint64_t>() != Key()) {
    return errors::BadCheckpoint("made for another pattern, network or other options");
  }
  const int slots = problem_.network.slots();
  const Phase phase = in.Get<Phase>();
  const auto moves = in.Get<int64_t>();
  const auto construction = in.Get<int32_t>();
  const auto bisections = in.Get<Bisections>();
  const bool has_levels = in.Get<uint8_t>() == 1;
  const auto state = in.Get<std::array<uint64_t, 4>>();
  std::vector<std::vector<uint32_t>> placements = {in.GetList<uint32_t>()};
  const auto best_value = in.Get<double>();
  placements.push_back(in.GetList<uint32_t>());
  const auto hop_cost = in.Get<int64_t>();
  const auto run = in.Get<Run>();
  const auto best_hot = in.Get<double>();
  const auto best_probe = in.Get<double>();
  const auto probe_start = in.Get<int32_t>();
  if (phase == Phase::kHops || phase == Phase::kLinks) {
    placements.push_back(in.GetList<uint32_t>());
    placements.push_back(in.GetList<uint32_t>());
  }
  for (const auto& placement : placements) {
    if (!IsPermutation(placement, slots)) {
      return errors::BadCheckpoint("damaged");
    }
  }
  const bool is_run_good = phase == Phase::kConstruct || phase == Phase::kDone ||
                           (run.index >= 0 && run.end > run.begin && std::isfinite(run.end) &&
                            std::isfinite(run.begin) && run.hot > 0 && std::isfinite(run.hot) &&
                            best_hot > 0 && std::isfinite(best_hot));
  if (!in.is_finished() || phase > Phase::kDone || !is_run_good || construction < 0 || moves < 0 ||
      probe_start < 0 || probe_start >= kLinkProbes) {
    return errors::BadCheckpoint("damaged");
  }

  best_ = Placement(std::move(placements[0]));
  hop_best_ = Placement(std::move(placements[1]));
  best_value_ = best_value;
  hop_cost_ = hop_cost;
  if (phase == Phase::kHops) {
    StartHops(0);
    hops_->Restore(Placement(std::move(placements[2])), Placement(std::move(placements[3])));
  } else if (phase == Phase::kLinks) {
    StartLinks(0);
    links_->Restore(Placement(std::move(placements[2])), Placement(std::move(placements[3])));
  }
  phase_ = phase;
  moves_ = moves;
  construction_ = construction;
  bisections_ = bisections;
  has_levels_ = has_levels;
  random_.set_state(state);
  run_ = run;
  best_hot_ = best_hot;
  best_probe_ = best_probe;
  probe_start_ = probe_start;
  return absl::OkStatus();
}

}  // namespace sekisho::rankmap
