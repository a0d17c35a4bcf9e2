// SPDX-License-Identifier: Apache-2.0
// Tabu search for the dense quadratic assignment problem with all swap deltas kept: O(1) for pairs
// that a swap does not touch.  Doubles count integers below 2^53 exactly, so every machine sees the
// same bits.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmap/archive.h"
#include "rankmap/qaplib.h"
#include "rankmap/random.h"

namespace sekisho::rankmap {

class QapTabu {
 public:
  // `instance` outlives this.
  explicit QapTabu(const QapInstance& instance);

  // All at once, or by pieces that take some 10 ms: Begin, then Prepare until it says true.
  void Start(const std::vector<int>& permutation);
  void Begin(const std::vector<int>& permutation);
  bool Prepare(int rows);

  // `iterations` best swaps that are not forbidden; tenure is drawn from [low, high].
  void Run(int64_t iterations, int low, int high, Random& random);
  // Best swaps while there is any that helps, `most` at most; true: there is none.
  bool Descend(int64_t most);

  // Deltas are not written, they are long: who has read the rest prepares them again.
  void Save(ArchiveWriter& out) const;
  // False if that is no state of this instance.
  bool Restore(ArchiveReader& in);

  int64_t cost() const { return static_cast<int64_t>(cost_); }
  const std::vector<int>& permutation() const { return permutation_; }
  // Since Start.
  int64_t best_cost() const { return static_cast<int64_t>(best_cost_); }
  const std::vector<int>& best() const { return best_; }
  int64_t iterations() const { return iterations_; }

  // What swapping i and j would add; for tests.
  double Delta(int i, int j) const { return delta_[static_cast<size_t>(i) * stride_ + j]; }

 private:
  struct Term {
    std::vector<double> a;         // rows of flow, diagonal zero
    std::vector<double> b;         // distances by location
    std::vector<double> permuted;  // distances by facility: permuted[i][k] = b[p(i)][p(k)]
  };

  bool Choose(int& r, int& s);
  void Swap(int r, int s);
  double Fresh(int r, int j) const;
  void RefreshRow(int r);
  void NoteBest();
  double* Row(std::vector<double>& matrix, int i) const {
    return matrix.data() + static_cast<size_t>(i) * stride_;
  }
  const double* Row(const std::vector<double>& matrix, int i) const {
    return matrix.data() + static_cast<size_t>(i) * stride_;
  }

  const QapInstance& instance_;
  int n_;
  size_t stride_;  // n rounded up to whole vectors
  bool is_symmetric_;
  std::vector<Term> terms_;
  std::vector<double> a_diagonal_, b_diagonal_;
  std::vector<int> permutation_;
  double cost_ = 0;
  std::vector<double> delta_;  // upper half: i < j
  std::vector<double> row_min_;
  std::vector<double> x_, y_, x2_, y2_;
  std::vector<int64_t> tabu_;  // facility * n + location: forbidden until
  int64_t iterations_ = 0;
  int first_row_ = 0;
  int prepared_ = 0;  // rows of deltas
  std::vector<int> best_;
  double best_cost_ = 0;
};

}  // namespace sekisho::rankmap
