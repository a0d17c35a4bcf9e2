// SPDX-License-Identifier: Apache-2.0
// The nodes next to each node: where a swap sends a rank that is to come close to a partner.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmap/network.h"
#include "rankmap/random.h"

namespace sekisho::rankmap {

class NearNodes {
 public:
  explicit NearNodes(const Network& network);

  // A slot of a node near that of `slot`, mostly the nearest ones; where nodes take several ranks, often another one of that node.
  uint32_t Draw(uint32_t slot, Random& random) const {
    const uint64_t bits = random.Next();
    const uint32_t node = slot / capacity_;
    if (capacity_ > 1 && (bits >> 2 & 15) < kOwnNode) {  // beside it on its own node: nothing is nearer
      const uint32_t other = static_cast<uint32_t>((((bits >> 28) & 0xffffffff) * (capacity_ - 1)) >> 32);
      return node * capacity_ + (slot % capacity_ + 1 + other) % capacity_;
    }
    const uint32_t first = offsets_[node];
    const uint32_t count = (bits & 3) != 0 ? inner_[node] : offsets_[node + 1] - first;
    if (count == 0) {
      return slot;
    }
    const uint32_t pick = static_cast<uint32_t>(((bits >> 32) * count) >> 32);
    const uint32_t lane =
        capacity_ == 1 ? 0 : static_cast<uint32_t>((bits >> 8) & 0xffff) % capacity_;
    return nodes_[first + pick] * capacity_ + lane;
  }

 private:
  static constexpr uint64_t kOwnNode = 7;  // of 16

  uint32_t capacity_;
  std::vector<uint32_t> offsets_;  // by node
  std::vector<uint32_t> inner_;    // by node: how many of its list are the nearest
  std::vector<uint32_t> nodes_;
};

}  // namespace sekisho::rankmap
