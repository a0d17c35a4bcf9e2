// SPDX-License-Identifier: Apache-2.0
// What happens when shared memory proves to be spoiled.
#include "transport/pm/memory.h"

#include <cstdlib>

namespace sekisho::pm {
namespace {

SpoiledHandler spoiled_handler = nullptr;

}  // namespace

void SetSpoiledHandler(SpoiledHandler handler) { spoiled_handler = handler; }

void Spoiled() {
  if (spoiled_handler != nullptr) spoiled_handler();
  std::abort();
}

}  // namespace sekisho::pm
