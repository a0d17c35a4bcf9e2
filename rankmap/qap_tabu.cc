// SPDX-License-Identifier: Apache-2.0
#include "rankmap/qap_tabu.h"

#include <algorithm>
#include <limits>

#include "rankmap/qap_kernels.h"

namespace sekisho::rankmap {
namespace {

bool IsSymmetric(const std::vector<int64_t>& matrix, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < i; ++j) {
      if (matrix[i * n + j] != matrix[j * n + i]) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

// If either matrix is symmetric, the other may be replaced by its sum with its transpose, counted
// once for each unordered pair: half the work.
QapTabu::QapTabu(const QapInstance& instance)
    : instance_(instance),
      n_(instance.size),
      stride_((instance.size + 3) / 4 * 4),
      is_symmetric_(IsSymmetric(instance.a, instance.size) ||
                    IsSymmetric(instance.b, instance.size)) {
  const bool b_symmetric = IsSymmetric(instance.b, n_);
  const auto fill = [&](const std::vector<int64_t>& from, bool transposed, bool add) {
    std::vector<double> matrix(stride_ * n_);
    for (int i = 0; i < n_; ++i) {
      for (int j = 0; j < n_; ++j) {
        const int64_t value = transposed ? from[j * n_ + i] : from[i * n_ + j];
        if (i != j) {
          matrix[i * stride_ + j] = static_cast<double>(value + (add ? from[j * n_ + i] : 0));
        }
      }
    }
    return matrix;
  };
  if (is_symmetric_) {
    terms_.push_back(
        {fill(instance.a, false, b_symmetric), fill(instance.b, false, !b_symmetric), {}});
  } else {
    terms_.push_back({fill(instance.a, false, false), fill(instance.b, false, false), {}});
    terms_.push_back({fill(instance.a, true, false), fill(instance.b, true, false), {}});
  }
  for (int i = 0; i < n_; ++i) {
    a_diagonal_.push_back(static_cast<double>(instance.a[i * n_ + i]));
    b_diagonal_.push_back(static_cast<double>(instance.b[i * n_ + i]));
  }
  delta_.resize(stride_ * n_);
  row_min_.resize(n_);
  x_.resize(stride_);
  y_.resize(stride_);
  x2_.resize(stride_);
  y2_.resize(stride_);
}

void QapTabu::Start(const std::vector<int>& permutation) {
  Begin(permutation);
  Prepare(n_);
}

void QapTabu::Begin(const std::vector<int>& permutation) {
  permutation_ = permutation;
  cost_ = static_cast<double>(instance_.Cost(permutation));
  for (Term& term : terms_) {
    term.permuted.assign(stride_ * n_, 0);
    for (int i = 0; i < n_; ++i) {
      for (int k = 0; k < n_; ++k) {
        term.permuted[i * stride_ + k] = term.b[permutation[i] * stride_ + permutation[k]];
      }
    }
  }
  prepared_ = 0;
  tabu_.assign(static_cast<size_t>(n_) * n_, 0);
  iterations_ = 0;
  best_ = permutation_;
  best_cost_ = cost_;
}

bool QapTabu::Prepare(int rows) {
  for (const int end = std::min(prepared_ + rows, n_); prepared_ < end; ++prepared_) {
    const int i = prepared_;
    double least = std::numeric_limits<double>::infinity();
    for (int j = i + 1; j < n_; ++j) {
      delta_[i * stride_ + j] = Fresh(i, j);
      least = std::min(least, delta_[i * stride_ + j]);
    }
    row_min_[i] = least;
  }
  return prepared_ == n_;
}

double QapTabu::Fresh(int r, int j) const {
  double delta = (a_diagonal_[r] - a_diagonal_[j]) *
                 (b_diagonal_[permutation_[j]] - b_diagonal_[permutation_[r]]);
  for (const Term& t : terms_) {
    delta += CrossDot(Row(t.a, r), Row(t.a, j), Row(t.permuted, r), Row(t.permuted, j), stride_);
  }
  const Term& t = terms_[0];
  if (is_symmetric_) {
    return delta + 2 * Row(t.a, r)[j] * Row(t.permuted, r)[j];
  }
  return delta +
         (Row(t.a, r)[j] + Row(t.a, j)[r]) * (Row(t.permuted, r)[j] + Row(t.permuted, j)[r]);
}

void QapTabu::RefreshRow(int r) {
  for (int j = 0; j < n_; ++j) {
    if (j != r) {
      Row(delta_, std::min(r, j))[std::max(r, j)] = Fresh(r, j);
    }
  }
}

void QapTabu::Swap(int r, int s) {
  cost_ += Row(delta_, std::min(r, s))[std::max(r, s)];
  std::swap(permutation_[r], permutation_[s]);
  for (Term& term : terms_) {
    std::swap_ranges(Row(term.permuted, r), Row(term.permuted, r) + n_, Row(term.permuted, s));
    for (int i = 0; i < n_; ++i) {
      double* row = Row(term.permuted, i);
      std::swap(row[r], row[s]);
    }
  }
  const auto differences = [&](const Term& t, std::vector<double>& x, std::vector<double>& y) {
    for (int i = 0; i < n_; ++i) {
      x[i] = Row(t.a, r)[i] - Row(t.a, s)[i];
      y[i] = Row(t.permuted, s)[i] - Row(t.permuted, r)[i];
    }
  };
  differences(terms_[0], x_, y_);
  if (is_symmetric_) {
    for (int i = 0; i + 1 < n_; ++i) {
      row_min_[i] = UpdateRow(Row(delta_, i), x_.data(), y_.data(), x_[i], y_[i], i + 1, n_);
    }
  } else {
    differences(terms_[1], x2_, y2_);
    for (int i = 0; i + 1 < n_; ++i) {
      row_min_[i] = UpdateRow2(Row(delta_, i), x_.data(), y_.data(), x_[i], y_[i], x2_.data(),
                               y2_.data(), x2_[i], y2_[i], i + 1, n_);
    }
  }
  // The pairs with r or s were updated wrongly: take them afresh; row minima may only be too low
  // then.
  RefreshRow(r);
  RefreshRow(s);
  for (int i = 0; i + 1 < n_; ++i) {
    double least = row_min_[i];
    if (i == r || i == s) {
      const double* row = Row(delta_, i);
      least = *std::min_element(row + i + 1, row + n_);
    } else {
      least = r > i ? std::min(least, Row(delta_, i)[r]) : least;
      least = s > i ? std::min(least, Row(delta_, i)[s]) : least;
    }
    row_min_[i] = least;
  }
}

void QapTabu::NoteBest() {
  if (cost_ < best_cost_) {
    best_cost_ = cost_;
    best_ = permutation_;
  }
}

// The best swap that is not forbidden, or that beats the best so far.  Most rows are skipped by
// their minimum (which is a lower bound).
bool QapTabu::Choose(int& r, int& s) {
  double best = std::numeric_limits<double>::infinity();
  bool found = false;
  const double wanted = best_cost_ - cost_;
  for (int k = 0; k + 1 < n_; ++k) {
    const int i = first_row_ + k < n_ - 1 ? first_row_ + k : first_row_ + k - (n_ - 1);
    if (row_min_[i] >= best) {
      continue;
    }
    const double* row = Row(delta_, i);
    const int64_t* tabu_i = tabu_.data() + static_cast<size_t>(i) * n_;
    for (int j = i + 1; j < n_; ++j) {
      if (row[j] < best) {
        const bool forbidden = tabu_i[permutation_[j]] > iterations_ &&
                               tabu_[static_cast<size_t>(j) * n_ + permutation_[i]] > iterations_;
        if (!forbidden || row[j] < wanted) {
          best = row[j];
          r = i;
          s = j;
          found = true;
        }
      }
    }
  }
  return found;
}

void QapTabu::Run(int64_t iterations, int low, int high, Random& random) {
  if (n_ < 2) {
    return;
  }
  for (int64_t end = iterations_ + iterations; iterations_ < end;) {
    ++iterations_;
    first_row_ = static_cast<int>(random.Below(n_ - 1));
    int r = 0;
    int s = 1;
    if (!Choose(r, s)) {
      r = static_cast<int>(random.Below(n_));
      s = (r + 1 + static_cast<int>(random.Below(n_ - 1))) % n_;
    }
    tabu_[static_cast<size_t>(r) * n_ + permutation_[r]] =
        iterations_ + low + random.Below(high - low + 1);
    tabu_[static_cast<size_t>(s) * n_ + permutation_[s]] =
        iterations_ + low + random.Below(high - low + 1);
    Swap(std::min(r, s), std::max(r, s));
    NoteBest();
  }
}

// Only a row's true minimum decides, so that a search which has been read back does the same.
bool QapTabu::Descend(int64_t most) {
  for (int64_t swaps = 0; n_ > 1;) {
    const int i =
        static_cast<int>(std::min_element(row_min_.begin(), row_min_.end() - 1) - row_min_.begin());
    const double* row = Row(delta_, i);
    const int j = static_cast<int>(std::min_element(row + i + 1, row + n_) - row);
    if (row_min_[i] < row[j]) {
      row_min_[i] = row[j];
      continue;
    }
    if (row[j] >= 0) {
      break;
    }
    if (swaps++ == most) {
      NoteBest();
      return false;
    }
    Swap(i, j);
    ++iterations_;
  }
  NoteBest();
  return true;
}

void QapTabu::Save(ArchiveWriter& out) const {
  out.PutList(permutation_);
  out.PutList(best_);
  out.Put(iterations_);
  std::vector<int64_t> forbidden;  // what still is: place, until
  for (size_t at = 0; at < tabu_.size(); ++at) {
    if (tabu_[at] > iterations_) {
      forbidden.push_back(static_cast<int64_t>(at));
      forbidden.push_back(tabu_[at]);
    }
  }
  out.PutList(forbidden);
}

bool QapTabu::Restore(ArchiveReader& in) {
  const auto permutation = in.GetList<int>();
  const auto best = in.GetList<int>();
  const auto iterations = in.Get<int64_t>();
  const auto forbidden = in.GetList<int64_t>();
  if (!in.is_good() || !IsPermutation(permutation, n_) ||
      !IsPermutation(best, n_) || iterations < 0 ||
      iterations > int64_t{1} << 60 || forbidden.size() % 2 != 0) {
    return false;
  }
  for (size_t i = 0; i < forbidden.size(); i += 2) {
    const int64_t at = forbidden[i];
    if (at < 0 || at >= int64_t{n_} * n_) {
      return false;
    }
  }
  Begin(permutation);
  best_ = best;
  best_cost_ = static_cast<double>(instance_.Cost(best));
  iterations_ = iterations;
  for (size_t i = 0; i < forbidden.size(); i += 2) {
    tabu_[forbidden[i]] = forbidden[i + 1];
  }
  return true;
}

}  // namespace sekisho::rankmap
