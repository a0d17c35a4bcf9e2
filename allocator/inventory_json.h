// SPDX-License-Identifier: Apache-2.0
// The JSON form of the inventory, and what both forms share: names and limits.
#pragma once

#include <string>
#include <string_view>
#include <unordered_map>

#include "allocator/inventory.h"

namespace sekisho::allocator {

absl::StatusOr<Inventory> ParseJsonInventory(std::string_view text, const std::string& file);

// Sets `is_machine`, `processors_per_node` and `nodes` as the table's type, procs, nnodes and
// epithet say.
absl::Status NameNodes(bool is_machine, int64_t procs, int64_t nnodes, const std::string& epithet,
                       Resource& resource);

// Sees that no resource and no node is named twice.
class InventoryNames {
 public:
  absl::Status Add(const Resource& resource, int line);

 private:
  std::unordered_map<std::string, int> resources_;  // name -> line
  std::unordered_map<std::string, int> nodes_;
};

bool IsName(std::string_view name);
std::string Printable(std::string_view text);  // foreign text for a message

}  // namespace sekisho::allocator
