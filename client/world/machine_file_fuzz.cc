// SPDX-License-Identifier: Apache-2.0
// Whatever a machine file holds is read or refused; what is read deals all ranks, each once.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "client/world/machine_file.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::client;
  const auto machines =
      ParseMachineFile(std::string_view(reinterpret_cast<const char*>(data), size), "f");
  if (!machines.ok()) {
    return 0;
  }
  int next = 0;
  if (const auto parts = DealRanks(*machines, 100); parts.ok()) {
    for (const RankRange& part : *parts) {
      if (part.first != next || part.count < 1) {
        std::abort();
      }
      next += part.count;
    }
    if (next != 100) {
      std::abort();
    }
  }
  return 0;
}
