// SPDX-License-Identifier: Apache-2.0
// The processors of one resource: who holds what, and where a job would fit.  Pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace sekisho::allocator {

struct Share {
  size_t node = 0;  // index in the resource
  int processes = 0;
  friend bool operator==(const Share&, const Share&) = default;
};
using Shares = std::vector<Share>;

// What a job asks of one resource.
struct Shape {
  int processes = 1;
  int host_count = 0;        // exactly so many nodes, evenly; 0 = as it fits, one node if one can
  bool exclusive = false;    // its nodes run nothing else
  std::vector<bool> usable;  // by node: the job's conditions hold
};

class Usage {
 public:
  Usage(size_t nodes, int processors_per_node);

  void SetUp(size_t node, bool is_up) { nodes_[node].is_up = is_up; }
  bool is_up(size_t node) const { return nodes_[node].is_up; }
  void Add(const Shares& shares, bool exclusive) { Change(shares, exclusive, 1); }
  void Remove(const Shares& shares, bool exclusive) { Change(shares, exclusive, -1); }

  // Processors that a job could get on a node now.
  int Free(size_t node, bool exclusive) const;
  int64_t Free(const Shape& shape) const;

  // Where the job would run; nodes are tried in `order`.  Nothing if it does not fit.
  std::optional<Shares> Place(const Shape& shape, const std::vector<size_t>& order) const;

 private:
  struct Node {
    int64_t busy = 0;
    int exclusive = 0;  // jobs that hold it alone
    bool is_up = true;
  };
  void Change(const Shares& shares, bool exclusive, int sign);
  std::optional<Shares> PlaceOnHosts(const Shape& shape, const std::vector<size_t>& order) const;

  std::vector<Node> nodes_;
  int processors_per_node_;
};

}  // namespace sekisho::allocator
