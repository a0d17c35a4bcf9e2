// SPDX-License-Identifier: Apache-2.0
// What the site has: resources (clusters and parallel machines) and their nodes.  Read from the
// table of the paper (figure 4) as it stands there, or from JSON with more attributes:
// docs/operations/allocator.md. Pure: text in, values out.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/status.h"

namespace sekisho::allocator {

struct Resource {
  std::string name;
  bool is_machine = false;      // 'p': one node, whose inside has no names
  int processors_per_node = 0;  // of a machine: of all of it
  int clock_mhz = 0;
  std::string architecture;  // empty or 0: not said; then what the agents report counts
  std::string os;
  int64_t memory_mb = 0;  // of one node
  std::vector<std::string> tags;
  std::vector<std::string> queues;  // that it serves; a job that names none may go anywhere
  std::vector<std::string> nodes;

  int64_t processors() const { return int64_t{processors_per_node} * int64_t(nodes.size()); }
  friend bool operator==(const Resource&, const Resource&) = default;
};

struct Inventory {
  std::vector<Resource> resources;  // in the file's order

  std::vector<std::string> queues() const;  // each once
};

// More than any site has; a file beyond them is a mistake or an attack.
inline constexpr size_t kMaxInventoryBytes = 1 << 20;
inline constexpr int64_t kMaxNodes = 100'000;
inline constexpr int64_t kMaxProcessorsPerNode = 1'000'000;

// A text that starts with '{' (after blanks and // comments) is JSON, everything else the table.
// Errors start with `FILE:LINE: `.
absl::StatusOr<Inventory> ParseInventory(std::string_view text, const std::string& file);

absl::StatusOr<Inventory> LoadInventory(const std::string& path);

}  // namespace sekisho::allocator
