// SPDX-License-Identifier: Apache-2.0
// Who sends how much to whom: the communication matrix, sparse and directed.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "common/status.h"

namespace sekisho::rankmap {

struct Message {
  uint32_t source = 0;
  uint32_t target = 0;
  int64_t bytes = 0;
  int32_t step = 0;
  int64_t count = 1;  // messages that the bytes were sent in
  bool operator==(const Message&) const = default;
};

class Pattern {
 public:
  static constexpr int kMaxRanks = 1 << 22;
  static constexpr int kMaxSteps = 1 << 12;

  // Messages of the same pair and step are added up.  InvalidArgument: a rank outside, negative
  // sizes, or totals beyond 2^53.
  static absl::StatusOr<Pattern> Create(int ranks, std::vector<Message> messages);

  int ranks() const { return ranks_; }
  int steps() const { return steps_; }
  std::span<const Message> messages() const { return messages_; }  // by source, target, step
  int64_t total_bytes() const { return total_bytes_; }
  int64_t total_count() const { return total_count_; }

  // A number that differs for different patterns, for checkpoints.
  uint64_t Hash() const;

 private:
  int ranks_ = 0;
  int steps_ = 1;
  int64_t total_bytes_ = 0;
  int64_t total_count_ = 0;
  std::vector<Message> messages_;
};

enum class Weight { kBytes, kMessages };

// The neighbours of every vertex with weights both ways, without self loops and empty pairs;
// weights are divided by their greatest common divisor, `unit`.
struct Graph {
  struct Arc {
    uint32_t peer = 0;
    int64_t out = 0;
    int64_t in = 0;
    int64_t both() const { return out + in; }
  };

  std::vector<uint32_t> offsets;  // size + 1
  std::vector<Arc> arcs;          // by vertex, then peer
  int64_t unit = 1;

  int size() const { return static_cast<int>(offsets.size()) - 1; }
  std::span<const Arc> Of(uint32_t vertex) const {
    return {arcs.data() + offsets[vertex], arcs.data() + offsets[vertex + 1]};
  }
};

// The graph of `pattern` with at least `size` vertices (those beyond its ranks have no arcs).
Graph MakeGraph(const Pattern& pattern, Weight weight, int size = 0);

// The graph among `vertices`, numbered in that order.
Graph Induced(const Graph& graph, std::span<const uint32_t> vertices);
// And the messages among them.
Pattern Induced(const Pattern& pattern, std::span<const uint32_t> vertices);

}  // namespace sekisho::rankmap
