// SPDX-License-Identifier: Apache-2.0
// Every error of the allocator that an administrator can meet.
#pragma once

#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "common/status.h"

namespace sekisho::allocator::errors {

inline absl::Status BadInventory(const std::string& file, int line, const absl::Status& why) {
  return absl::InvalidArgumentError(fmt::format(
      "{}:{}: {}", file, line, std::string(why.message().data(), why.message().size())));
}

inline absl::Status CannotReadInventory(const std::string& path, int error) {
  return absl::NotFoundError(
      fmt::format("cannot read the inventory {}: {}", path, std::strerror(error)));
}

inline absl::Status UnknownInventoryKey(const std::string& key) {
  return absl::InvalidArgumentError(
      fmt::format("unknown key \"{}\"; expected name, type, procs, nnodes, clock, epithet, nodes, "
                  "architecture, os, "
                  "memory, tags or queues",
                  key));
}

inline absl::Status UnknownPolicy(std::string_view name) {
  return absl::InvalidArgumentError(
      fmt::format("unknown policy \"{}\"; expected \"paper\", \"load\" or \"near\"", name));
}

}  // namespace sekisho::allocator::errors
