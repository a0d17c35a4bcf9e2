// SPDX-License-Identifier: Apache-2.0
// QAPLIB instances and solutions.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::rankmap {

// Minimise sum over i, j of a[i][j] * b[p(i)][p(j)].
struct QapInstance {
  static constexpr int kMaxSize = 4096;

  int size = 0;
  std::vector<int64_t> a;
  std::vector<int64_t> b;

  int64_t Cost(const std::vector<int>& permutation) const;
};

// Numbers in free form: n, [the optimum if there is one number too many], A, B.
absl::StatusOr<QapInstance> ParseQap(std::string_view text, std::string_view file);

// Every number from 0 to size - 1, once.
bool IsPermutation(const std::vector<int>& list, int size);

struct QapSolution {
  int64_t value = 0;
  std::vector<int> permutation;  // from 0
};

absl::StatusOr<QapSolution> ParseQapSolution(std::string_view text, std::string_view file);
std::string PrintQapSolution(const QapSolution& solution);

}  // namespace sekisho::rankmap
