// SPDX-License-Identifier: Apache-2.0
// Which slot each rank has.  There are as many ranks as slots: those beyond the pattern's are empty
// and send nothing, so more nodes than ranks need no special case.
#pragma once

#include <cstdint>
#include <numeric>
#include <utility>
#include <vector>

namespace sekisho::rankmap {

// Each of `size` slots once.
inline bool IsPermutation(const std::vector<uint32_t>& slots, int size) {
  std::vector<char> seen(static_cast<size_t>(size));
  for (const uint32_t slot : slots) {
    if (slot >= static_cast<uint32_t>(size) || seen[slot] != 0) {
      return false;
    }
    seen[slot] = 1;
  }
  return static_cast<int>(slots.size()) == size;
}

class Placement {
 public:
  Placement() = default;
  explicit Placement(int slots) : slot_of_(slots), rank_in_(slots) {
    std::iota(slot_of_.begin(), slot_of_.end(), 0u);
    std::iota(rank_in_.begin(), rank_in_.end(), 0u);
  }
  // `slot_of` is a permutation.
  explicit Placement(std::vector<uint32_t> slot_of) : slot_of_(std::move(slot_of)) {
    rank_in_.resize(slot_of_.size());
    for (uint32_t r = 0; r < slot_of_.size(); ++r) {
      rank_in_[slot_of_[r]] = r;
    }
  }

  int size() const { return static_cast<int>(slot_of_.size()); }
  uint32_t slot_of(uint32_t rank) const { return slot_of_[rank]; }
  uint32_t rank_in(uint32_t slot) const { return rank_in_[slot]; }
  const std::vector<uint32_t>& slots() const { return slot_of_; }

  void Swap(uint32_t a, uint32_t b) {
    std::swap(slot_of_[a], slot_of_[b]);
    rank_in_[slot_of_[a]] = a;
    rank_in_[slot_of_[b]] = b;
  }
  // The caller restores the permutation by further calls before anything else is asked.
  void Put(uint32_t rank, uint32_t slot) {
    slot_of_[rank] = slot;
    rank_in_[slot] = rank;
  }
  bool operator==(const Placement& other) const { return slot_of_ == other.slot_of_; }

 private:
  std::vector<uint32_t> slot_of_;
  std::vector<uint32_t> rank_in_;
};

}  // namespace sekisho::rankmap
