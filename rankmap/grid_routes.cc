// SPDX-License-Identifier: Apache-2.0
#include "rankmap/grid_routes.h"

namespace sekisho::rankmap {

GridRoutes::GridRoutes(const Network& grid) {
  const std::vector<int>& dims = grid.grid().dims;
  const uint32_t links_each = 2 * static_cast<uint32_t>(dims.size());
  for (const int d : grid.grid().order) {
    const int size = dims[d];
    Line line;
    line.stride = links_each;
    for (int e = 0; e < d; ++e) {
      line.stride *= dims[e];
    }
    // Plus from 0 up, minus from the end down, each twice round.
    const uint32_t ways[] = {static_cast<uint32_t>(pieces_.size()),
                             static_cast<uint32_t>(pieces_.size()) + 2 * size + kSpoiled};
    for (uint32_t way = 0; way < 2; ++way) {
      for (int k = 0; k < 2 * size + kSpoiled; ++k) {
        const int at = way == 0 ? k % size : size - 1 - k % size;
        pieces_.push_back(at * line.stride + 2 * d + way);
      }
    }
    line.odd = grid.grid().tie == Tie::kParity ? 1 : 0;
    line.other_parts = 2 * size - 1;
    line.parts = static_cast<uint32_t>(parts_.size()) + size - 1;
    for (int from = 0; from <= line.odd; ++from) {
      for (int delta = 1 - size; delta < size; ++delta) {
        Part part;
        int way = 0;
        part.hops = static_cast<int16_t>(grid.Steps(from, from + delta, d, way));
        part.sign = way == 0 ? 1 : -1;
        part.piece = ways[way] + (way == 0 ? 0 : size - 1);
        parts_.push_back(part);
      }
    }
    lines_.push_back(line);
  }
  for (int slot = 0; slot < grid.slots(); ++slot) {
    const int node = slot / grid.capacity();
    first_.push_back(node * links_each);
    for (const int d : grid.grid().order) {
      coordinates_.push_back(static_cast<uint16_t>(grid.Coordinate(node, d)));
    }
  }
}

}  // namespace sekisho::rankmap
