// SPDX-License-Identifier: Apache-2.0
// Neighbour joining (Saitou, Nei 1987): a binary tree from a full matrix of distances.  Pure.
#pragma once

#include <cstddef>
#include <vector>

#include "topology/tree.h"

namespace sekisho::topology {

// Symmetric, row by row; a cell below 0 is unknown.
struct Matrix {
  int size = 0;
  std::vector<double> cells;

  explicit Matrix(int n) : size(n), cells(static_cast<size_t>(n) * n, -1) {}
  double At(int i, int j) const { return cells[static_cast<size_t>(i) * size + j]; }
  void Set(int i, int j, double value) {
    cells[static_cast<size_t>(i) * size + j] = value;
    cells[static_cast<size_t>(j) * size + i] = value;
  }
};

// Unknown cells are filled by the shortest way over a third host.
Tree NeighbourJoining(Matrix matrix);

}  // namespace sekisho::topology
