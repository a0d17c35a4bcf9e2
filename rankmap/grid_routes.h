// SPDX-License-Identifier: Apache-2.0
// Network::Route on grids, without a branch for each hop: the part of a route in one dimension is a piece of one
// list that is the same for all lines of that dimension, moved to the line's place.
#pragma once

#include <cstdint>
#include <vector>

#include "rankmap/network.h"

namespace sekisho::rankmap {

class GridRoutes {
 public:
  static constexpr int kSpoiled = 8;  // how far beyond a route Write may write

  explicit GridRoutes(const Network& grid);

  // The links of the route between two slots, in order; returns what follows the last one.
  uint32_t* Write(uint32_t from, uint32_t to, uint32_t* links) const {
    const size_t dimensions = lines_.size();
    const uint16_t* a = coordinates_.data() + from * dimensions;
    const uint16_t* b = coordinates_.data() + to * dimensions;
    const Part* parts = parts_.data();
    const uint32_t* pieces = pieces_.data();
    const Line* line = lines_.data();
    uint32_t first = first_[from];
    for (size_t i = 0; i < dimensions; ++i, ++line) {
      const Part part = parts[line->parts + (a[i] & line->odd) * line->other_parts + b[i] - a[i]];
      const uint32_t* piece = pieces + part.piece + part.sign * a[i];
      first -= a[i] * line->stride;
      // Mostly enough, and without asking how far it is.
      const Links moved = *reinterpret_cast<const Links*>(piece) + first;
      const Links more = *reinterpret_cast<const Links*>(piece + 4) + first;
      *reinterpret_cast<Links*>(links) = moved;
      *reinterpret_cast<Links*>(links + 4) = more;
      for (int k = kSpoiled; k < part.hops; ++k) {
        links[k] = first + piece[k];
      }
      first += b[i] * line->stride;
      links += part.hops;
    }
    return links;
  }

 private:
  // Lowered to what the target has.
  typedef uint32_t Links __attribute__((vector_size(16), aligned(4), may_alias));

  // From one coordinate to another.
  struct Part {
    int16_t hops = 0;
    int16_t sign = 1;    // a later start is a later (or an earlier) place in the list
    uint32_t piece = 0;  // in pieces_, where the start is 0
  };
  struct Line {
    uint32_t parts = 0;        // in parts_, of no distance
    uint32_t other_parts = 0;  // how much further, from odd coordinates
    uint16_t odd = 0;          // whether that matters
    uint32_t stride = 0;       // links from one node of a line to the next
  };

  std::vector<Line> lines_;  // in the order of the route
  std::vector<Part> parts_;
  std::vector<uint32_t> pieces_;       // by dimension and way: twice round
  std::vector<uint16_t> coordinates_;  // by slot, in the order of the route
  std::vector<uint32_t> first_;        // by slot: the first link of its node
};

}  // namespace sekisho::rankmap
