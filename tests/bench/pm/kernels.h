// SPDX-License-Identifier: Apache-2.0
// Kernels after the NAS Parallel Benchmarks: they compute, send what NPB sends, and check the
// result.  docs/operations/pm-goals.md, "Kernels".
#pragma once

#include "tests/bench/pm/ranks.h"

namespace sekisho::pm_bench {

struct KernelResult {
  bool correct = false;
  double value = 0;  // the same for every number of ranks and every link
};

// 2 to the power keys_log keys, each of max_log bits.
struct IsSetup {
  int keys_log = 16;
  int max_log = 11;
  int iterations = 10;
};
class IntegerSort {
 public:
  IntegerSort(Ranks& ranks, const IsSetup& setup);
  void Iterate(int iteration);
  KernelResult Check();
  // All that it has to remember between two iterations.
  std::vector<std::int32_t>& keys() { return keys_; }
  const IsSetup& setup() const { return setup_; }

 private:
  Ranks& ranks_;
  IsSetup setup_;
  std::vector<std::int32_t> keys_, sorted_;
};

struct FtSetup {
  int nx = 64, ny = 64, nz = 64;
  int iterations = 6;
};
KernelResult FourierTransform(Ranks& ranks, const FtSetup& setup);

struct CgSetup {
  int n = 1400;
  int outer = 15;
  int per_row = 28;
};
KernelResult ConjugateGradient(Ranks& ranks, const CgSetup& setup);

}  // namespace sekisho::pm_bench
