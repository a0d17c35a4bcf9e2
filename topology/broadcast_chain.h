// SPDX-License-Identifier: Apache-2.0
// Who copies from whom while a file goes from host to host, and from whom instead when that one
// is gone: docs/protocol/12-topology.md, "Broadcast".  Pure.
#pragma once

#include <vector>

namespace sekisho::topology {

class BroadcastChain {
 public:
  // In the order of BroadcastOrder(); the first has the file.
  explicit BroadcastChain(const std::vector<int>& order);

  // Whom it copies from now; -1: it is the first, or has given up.
  int Before(int host) const;

  // What it copied from is not there, or no longer: the next one towards the source, and at last
  // again, up to three times, the nearest.
  void Fail(int host);
  void Lose(int host);

 private:
  struct Link {
    int position = -1;
    int asks = -1;  // position
    int rounds = 0;
    bool is_lost = false;
  };
  int NearestBefore(int position) const;

  std::vector<int> order_;
  std::vector<Link> links_;  // by host
};

}  // namespace sekisho::topology
