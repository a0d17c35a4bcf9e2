// SPDX-License-Identifier: Apache-2.0
#include "rankmap/box_layout.h"

#include <algorithm>
#include <functional>
#include <numeric>

#include "rankmap/anneal.h"
#include "rankmap/bound.h"
#include "rankmap/box_anneal.h"

namespace sekisho::rankmap {
namespace {

constexpr uint32_t kSmall = 512;         // boxes where whole boxes are moved
constexpr int kLarge = 8192;             // boxes that take seconds
constexpr int64_t kBaseMoves = 1000000;  // shorter coolings of 64 cells rarely end in the best
constexpr int64_t kMergeMoves = 300000;

int Volume(const std::vector<int>& box) {
  return std::accumulate(box.begin(), box.end(), 1, std::multiplies<>());
}

Graph Padded(Graph graph, int size) {
  graph.offsets.resize(size + 1, graph.offsets.back());
  return graph;
}

// With empties in the cells that are left.
Cells Filled(Cells cells, int volume) {
  std::vector<char> used(volume);
  for (const uint32_t cell : cells) {
    used[cell] = 1;
  }
  for (int cell = 0; cell < volume; ++cell) {
    if (used[cell] == 0) {
      cells.push_back(cell);
    }
  }
  return cells;
}

}  // namespace

Network BoxLayout::NetworkOf(const std::vector<int>& box, const std::vector<int>& dims) const {
  GridShape shape;
  shape.dims = dims;
  shape.order = grid_.grid().order;
  shape.tie = grid_.grid().tie;
  for (size_t d = 0; d < box.size(); ++d) {
    shape.wrap.push_back(box[d] == grid_.grid().dims[d] && grid_.grid().wrap[d]);
  }
  return *Network::MakeGrid(std::move(shape));
}

// Anneals one part in its box from `start`; empties fill the box.
Cells BoxLayout::Anneal(const Graph& part, const std::vector<int>& box, Placement start, double hot,
                        double cold, int64_t moves, int64_t& cost) {
  const Network network = NetworkOf(box, box);
  const NearNodes near(network);
  HopAnnealer annealer(part, network, near, std::move(start));
  constexpr int kChunk = 4096;
  const int64_t chunks = std::max<int64_t>(moves / kChunk, 1);
  for (int64_t i = 0; i < chunks && !stop_(); ++i) {
    const double t = hot * Exp(Ln(cold / hot) * static_cast<double>(i) / static_cast<double>(chunks));
    annealer.Chunk(kChunk, t, t, random_);
    moves_ += kChunk;
  }
  cost = annealer.best_cost();
  return annealer.best().slots();
}

// The best of some coolings with moves of whole boxes, which heavy edges need.
Cells BoxLayout::SolveSmall(const Graph& part, const std::vector<int>& box, const Cells* start, int runs,
                            int64_t moves, double hot, double cold) {
  const Network network = NetworkOf(box, box);
  const auto volume = static_cast<uint32_t>(network.nodes());
  Cells best;
  int64_t least = INT64_MAX;
  for (int run = 0; run < runs && !stop_(); ++run) {
    Cells cells(volume);
    std::iota(cells.begin(), cells.end(), 0u);
    random_.Shuffle(cells);
    BoxAnnealer annealer(part, network, start != nullptr ? *start : cells);
    annealer.Run(moves, hot, cold, random_, stop_);
    moves_ += moves;
    if (annealer.best_cost() < least) {
      least = annealer.best_cost();
      best = annealer.best();
    }
  }
  return best;
}

Cells BoxLayout::Solve(Graph part, const std::vector<int>& box) {
  const int vertices = part.size();
  const int volume = Volume(box);
  part = Padded(std::move(part), volume);
  int64_t heaviest = 1;
  int64_t lightest = INT64_MAX;
  for (const Graph::Arc& arc : part.arcs) {
    heaviest = std::max(heaviest, arc.both());
    lightest = std::min(lightest, arc.both());
  }
  const int runs = std::clamp(static_cast<int>(8 * effort_), 2, 24);
  Cells cells = SolveSmall(part, box, nullptr, runs, kBaseMoves * volume / 64, static_cast<double>(heaviest),
                           0.5 * static_cast<double>(lightest));
  cells.resize(vertices);
  return cells;
}

Cells BoxLayout::Balance(const Pattern& part, const std::vector<int>& box, const Cells& cells, Objective objective,
                         const LoadCooling& cooling) {
  constexpr int kChunk = 1024;
  const Network network = NetworkOf(box, box);
  const NearNodes near(network);
  const Graph graph = MakeGraph(part, Weight::kBytes, network.slots());
  Placement start(Filled(cells, network.slots()));
  const LinkAnnealOptions options{.objective = objective};
  LinkAnnealer annealer(part, graph, network, near, options, start);
  const int64_t chunks = std::max<int64_t>(cooling.moves / kChunk, 1);
  Placement best = start;
  double least = annealer.best_value();
  const double bound =
      cooling.is_from_nothing ? ObjectiveBound(LowerBounds(part, network), objective, Weight::kBytes) : 0;
  for (int run = 0; run < cooling.runs && least > bound && !stop_(); ++run) {
    if (cooling.is_from_nothing) {
      Cells order(network.slots());
      std::iota(order.begin(), order.end(), 0u);
      random_.Shuffle(order);
      start = Placement(std::move(order));
    }
    annealer.Reset(start);
    for (int64_t i = 0; i < chunks && !stop_(); ++i) {
      const double part_done = static_cast<double>(i) / static_cast<double>(chunks);
      const double t = cooling.hot * Exp(Ln(cooling.cold / cooling.hot) * part_done) / network.links();
      annealer.Chunk(kChunk, t, t, cooling.power, random_);
      moves_ += kChunk;
    }
    if (annealer.best_value() < least) {
      least = annealer.best_value();
      best = annealer.best();
    }
  }
  Cells result = best.slots();
  result.resize(part.ranks());  // `cells` may be empty
  return result;
}

Cells BoxLayout::Improve(Graph part, const std::vector<int>& box, Cells cells) {
  const size_t vertices = cells.size();
  const int volume = Volume(box);
  part = Padded(std::move(part), volume);
  cells = Filled(std::move(cells), volume);
  int64_t lightest = INT64_MAX;
  for (const Graph::Arc& arc : part.arcs) {
    lightest = std::min(lightest, arc.both());
  }
  const double unit = static_cast<double>(part.arcs.empty() ? 1 : lightest);
  Cells best = cells;
  if (volume <= static_cast<int>(kSmall)) {
    const int runs = std::clamp(static_cast<int>(2 * effort_), 1, 8);
    const auto moves = static_cast<int64_t>(std::min(4 * effort_, 1.0) * kMergeMoves);
    best = SolveSmall(part, box, &cells, runs, moves, 1.3 * unit, 0.2 * unit);
    best.resize(vertices);
    return best;
  }
  const double each = volume > kLarge ? 30 : 60;
  const auto moves = static_cast<int64_t>(std::min(effort_, 1.0) * (300000.0 + each * volume));
  int64_t least = INT64_MAX;
  for (const double hot : {4.0, 16.0}) {
    if (hot > 4 && effort_ < 1) {
      break;
    }
    int64_t cost = 0;
    Cells found = Anneal(part, box, Placement(cells), hot * unit, 0.2 * unit, moves, cost);
    if (cost < least) {
      least = cost;
      best = std::move(found);
    }
  }
  best.resize(vertices);
  return best;
}

}  // namespace sekisho::rankmap
