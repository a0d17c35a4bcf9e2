// SPDX-License-Identifier: Apache-2.0
// One part of a pattern laid into a box of a grid, as well as annealing can: the steps of lift.h.
#pragma once

#include <vector>

#include "rankmap/bisem.h"
#include "rankmap/evaluate.h"
#include "rankmap/network.h"
#include "rankmap/pattern.h"
#include "rankmap/placement.h"

namespace sekisho::rankmap {

using Cells = std::vector<uint32_t>;  // by vertex of a part: where in its box

// How to anneal loads; temperatures in shares of a link.
struct LoadCooling {
  double hot = 0;
  double cold = 0;
  int64_t moves = 0;
  int runs = 1;
  int power = 32;
  bool is_from_nothing = false;  // each run from another random start
};

class BoxLayout {
 public:
  // All but `effort` must outlive it.
  BoxLayout(const Network& grid, double effort, Random& random, const Stop& stop)
      : grid_(grid), effort_(effort), random_(random), stop_(stop) {}

  // A box cut into `dims` blocks; it wraps where the box is as long as the grid and that wraps.
  Network NetworkOf(const std::vector<int>& box, const std::vector<int>& dims) const;

  // From nothing.
  Cells Solve(Graph part, const std::vector<int>& box);

  // By link loads, at temperatures that leave what hops have built: `objective` is one of them.  From nothing
  // if the cooling is, and then `cells` may be empty.
  Cells Balance(const Pattern& part, const std::vector<int>& box, const Cells& cells, Objective objective,
                const LoadCooling& cooling);

  // By swaps, from as warm as the lightest weights up to somewhat warmer; the best of a few.
  Cells Improve(Graph part, const std::vector<int>& box, Cells cells);

  int64_t moves() const { return moves_; }  // proposals of all that was done

 private:
  Cells Anneal(const Graph& part, const std::vector<int>& box, Placement start, double hot, double cold,
               int64_t moves, int64_t& cost);
  Cells SolveSmall(const Graph& part, const std::vector<int>& box, const Cells* start, int runs, int64_t moves,
                   double hot, double cold);

  const Network& grid_;
  const double effort_;
  Random& random_;
  const Stop& stop_;
  int64_t moves_ = 0;
};

}  // namespace sekisho::rankmap
