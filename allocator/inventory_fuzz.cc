// SPDX-License-Identifier: Apache-2.0
// Any bytes give an inventory within its limits or an error, nothing else.
#include <cstdint>

#include "allocator/inventory.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto inventory = sekisho::allocator::ParseInventory(text, "fuzz");
  if (inventory.ok()) {
    CHECK(!inventory->resources.empty());
    for (const auto& resource : inventory->resources) {
      CHECK(resource.processors() > 0 && !resource.nodes.empty());
    }
  }
  return 0;
}
