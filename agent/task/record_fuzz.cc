// SPDX-License-Identifier: Apache-2.0
// Records come back from a disk: whatever it holds must be read or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/task/record.h"
#include "agent/task/spec.h"
#include "agent/task/start.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::agent::task;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  if (const auto spec = DecodeSpec(bytes); spec && DecodeSpec(EncodeSpec(*spec)) != spec) {
    std::abort();
  }
  if (const auto fields = Decode(bytes); fields && Encode(*fields) != bytes) {
    std::abort();
  }
  DecodeRunning(bytes);
  DecodeEnded(bytes);
  DecodeFailure(bytes);
  return 0;
}
