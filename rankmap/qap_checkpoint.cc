// SPDX-License-Identifier: Apache-2.0
// What searches for quadratic assignments write down of themselves, and how they go on from that.
#include <array>
#include <iterator>

#include "rankmap/archive.h"
#include "rankmap/errors.h"
#include "rankmap/qap_portfolio.h"

namespace sekisho::rankmap {
namespace {

constexpr uint64_t kMagic = 0x3170'6171'6b6e'6172;  // "rankqap1"
constexpr uint64_t kMostMembers = 64;

}  // namespace

uint64_t QapSolver::Key() const {
  uint64_t key = seed_ * 31 + static_cast<uint64_t>(method_);
  for (const std::vector<int64_t>* matrix : {&instance_.a, &instance_.b}) {
    for (const int64_t value : *matrix) {
      key = (key ^ value) * 0x100000001b3 + (key >> 31);
    }
  }
  return key;
}

std::string QapSolver::Save() const {
  ArchiveWriter out;
  out.Put(Key());
  out.Put(random_.state());
  out.Put(moves_);
  out.Put(round_);
  out.Put(length_);
  out.Put(stale_);
  out.Put(strength_);
  out.PutList(best_);
  out.Put<uint64_t>(population_.size());
  for (const Member& member : population_) {
    out.PutList(member.permutation);
  }
  out.Put(stage_);
  if (stage_ != Stage::kBetween) {
    tabu_.Save(out);
  }
  return std::move(out).Finish();
}

absl::Status QapSolver::Restore(std::string_view bytes) {
  ArchiveReader in(bytes);
  if (!in.is_good() || in.Get<uint64_t>() != Key()) {
    return errors::BadCheckpoint("damaged, or made for another instance, method or seed");
  }
  const auto state = in.Get<std::array<uint64_t, 4>>();
  const auto moves = in.Get<int64_t>();
  const auto round = in.Get<int64_t>();
  const auto length = in.Get<int64_t>();
  const auto stale = in.Get<int32_t>();
  const auto strength = in.Get<int32_t>();
  std::vector<Member> members(1);
  members[0].permutation = in.GetList<int>();
  const auto count = in.Get<uint64_t>();
  for (uint64_t i = 0; i < count && in.is_good() && count <= kMostMembers; ++i) {
    members.push_back({0, in.GetList<int>()});
  }
  for (Member& member : members) {
    if (!IsPermutation(member.permutation, n_)) {
      return errors::BadCheckpoint("damaged");
    }
    member.cost = instance_.Cost(member.permutation);
  }
  const auto stage = in.Get<Stage>();
  const bool is_good = in.is_good() && stage <= Stage::kSearching && length >= 1 && moves >= 0 &&
                       round >= 0 && strength >= 0 && strength <= 2 * n_ + 3;
  if (!is_good || (stage != Stage::kBetween && !tabu_.Restore(in)) || !in.is_finished()) {
    return errors::BadCheckpoint("damaged");
  }
  random_.set_state(state);
  moves_ = moves;
  round_ = round;
  length_ = length;
  stale_ = stale;
  strength_ = strength;
  best_cost_ = members[0].cost;
  best_ = std::move(members[0].permutation);
  population_.assign(std::make_move_iterator(members.begin() + 1),
                     std::make_move_iterator(members.end()));
  stage_ = stage;
  return absl::OkStatus();
}

std::string QapPortfolio::Save() const {
  const std::lock_guard lock(mutex_);
  ArchiveWriter out;
  out.Put(kMagic);
  out.Put<uint64_t>(solvers_.size());
  for (size_t i = 0; i < solvers_.size(); ++i) {
    const std::string bytes = is_threaded_ ? saved_[i] : solvers_[i]->Save();
    out.PutList(std::vector<char>(bytes.begin(), bytes.end()));
  }
  out.PutList(best_.permutation);  // a thread may have published it since it was saved
  return std::move(out).Finish();
}

absl::Status QapPortfolio::Restore(std::string_view bytes) {
  ArchiveReader in(bytes);
  if (!in.is_good() || in.Get<uint64_t>() != kMagic) {
    return errors::BadCheckpoint("not one of ours, damaged or cut off");
  }
  const uint64_t count = in.Get<uint64_t>();
  if (!in.is_good() || count != solvers_.size()) {
    return errors::BadCheckpoint(
        fmt::format("of a run with {} threads, not {}", count, solvers_.size()));
  }
  for (size_t i = 0; i < count; ++i) {
    const std::vector<char> part = in.GetList<char>();
    if (!in.is_good()) {
      return errors::BadCheckpoint("damaged");
    }
    if (!part.empty()) {  // a thread that had not published yet begins anew
      RETURN_IF_ERROR(solvers_[i]->Restore({part.data(), part.size()}));
    }
    saved_[i] = std::string(part.begin(), part.end());
    Publish(i);
  }
  const std::vector<int> best = in.GetList<int>();
  if (!in.is_finished() || !IsPermutation(best, instance_.size)) {
    return errors::BadCheckpoint("damaged");
  }
  if (const int64_t cost = instance_.Cost(best); cost < best_.value) {
    best_ = {cost, best};
  }
  return absl::OkStatus();
}

}  // namespace sekisho::rankmap
