// SPDX-License-Identifier: Apache-2.0
#include "rankmap/generate.h"

#include <algorithm>
#include <numeric>

#include "rankmap/errors.h"
#include "rankmap/random.h"

namespace sekisho::rankmap {
namespace {

using Messages = std::vector<Message>;

void Add(Messages& messages, int64_t source, int64_t target, int64_t bytes, int step = 0,
         int64_t count = 1) {
  if (source != target) {
    messages.push_back(
        {static_cast<uint32_t>(source), static_cast<uint32_t>(target), bytes, step, count});
  }
}

// Step k sends what has been gathered so far to the rank 2^k below.
Messages Bruck(int ranks, int64_t bytes) {
  Messages messages;
  for (int k = 0; (int64_t{1} << k) < ranks; ++k) {
    const int64_t blocks = std::min<int64_t>(int64_t{1} << k, ranks - (int64_t{1} << k));
    for (int r = 0; r < ranks; ++r) {
      Add(messages, r, (r + ranks - (1 << k)) % ranks, bytes * blocks, k);
    }
  }
  return messages;
}

// Recursive doubling: partner r xor 2^k, doubling sizes; ranks beyond a power of two sit out.
Messages Recursive(int ranks, int64_t bytes) {
  Messages messages;
  for (int k = 0; (2 << k) <= ranks; ++k) {
    for (int r = 0; r < ranks; ++r) {
      if ((r ^ (1 << k)) < ranks) {
        Add(messages, r, r ^ (1 << k), bytes << std::min(k, 30), k);
      }
    }
  }
  return messages;
}

struct GridRanks {
  std::vector<int> dims;
  int64_t size() const {
    return std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>());
  }
  std::vector<int> At(int64_t rank) const {
    std::vector<int> c;
    for (const int d : dims) {
      c.push_back(static_cast<int>(rank % d));
      rank /= d;
    }
    return c;
  }
  // The rank at c + offset, -1 beyond the edge of a grid that is not periodic.
  int64_t Neighbour(std::vector<int> c, const std::vector<int>& offset, bool is_periodic) const {
    int64_t rank = 0;
    for (size_t d = dims.size(); d-- > 0;) {
      const int moved = c[d] + offset[d];
      if (!is_periodic && (moved < 0 || moved >= dims[d])) {
        return -1;
      }
      rank = rank * dims[d] + (moved + dims[d]) % dims[d];
    }
    return rank;
  }
};

Messages Stencil(const GridRanks& grid, const GenerateOptions& options, bool is_periodic) {
  Messages messages;
  const size_t dims = grid.dims.size();
  int64_t offsets = 1;
  for (size_t d = 0; d < dims; ++d) {
    offsets *= 3;
  }
  for (int64_t code = 0; code < offsets; ++code) {
    std::vector<int> offset;
    int axes = 0;
    for (int64_t rest = code; offset.size() < dims; rest /= 3) {
      offset.push_back(static_cast<int>(rest % 3) - 1);
      axes += offset.back() != 0;
    }
    if (axes == 0 || (axes > 1 && !options.has_corners)) {
      continue;
    }
    const int64_t bytes = std::max<int64_t>(options.bytes >> (3 * (axes - 1)), 1);
    for (int64_t r = 0; r < grid.size(); ++r) {
      if (const int64_t other = grid.Neighbour(grid.At(r), offset, is_periodic); other >= 0) {
        Add(messages, r, other, bytes);
      }
    }
  }
  return messages;
}

// All-to-all inside each row (x) of the grid.
Messages FftRows(const GridRanks& grid, int64_t bytes) {
  Messages messages;
  for (int64_t r = 0; r < grid.size(); ++r) {
    const int64_t first = r - r % grid.dims[0];
    for (int64_t other = first; other < first + grid.dims[0]; ++other) {
      Add(messages, r, other, bytes);
    }
  }
  return messages;
}

Messages RandomGraph(int ranks, int degree, int64_t bytes, uint64_t seed) {
  Random random(seed);
  Messages messages;
  for (int r = 0; r < ranks && ranks > 1; ++r) {
    for (int k = 0; k < degree; ++k) {
      const uint32_t other = (r + 1 + random.Below(ranks - 1)) % ranks;
      Add(messages, r, other, bytes * (1 + random.Below(16)));
    }
  }
  return messages;
}

// NPB BT on q x q ranks: three sweeps of the multi-partition scheme, neighbours and diagonals,
// periodic.
Messages Bt(const GridRanks& grid, int64_t bytes) {
  Messages messages;
  for (int64_t r = 0; r < grid.size(); ++r) {
    for (const std::vector<int>& offset :
         {std::vector<int>{1, 0}, {-1, 0}, {0, 1}, {0, -1}, {1, -1}, {-1, 1}}) {
      Add(messages, r, grid.Neighbour(grid.At(r), offset, true), bytes, 0, 40);
    }
  }
  return messages;
}

// NPB MG: a periodic stencil whose partners get farther and messages smaller at each coarser level.
Messages Mg(const GridRanks& grid, int64_t bytes) {
  Messages messages;
  for (int level = 0; level < 4; ++level) {
    for (size_t d = 0; d < grid.dims.size(); ++d) {
      if ((1 << level) >= grid.dims[d]) {
        continue;
      }
      for (const int sign : {1, -1}) {
        std::vector<int> offset(grid.dims.size());
        offset[d] = sign * (1 << level);
        for (int64_t r = 0; r < grid.size(); ++r) {
          Add(messages, r, grid.Neighbour(grid.At(r), offset, true),
              std::max<int64_t>(bytes >> (2 * level), 1), level, 4);
        }
      }
    }
  }
  return messages;
}

// NPB CG on rows x columns: recursive halving sums along each row and the transpose partner.
Messages Cg(const GridRanks& grid, int64_t bytes) {
  Messages messages;
  const int columns = grid.dims[0];
  const int rows = grid.dims.size() > 1 ? grid.dims[1] : 1;
  for (int64_t r = 0; r < grid.size(); ++r) {
    const int x = static_cast<int>(r % columns);
    const int y = static_cast<int>(r / columns);
    for (int bit = 1; bit < columns; bit <<= 1) {
      if ((x ^ bit) < columns) {
        Add(messages, r, static_cast<int64_t>(y) * columns + (x ^ bit), bytes, 0, 25);
      }
    }
    if (columns == rows) {
      Add(messages, r, static_cast<int64_t>(x) * columns + y, bytes, 1, 25);
    }
  }
  return messages;
}

absl::Status NoSuchPattern(std::string_view name) {
  return errors::BadOption(fmt::format(
      "pattern '{}': expected bruck, recursive, stencil, halo, fftrows, alltoall, random, "
      "lu, bt, mg or cg",
      name));
}

absl::Status CheckSizes(std::string_view name, const GenerateOptions& options) {
  const GridRanks grid{options.grid};
  for (const int size : options.grid) {
    if (size < 1 || size > Pattern::kMaxRanks) {
      return errors::BadOption("grid: expected sizes from 1, as 64x64");
    }
  }
  if (options.grid.size() > 4 || grid.size() > Pattern::kMaxRanks) {
    return errors::BadOption(
        fmt::format("grid: at most 4 dimensions and {} ranks", Pattern::kMaxRanks));
  }
  const bool by_grid = name == "stencil" || name == "halo" || name == "fftrows" || name == "lu" ||
                       name == "bt" || name == "mg" || name == "cg";
  if (!by_grid && name != "bruck" && name != "recursive" && name != "alltoall" && name != "random") {
    return NoSuchPattern(name);
  }
  if (by_grid && options.grid.empty()) {
    return errors::BadOption(fmt::format("{} needs a grid, as 64x64", name));
  }
  if (name == "bt" && options.grid.size() != 2) {
    return errors::BadOption("bt needs a grid of two dimensions");
  }
  if (!by_grid && (options.ranks < 1 || options.ranks > Pattern::kMaxRanks)) {
    return errors::BadOption(fmt::format("{} needs ranks from 1 to {}", name, Pattern::kMaxRanks));
  }
  if (options.bytes < 0 || options.bytes > (int64_t{1} << 40) || options.degree < 0 ||
      options.degree > 4096 || (name == "alltoall" && options.ranks > 8192)) {
    return errors::BadOption("expected --bytes from 0 to 2^40, --degree from 0 to 4096, --ranks of alltoall to 8192");
  }
  return absl::OkStatus();
}

}  // namespace

Pattern Relabel(const Pattern& pattern, const std::vector<uint32_t>& labels) {
  Messages messages(pattern.messages().begin(), pattern.messages().end());
  for (Message& m : messages) {
    m.source = labels[m.source];
    m.target = labels[m.target];
  }
  auto relabelled = Pattern::Create(pattern.ranks(), std::move(messages));
  CHECK(relabelled.ok());
  return *std::move(relabelled);
}

absl::StatusOr<Pattern> Generate(std::string_view name, const GenerateOptions& options) {
  RETURN_IF_ERROR(CheckSizes(name, options));
  const GridRanks grid{options.grid};
  Messages messages;
  int64_t ranks = options.grid.empty() ? options.ranks : grid.size();
  if (name == "bruck") {
    messages = Bruck(static_cast<int>(ranks = options.ranks), options.bytes);
  } else if (name == "recursive") {
    messages = Recursive(static_cast<int>(ranks = options.ranks), options.bytes);
  } else if (name == "stencil") {
    messages = Stencil(grid, options, options.is_periodic);
  } else if (name == "halo" || name == "lu") {
    messages = Stencil(grid, options, false);
  } else if (name == "fftrows") {
    messages = FftRows(grid, options.bytes);
  } else if (name == "alltoall") {
    messages = FftRows(GridRanks{{static_cast<int>(ranks = options.ranks)}}, options.bytes);
  } else if (name == "random") {
    messages = RandomGraph(static_cast<int>(ranks = options.ranks), options.degree, options.bytes,
                           options.seed);
  } else if (name == "bt") {
    messages = Bt(grid, options.bytes);
  } else if (name == "mg") {
    messages = Mg(grid, options.bytes);
  } else if (name == "cg") {
    messages = Cg(grid, options.bytes);
  } else {
    return NoSuchPattern(name);
  }
  ASSIGN_OR_RETURN(Pattern pattern, Pattern::Create(static_cast<int>(ranks), std::move(messages)));
  if (options.permute < 0) {
    return pattern;
  }
  std::vector<uint32_t> labels(ranks);
  std::iota(labels.begin(), labels.end(), 0u);
  Random(static_cast<uint64_t>(options.permute)).Shuffle(labels);
  return Relabel(pattern, labels);
}

}  // namespace sekisho::rankmap
