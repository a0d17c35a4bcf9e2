// SPDX-License-Identifier: Apache-2.0
// What ranks say, and what other sites gave, is foreign: it is understood or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/pmi_ranks.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto pairs = DecodePmiPairs(text);
      pairs && DecodePmiPairs(EncodePmiPairs(*pairs)) != pairs) {
    std::abort();
  }
  PmiRanks ranks(2, 1, "world-0");
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const auto effects = ranks.OnLine(0, text.substr(at, end - at));
    if (effects.fence && !DecodePmiPairs(effects.fence->data())) {
      std::abort();  // what we give, others must be able to read
    }
    if (ranks.pending()) {
      ranks.OnFenceDone(*ranks.pending());
    }
    at = end + 1;
  }
  return 0;
}
