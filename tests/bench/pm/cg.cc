// SPDX-License-Identifier: Apache-2.0
// CG: conjugate gradients with a random sparse matrix on a grid of ranks; short messages.
#include <cmath>

#include "tests/bench/pm/kernels.h"

namespace sekisho::pm_bench {
namespace {

class Solver {
 public:
  Solver(Ranks& ranks, const CgSetup& setup) : ranks_(ranks), n_(setup.n) {
    while (rows_ * rows_ * 4 <= ranks.size()) rows_ *= 2;
    columns_ = ranks.size() / rows_;
    ratio_ = columns_ / rows_;
    row_ = ranks.rank() / columns_;
    column_ = ranks.rank() % columns_;
    height_ = n_ / rows_;
    width_ = n_ / columns_;
    Fill(setup.per_row);
  }

  double Run(int outer) {
    std::vector<double> x(Width(), 1.0), z, r, p, q;
    double zeta = 0;
    for (int it = 0; it < outer; ++it) {
      z.assign(Width(), 0);
      r = p = x;
      double rho = Dot(r, r);
      for (int step = 0; step < 25; ++step) {
        q = Multiply(p);
        const double alpha = rho / Dot(p, q);
        for (std::size_t i = 0; i < Width(); ++i) z[i] += alpha * p[i], r[i] -= alpha * q[i];
        const double before = rho;
        rho = Dot(r, r);
        for (std::size_t i = 0; i < Width(); ++i) p[i] = r[i] + rho / before * p[i];
      }
      const double xz = Dot(x, z), zz = Dot(z, z);
      zeta = 10 + 1 / xz;
      for (std::size_t i = 0; i < Width(); ++i) x[i] = z[i] / std::sqrt(zz);
    }
    return zeta;
  }

 private:
  std::size_t Width() const { return static_cast<std::size_t>(width_); }

  // Every rank draws the whole matrix and keeps its block.
  void Fill(int per_row) {
    std::vector<std::vector<std::pair<int, double>>> lines(static_cast<std::size_t>(height_));
    const auto add = [&](int i, int j, double value) {
      if (i / height_ != row_ || j / width_ != column_) return;
      lines[static_cast<std::size_t>(i % height_)].push_back({j % width_, value});
    };
    std::uint64_t seed = 314159265;
    const auto draw = [&seed] {
      return (seed = seed * 6364136223846793005 + 1442695040888963407) >> 33;
    };
    for (int i = 0; i < n_; ++i) {
      add(i, i, 12);
      for (int k = 0; k < per_row; ++k) {
        const int j = static_cast<int>(draw() % static_cast<std::uint64_t>(n_));
        const double value = static_cast<double>(draw() % 1000) / 10000;
        add(i, j, value);
        add(j, i, value);
      }
    }
    starts_.push_back(0);
    for (const auto& line : lines) {
      for (const auto& [at, value] : line) at_.push_back(at), values_.push_back(value);
      starts_.push_back(at_.size());
    }
  }

  void SumRow(double* values, std::size_t count) {
    std::vector<double> other(count);
    for (int step = 1; step < columns_; step *= 2) {
      const int partner = row_ * columns_ + (column_ ^ step);
      ranks_.Exchange(partner, In(values, count), partner, Out(other.data(), count), 11);
      for (std::size_t i = 0; i < count; ++i) values[i] += other[i];
    }
  }

  double Dot(const std::vector<double>& a, const std::vector<double>& b) {
    double sum = 0;
    for (std::size_t i = 0; i < Width(); ++i) sum += a[i] * b[i];
    SumRow(&sum, 1);
    return sum;
  }

  std::vector<double> Multiply(const std::vector<double>& p) {
    std::vector<double> w(static_cast<std::size_t>(height_));
    for (std::size_t i = 0; i < w.size(); ++i) {
      for (std::size_t k = starts_[i]; k < starts_[i + 1]; ++k) {
        w[i] += values_[k] * p[static_cast<std::size_t>(at_[k])];
      }
    }
    SumRow(w.data(), w.size());
    // My part of the columns is in the rows of another.
    std::vector<double> q(Width());
    const int partner = column_ / ratio_ * columns_ + row_ * ratio_ + column_ % ratio_;
    const std::size_t part = static_cast<std::size_t>(column_ % ratio_) * Width();
    if (partner == ranks_.rank()) {
      std::copy_n(w.begin() + static_cast<std::ptrdiff_t>(part), Width(), q.begin());
    } else {
      ranks_.Exchange(partner, In(w.data() + part, Width()), partner, Out(q.data(), Width()), 12);
    }
    return q;
  }

  Ranks& ranks_;
  int n_, rows_ = 1, columns_ = 1, ratio_ = 1, row_ = 0, column_ = 0, height_ = 0, width_ = 0;
  std::vector<std::size_t> starts_;
  std::vector<int> at_;
  std::vector<double> values_;
};

}  // namespace

KernelResult ConjugateGradient(Ranks& ranks, const CgSetup& setup) {
  Solver solver(ranks, setup);
  const double zeta = solver.Run(setup.outer);
  return {std::isfinite(zeta), zeta};
}

}  // namespace sekisho::pm_bench
