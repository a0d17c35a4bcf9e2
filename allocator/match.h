// SPDX-License-Identifier: Apache-2.0
// The relations by which a user asks for resources: resource, arch, memory, clock, tags, os, node.
// Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "allocator/inventory.h"
#include "proto/allocation.pb.h"

namespace sekisho::allocator {

// What is known of one node: the inventory's word, else the agent's, else nothing.
struct NodeFacts {
  const std::string* name = nullptr;
  std::string architecture;
  std::string os;
  int64_t memory_mb = 0;
  bool is_up = false;  // then nobody will say more
};

enum class Match {
  kYes,
  kNo,
  kUnknown
};  // kUnknown: the node is down and nobody has said what it is

// Whether the relation can be answered at all: attribute, operator and values.
absl::Status CheckCondition(const proto::Demand::Condition& condition);

// Of a checked condition.
Match Matches(const Resource& resource, const NodeFacts& node,
              const proto::Demand::Condition& condition);

std::string ToString(const proto::Demand::Condition& condition);  // memory>=2048

}  // namespace sekisho::allocator
