// SPDX-License-Identifier: Apache-2.0
#include "rankmap/lift.h"

#include <algorithm>
#include <functional>
#include <map>
#include <numeric>

#include "rankmap/anneal.h"
#include "rankmap/box_layout.h"
#include "rankmap/isomorphism.h"
#include "rankmap/levels.h"

namespace sekisho::rankmap {
namespace {

constexpr int kRoots = 64;         // correspondences tried for each part
constexpr int64_t kBalanceMoves = 400000;
constexpr size_t kSmallBase = 32;
constexpr int64_t kMergeBalanceMoves = 300;  // for each cell
constexpr int64_t kMostMergeBalanceMoves = 150000;
constexpr size_t kThorough = 8192;  // ranks

class Lifter {
 public:
  Lifter(const Graph& graph, const Pattern& pattern, const Network& network, const LiftOptions& options,
         Random& random, const Stop& stop)
      : graph_(graph),
        pattern_(pattern),
        ranks_(pattern.ranks()),
        network_(network),
        options_(options),
        random_(random),
        stop_(stop),
        dims_(network.grid().dims),
        layout_(network, options.effort, random, stop) {}

  std::optional<Placement> Run() {
    std::vector<Level> levels = FindLevels(graph_, ranks_);
    if (levels.empty() || (levels.size() == 1 && levels[0].size == ranks_)) {
      return std::nullopt;
    }
    std::vector<int> inner(dims_.size(), 1);
    size_t base = levels.size();
    for (size_t l = 0; l < levels.size(); ++l) {
      const bool fits = levels[l].size < ranks_ && !FindBox(network_.grid(), inner, levels[l].size).empty();
      if (fits &&
          (levels[l].size <= options_.base || (base == levels.size() && levels[l].size <= 512))) {
        base = l;
      }
    }
    if (base == levels.size()) {
      return std::nullopt;
    }
    box_ = FindBox(network_.grid(), inner, levels[base].size);
    parts_ = std::move(levels[base].parts);
    SolveBase();
    for (size_t l = base + 1; l <= levels.size(); ++l) {
      if (stop_()) {
        return std::nullopt;
      }
      // Last, all parts together on the whole network, though no weight joins them.
      const bool is_whole = l == levels.size();
      if (is_whole && parts_.size() == 1) {
        break;
      }
      std::vector<int> next = is_whole ? dims_ : FindBox(network_.grid(), box_, levels[l].size);
      if (next.empty() || (!is_whole && levels[l].size == ranks_)) {
        next = dims_;
      }
      Vertices all(ranks_);
      std::iota(all.begin(), all.end(), 0u);
      if (!Merge(next == dims_ ? std::vector<Vertices>{all} : std::move(levels[l].parts), next)) {
        return std::nullopt;
      }
      if (next == dims_) {
        break;
      }
    }
    return stop_() ? std::nullopt : std::optional(Finish());
  }

  int64_t moves() const { return layout_.moves() + arranging_; }

 private:
  // Loads by step want another start than least distances; total loads the same, but loosened.
  void SolveBase() {
    const bool is_by_step = options_.objective == Objective::kSteps;
    const bool is_small = parts_[0].size() <= kSmallBase;
    if (!is_by_step || !is_small) {
      cells_ = layout_.Solve(Induced(graph_, parts_[0]), box_);
    }
    if (NeedsLinks(options_.objective)) {
      LoadCooling cooling{.hot = 1.0, .cold = 0.1};
      cooling.moves = static_cast<int64_t>(std::min(options_.effort, 1.0) * kBalanceMoves);
      cooling.runs = std::max(static_cast<int>(8 * options_.effort), 1);
      if (is_by_step && is_small) {
        const int tries = (IsWide(network_) ? 8 : 32) * std::max(cooling.runs, 4);  // more neighbours, more ways that are good
        cooling = {.hot = 10, .cold = 0.5, .moves = kBalanceMoves / 16, .runs = tries, .power = 16};
        cooling.is_from_nothing = true;  // few of them reach the bound, and end the search
      }
      cells_ = layout_.Balance(Induced(pattern_, parts_[0]), box_, cells_, options_.objective, cooling);
    }
  }

  // How the first part corresponds to each of those that are laid out next.
  bool Copy(const std::vector<uint32_t>& wanted) {
    const Graph first = Induced(graph_, parts_[0]);
    maps_.assign(parts_.size(), {});
    for (const uint32_t p : wanted) {
      if (stop_()) {
        return false;
      }
      const Graph other = p == 0 ? first : Induced(graph_, parts_[p]);
      for (uint32_t image = 0; image < parts_[p].size() && maps_[p].size() < kRoots; ++image) {
        if (auto map = FindIsomorphism(first, other, 0, image); map) {
          maps_[p].push_back(*std::move(map));
        } else if (image > 256) {
          break;
        }
        if (static_cast<int64_t>(maps_[p].size()) * first.size() > 65536) {
          break;  // large parts: a few are enough
        }
      }
      if (maps_[p].empty()) {
        return false;
      }
    }
    return true;
  }

  // One way to lay a part into its place in the larger box.
  struct Lay {
    uint32_t block = 0;
    uint32_t flip = 0;  // dimensions mirrored
    uint32_t map = 0;
  };

  uint32_t CellIn(const std::vector<int>& box, uint32_t block, uint32_t flip, uint32_t cell) const {
    uint32_t result = 0;
    uint32_t stride = 1;
    for (size_t d = 0; d < box.size(); ++d) {
      const uint32_t side = box_[d];
      const uint32_t blocks = box[d] / box_[d];
      uint32_t c = cell % side;
      c = (flip >> d & 1) != 0 ? side - 1 - c : c;
      result += (block % blocks * side + c) * stride;
      stride *= box[d];
      cell /= side;
      block /= blocks;
    }
    return result;
  }

  // parts_ become `merged`, in boxes `box`; only the first one is laid out, the others follow by
  // Copy.
  bool Merge(std::vector<Vertices> merged, const std::vector<int>& box) {
    std::vector<uint32_t> part_of(ranks_);
    for (uint32_t p = 0; p < parts_.size(); ++p) {
      for (const uint32_t v : parts_[p]) {
        part_of[v] = p;
      }
    }
    const Vertices& whole = merged[0];
    place_.resize(ranks_);
    for (uint32_t i = 0; i < whole.size(); ++i) {
      place_[whole[i]] = i;
    }
    std::map<uint32_t, uint32_t> index;  // old part -> number inside
    std::vector<uint32_t> inside;
    for (const uint32_t v : whole) {
      if (index.emplace(part_of[v], inside.size()).second) {
        inside.push_back(part_of[v]);
      }
    }
    if (!Copy(inside)) {
      return false;
    }
    Graph graph = Induced(graph_, whole);
    const std::vector<Lay> lays = Arrange(graph, whole, inside, index, part_of, box);
    Cells cells(whole.size());
    for (uint32_t i = 0; i < inside.size(); ++i) {
      LayOut(inside[i], lays[i], box, cells);
    }
    if (!NeedsLinks(options_.objective)) {
      cells_ = layout_.Improve(std::move(graph), box, std::move(cells));
    } else {
      cells_ = std::move(cells);
      if (box != dims_) {  // the whole is the solver's to anneal
        LoadCooling cooling{.hot = 0.05, .cold = 0.005};
        const int64_t moves = std::min(kMergeBalanceMoves * static_cast<int64_t>(whole.size()), kMostMergeBalanceMoves);
        cooling.moves = static_cast<int64_t>(std::min(2 * options_.effort, 1.0) * static_cast<double>(moves));
        if (options_.objective == Objective::kSteps) {
          cooling.hot = whole.size() <= 64 ? 1 : 0.2;
          cooling.power = 8;
          cooling.runs = whole.size() <= 128 ? 4 : 1;
        }
        cells_ = layout_.Balance(Induced(pattern_, whole), box, cells_, options_.objective, cooling);
      }
    }
    parts_ = std::move(merged);
    box_ = box;
    return true;
  }

  void LayOut(uint32_t part, const Lay& lay, const std::vector<int>& box, Cells& cells) const {
    const std::vector<uint32_t>& map = maps_[part][lay.map];
    for (uint32_t i = 0; i < map.size(); ++i) {
      cells[place_[parts_[part][map[i]]]] = CellIn(box, lay.block, lay.flip, cells_[i]);
    }
  }

  // Blocks by annealing the graph of the parts; then mirrors and correspondences part by part.
  std::vector<Lay> Arrange(const Graph& graph, const Vertices& whole,
                           const std::vector<uint32_t>& inside,
                           const std::map<uint32_t, uint32_t>& index,
                           const std::vector<uint32_t>& part_of, const std::vector<int>& box) {
    std::vector<int> blocks;
    for (size_t d = 0; d < box.size(); ++d) {
      blocks.push_back(box[d] / box_[d]);
    }
    const int count = std::accumulate(blocks.begin(), blocks.end(), 1, std::multiplies<>());
    std::vector<Message> messages;
    for (uint32_t u = 0; u < whole.size(); ++u) {
      for (const Graph::Arc& arc : graph.Of(u)) {
        const uint32_t a = index.at(part_of[whole[u]]);
        const uint32_t b = index.at(part_of[whole[arc.peer]]);
        if (a != b && arc.out > 0) {
          messages.push_back({a, b, arc.out, 0, 1});
        }
      }
    }
    std::vector<Lay> lays(inside.size());
    const auto contracted = Pattern::Create(count, std::move(messages));
    if (contracted.ok() && count > 1) {
      const Graph parts = MakeGraph(*contracted, Weight::kBytes, count);
      int64_t heaviest = 1;
      for (const Graph::Arc& arc : parts.arcs) {
        heaviest = std::max(heaviest, arc.both());
      }
      const Network network = layout_.NetworkOf(box, blocks);
      const NearNodes near(network);
      HopAnnealer annealer(parts, network, near, Placement(count));
      const int chunks = std::max(count * 4, 8);
      for (int i = 0; i < chunks && !stop_(); ++i) {
        const double t = static_cast<double>(heaviest) * Exp(-6.0 * i / chunks);
        annealer.Chunk(1024, t, t, random_);
        arranging_ += 1024;
      }
      for (uint32_t i = 0; i < inside.size(); ++i) {
        lays[i].block = annealer.best().slot_of(i);
      }
    }
    ChooseLays(graph, whole, inside, index, part_of, box, lays);
    return lays;
  }

  void ChooseLays(const Graph& graph, const Vertices& whole, const std::vector<uint32_t>& inside,
                  const std::map<uint32_t, uint32_t>& index, const std::vector<uint32_t>& part_of,
                  const std::vector<int>& box, std::vector<Lay>& lays) {
    const Network network = layout_.NetworkOf(box, box);
    const SlotDistances distances(network);
    Cells cells(whole.size());
    for (uint32_t i = 0; i < inside.size(); ++i) {
      LayOut(inside[i], lays[i], box, cells);
    }
    std::vector<uint32_t> number(whole.size());
    std::vector<Vertices> members(inside.size());
    for (uint32_t u = 0; u < whole.size(); ++u) {
      number[u] = index.at(part_of[whole[u]]);
      members[number[u]].push_back(u);
    }
    const auto outside = [&](uint32_t i) {
      int64_t cost = 0;
      for (const uint32_t u : members[i]) {
        for (const Graph::Arc& arc : graph.Of(u)) {
          if (number[arc.peer] != i) {
            cost += arc.both() * distances.Get(cells[u], cells[arc.peer]);
          }
        }
      }
      return cost;
    };
    // In large boxes the first part stays as it is and the others come round once: time.
    const bool is_large = whole.size() > kThorough;
    uint32_t thick = 0;  // dimensions in which a mirror changes anything
    for (size_t d = 0; d < box_.size(); ++d) {
      thick |= (box_[d] > 1 ? 1u : 0u) << d;
    }
    for (int pass = 0; pass < (is_large ? 1 : 2); ++pass) {
      for (uint32_t i = is_large ? 1 : 0; i < inside.size(); ++i) {
        Lay best = lays[i];
        int64_t least = outside(i);
        if (least == 0) {
          continue;
        }
        for (uint32_t flip = 0; flip < (1u << box.size()) && !stop_(); ++flip) {
          if ((flip & ~thick) != 0) {
            continue;
          }
          for (uint32_t map = 0; map < maps_[inside[i]].size(); ++map) {
            lays[i].flip = flip;
            lays[i].map = map;
            LayOut(inside[i], lays[i], box, cells);
            if (const int64_t cost = outside(i); cost < least) {
              least = cost;
              best = lays[i];
            }
          }
        }
        lays[i] = best;
        LayOut(inside[i], best, box, cells);
      }
    }
  }

  Placement Finish() const {
    std::vector<uint32_t> slot_of(network_.slots(), UINT32_MAX);
    std::vector<char> taken(network_.slots());
    for (size_t i = 0; i < parts_[0].size(); ++i) {
      slot_of[parts_[0][i]] = cells_[i];
      taken[cells_[i]] = 1;
    }
    uint32_t next = 0;
    for (uint32_t& slot : slot_of) {
      if (slot == UINT32_MAX) {
        while (taken[next] != 0) {
          ++next;
        }
        slot = next++;
      }
    }
    return Placement(std::move(slot_of));
  }

  const Graph& graph_;
  const Pattern& pattern_;
  const int ranks_;
  const Network& network_;
  const LiftOptions options_;
  Random& random_;
  const Stop& stop_;
  const std::vector<int>& dims_;
  BoxLayout layout_;
  int64_t arranging_ = 0;  // proposals
  std::vector<int> box_;
  std::vector<uint32_t> place_;  // by rank: its number in the part that is merged
  std::vector<Vertices> parts_;
  Cells cells_;                                           // of the first part
  std::vector<std::vector<std::vector<uint32_t>>> maps_;  // by part: correspondences from the first
};

}  // namespace

bool IsWide(const Network& network) {
  return network.kind() == Network::Kind::kGrid && network.grid().dims.size() > 3;
}

std::optional<Placement> Lift(const Graph& graph, const Pattern& pattern, const Network& network,
                              const LiftOptions& options, Random& random, const Stop& stop, int64_t& moves) {
  if (network.kind() != Network::Kind::kGrid || network.capacity() != 1 || pattern.ranks() < 4) {
    return std::nullopt;
  }
  Lifter lifter(graph, pattern, network, options, random, stop);
  auto placement = lifter.Run();
  moves += lifter.moves();
  return placement;
}

}  // namespace sekisho::rankmap
