// SPDX-License-Identifier: Apache-2.0
#include "rankmap/isomorphism.h"

#include <algorithm>

namespace sekisho::rankmap {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

const Graph::Arc* FindArc(const Graph& graph, uint32_t u, uint32_t v) {
  const auto arcs = graph.Of(u);
  const auto at =
      std::lower_bound(arcs.begin(), arcs.end(), v,
                       [](const Graph::Arc& arc, uint32_t peer) { return arc.peer < peer; });
  return at != arcs.end() && at->peer == v ? &*at : nullptr;
}

bool IsRight(const Graph& from, const Graph& to, const std::vector<uint32_t>& image) {
  for (int u = 0; u < from.size(); ++u) {
    if (image[u] == kNone || from.Of(u).size() != to.Of(image[u]).size()) {
      return false;
    }
    for (const Graph::Arc& arc : from.Of(u)) {
      const Graph::Arc* other = FindArc(to, image[u], image[arc.peer]);
      if (other == nullptr || other->out != arc.out || other->in != arc.in) {
        return false;
      }
    }
  }
  return true;
}

}  // namespace

// Arcs of an induced graph must be sorted by peer for FindArc; Induced keeps the order of its
// vertices, so callers pass ascending ones.
std::optional<std::vector<uint32_t>> FindIsomorphism(const Graph& from, const Graph& to,
                                                     uint32_t root, uint32_t image_of_root) {
  if (from.size() != to.size() || from.arcs.size() != to.arcs.size()) {
    return std::nullopt;
  }
  std::vector<uint32_t> image(from.size(), kNone);
  std::vector<char> used(to.size());
  std::vector<uint32_t> queue = {root};
  image[root] = image_of_root;
  used[image_of_root] = 1;
  for (size_t head = 0; head < queue.size(); ++head) {
    const uint32_t u = queue[head];
    const uint32_t v = image[u];
    if (from.Of(u).size() != to.Of(v).size()) {
      return std::nullopt;
    }
    for (const Graph::Arc& arc : from.Of(u)) {
      if (image[arc.peer] != kNone) {
        const Graph::Arc* other = FindArc(to, v, image[arc.peer]);
        if (other == nullptr || other->out != arc.out || other->in != arc.in) {
          return std::nullopt;
        }
        continue;
      }
      for (const Graph::Arc& other : to.Of(v)) {
        if (used[other.peer] == 0 && other.out == arc.out && other.in == arc.in) {
          image[arc.peer] = other.peer;
          used[other.peer] = 1;
          queue.push_back(arc.peer);
          break;
        }
      }
      if (image[arc.peer] == kNone) {
        return std::nullopt;
      }
    }
  }
  return IsRight(from, to, image) ? std::optional(std::move(image)) : std::nullopt;
}

}  // namespace sekisho::rankmap
