// SPDX-License-Identifier: Apache-2.0
// Annealing on small boxes with moves of whole sub-boxes: where weights span decades, single swaps
// cannot move what heavy edges hold together.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmap/bisem.h"
#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/random.h"

namespace sekisho::rankmap {

class BoxAnnealer {
 public:
  // `graph` has as many vertices as `network`, a grid with one slot a node, has nodes; both outlive
  // this.
  BoxAnnealer(const Graph& graph, const Network& network, std::vector<uint32_t> cells);

  // Proposals, the temperature falling geometrically; keeps the best.
  void Run(int64_t moves, double hot, double cold, Random& random, const Stop& stop);

  int64_t best_cost() const { return best_cost_; }
  const std::vector<uint32_t>& best() const { return best_; }  // cell of each vertex

 private:
  void Draw(Random& random);
  void DrawBox(Random& random);
  void Add(uint32_t from, uint32_t to);
  uint32_t Cell(const std::vector<int>& at) const;
  int64_t TwiceDelta();

  const Graph& graph_;
  std::vector<int> dims_;
  std::vector<int32_t> distance_;  // dense
  size_t n_;
  std::vector<uint32_t> cells_;   // of each vertex
  std::vector<uint32_t> inside_;  // vertex in each cell
  std::vector<uint32_t> moved_;   // vertices of the proposal
  std::vector<uint32_t> target_;  // and where each goes
  std::vector<uint32_t> next_;    // by vertex: its cell after the proposal
  std::vector<char> is_moved_;
  std::vector<int> low_, sides_, other_, offset_;
  int64_t cost_ = 0;
  int64_t best_cost_ = 0;
  std::vector<uint32_t> best_;
  ExponentialTable exponential_;
};

}  // namespace sekisho::rankmap
