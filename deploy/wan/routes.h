// SPDX-License-Identifier: Apache-2.0
// Which link a packet takes next: the way of least delay, the same for all packets of a pair. Pure.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "deploy/wan/graph.h"

namespace sekisho::wan {

class Routes {
 public:
  // `error` names two hosts if there is no way between them.
  static std::optional<Routes> Make(const Graph& graph, std::string& error);

  // Index of the edge to take at `vertex` towards `host`; -1 at the host itself.
  int Next(int vertex, int host) const { return next_[host * vertex_count_ + vertex]; }

 private:
  size_t vertex_count_ = 0;
  std::vector<int> next_;
};

// The sum of the delays of all links from one host to another.
int64_t PathDelayNs(const Graph& graph, const Routes& routes, int from_host, int to_host);

}  // namespace sekisho::wan
