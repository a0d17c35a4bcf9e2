// SPDX-License-Identifier: Apache-2.0
#include "rankmap/bisem.h"

#include <algorithm>
#include <numeric>

#include "rankmap/area.h"
#include "rankmap/bisect.h"

namespace sekisho::rankmap {
namespace {

struct Group {
  Area area;
  std::vector<uint32_t> ranks;
};

class Cutter {
 public:
  Cutter(const Graph& graph, int ranks, const Network& network, const BisemOptions& options,
         Random& random, const Stop& stop)
      : graph_(graph),
        network_(network),
        areas_(network),
        options_(options),
        random_(random),
        stop_(stop),
        group_of_(ranks),
        local_(ranks) {
    Group whole{areas_.Whole(), std::vector<uint32_t>(ranks)};
    std::iota(whole.ranks.begin(), whole.ranks.end(), 0u);
    groups_.push_back(std::move(whole));
  }

  std::optional<Placement> Run() {
    for (int itrs = 0; options_.max_itrs < 0 || itrs < options_.max_itrs; ++itrs) {
      bool has_cut = false;
      const size_t count = groups_.size();
      for (size_t g = 0; g < count; ++g) {
        if (stop_()) {
          return std::nullopt;
        }
        has_cut |= Cut(g);
      }
      if (!has_cut) {
        break;
      }
    }
    return Fill();
  }

 private:
  // Cuts group g; its second half becomes a new group.
  bool Cut(size_t g) {
    const int nodes = areas_.Nodes(groups_[g].area);
    if (nodes < 2 || groups_[g].ranks.empty()) {
      return false;
    }
    Area first;
    Area second;
    areas_.Split(groups_[g].area, first, second);
    const std::vector<uint32_t> ranks = std::move(groups_[g].ranks);
    const int64_t room0 = static_cast<int64_t>(areas_.Nodes(first)) * network_.capacity();
    const int64_t room1 = static_cast<int64_t>(areas_.Nodes(second)) * network_.capacity();
    const int64_t count = static_cast<int64_t>(ranks.size());
    // What fits into one half stays together; else both fill evenly.
    int64_t ones = count <= std::min(room0, room1) ? 0 : count * room1 / (room0 + room1);
    ones = std::clamp(ones, std::max<int64_t>(count - room0, 0), std::min(room1, count));
    const std::vector<uint8_t> sides = Sides(g, ranks, first, second, ones);

    groups_.push_back({std::move(second), {}});
    groups_[g].area = std::move(first);
    groups_[g].ranks.clear();
    for (size_t i = 0; i < ranks.size(); ++i) {
      const size_t to = sides[i] != 0 ? groups_.size() - 1 : g;
      groups_[to].ranks.push_back(ranks[i]);
      group_of_[ranks[i]] = static_cast<uint32_t>(to);
    }
    return true;
  }

  std::vector<uint8_t> Sides(size_t g, const std::vector<uint32_t>& ranks, const Area& first,
                             const Area& second, int64_t ones) {
    const int64_t apart = std::max<int64_t>(areas_.TwiceDistance(first, second), 1);
    BisectGraph graph;
    graph.offsets.push_back(0);
    graph.sizes.assign(ranks.size(), 1);
    for (uint32_t i = 0; i < ranks.size(); ++i) {
      local_[ranks[i]] = i;
    }
    pull_.assign(groups_.size(), kUnknown);
    for (const uint32_t rank : ranks) {
      int64_t bias = 0;
      for (const Graph::Arc& arc : graph_.Of(rank)) {
        const uint32_t group = group_of_[arc.peer];
        if (group == g) {
          graph.peers.push_back(local_[arc.peer]);
          graph.weights.push_back(arc.both() * apart);
          continue;
        }
        if (pull_[group] == kUnknown) {
          const Area& area = groups_[group].area;
          pull_[group] = areas_.TwiceDistance(second, area) - areas_.TwiceDistance(first, area);
        }
        bias += arc.both() * pull_[group];
      }
      graph.bias.push_back(bias);
      graph.offsets.push_back(static_cast<uint32_t>(graph.peers.size()));
    }
    return Bisect(graph, ones, random_);
  }

  Placement Fill() {
    std::vector<uint32_t> slot_of(network_.slots(), kNoSlot);
    std::vector<char> taken(network_.slots());
    for (const Group& group : groups_) {
      std::vector<uint32_t> slots;
      for (const int node : areas_.NodesOf(group.area)) {
        for (int k = 0; k < network_.capacity(); ++k) {
          slots.push_back(node * network_.capacity() + k);
        }
      }
      if (slots.size() > static_cast<size_t>(network_.capacity())) {
        random_.Shuffle(slots);
      }
      for (size_t i = 0; i < group.ranks.size(); ++i) {
        slot_of[group.ranks[i]] = slots[i];
        taken[slots[i]] = 1;
      }
    }
    uint32_t next = 0;
    for (uint32_t& slot : slot_of) {
      if (slot == kNoSlot) {
        while (taken[next] != 0) {
          ++next;
        }
        slot = next++;
      }
    }
    return Placement(std::move(slot_of));
  }

  static constexpr int64_t kUnknown = INT64_MIN;
  static constexpr uint32_t kNoSlot = UINT32_MAX;

  const Graph& graph_;
  const Network& network_;
  const AreaMap areas_;
  const BisemOptions options_;
  Random& random_;
  const Stop& stop_;
  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_;  // by rank
  std::vector<uint32_t> local_;     // by rank: index in the group being cut
  std::vector<int64_t> pull_;  // by group: cost of being in the second half, relative to the first
};

}  // namespace

std::optional<Placement> Bisem(const Graph& graph, int ranks, const Network& network,
                               const BisemOptions& options, Random& random, const Stop& stop) {
  return Cutter(graph, ranks, network, options, random, stop).Run();
}

}  // namespace sekisho::rankmap
