// SPDX-License-Identifier: Apache-2.0
// Patterns to try placements on: the paper's Bruck allgather, stencils, transforms, random graphs
// and the traffic of NPB-like programs.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"
#include "rankmap/pattern.h"

namespace sekisho::rankmap {

struct GenerateOptions {
  int ranks = 0;
  std::vector<int> grid;  // for stencils, fft rows and NPB-like patterns
  int64_t bytes = 65536;
  int degree = 4;            // random
  bool is_periodic = true;   // stencil
  bool has_corners = false;  // stencil: diagonal neighbours too, bytes / 8 for each further axis
  uint64_t seed = 1;         // random
  int64_t permute = -1;      // seed of a relabelling of the ranks; -1: none
};

// bruck, stencil, halo, fftrows, alltoall, random, recursive, lu, bt, mg, cg.
absl::StatusOr<Pattern> Generate(std::string_view name, const GenerateOptions& options);

// Rank r becomes labels[r].
Pattern Relabel(const Pattern& pattern, const std::vector<uint32_t>& labels);

}  // namespace sekisho::rankmap
