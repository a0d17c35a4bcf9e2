// SPDX-License-Identifier: Apache-2.0
// What ranks say, and what other sites gave, is foreign: it is understood or refused.
#include <cstddef>
#include <cstdint>
#include <cstdlib>

#include "agent/pmi_journal.h"
#include "agent/pmi_ranks.h"
#include "agent/task/pmi_lines.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace sekisho::agent;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto pairs = DecodePmiPairs(text);
      pairs && DecodePmiPairs(EncodePmiPairs(*pairs)) != pairs) {
    std::abort();
  }
  PmiRanks ranks(2, 1, "world-0");
  std::string journal;
  uint64_t number = 0;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line(text.substr(at, end - at));
    const auto effects = ranks.OnLine(0, ++number, line);
    if (effects.fence && !DecodePmiPairs(effects.fence->data())) {
      std::abort();  // what we give, others must be able to read
    }
    journal += effects.is_news ? EncodePmiEntry({PmiEntry::Kind::kLine, 0, number, line}) : "";
    if (const auto result = ranks.pending(); result && ranks.OnFenceDone(*result).is_news) {
      journal += EncodePmiEntry({PmiEntry::Kind::kFence, 0, 0, result->SerializeAsString()});
    }
    at = end + 1;
  }
  PmiRanks next(2, 1, "world-0");
  PmiEntry entry;
  std::string_view rest = journal;
  while (TakePmiEntry(rest, entry)) {
    sekisho::proto::Fence fence;
    if (entry.kind == PmiEntry::Kind::kLine) {
      next.OnLine(0, entry.number, entry.data);
    } else if (fence.ParseFromString(entry.data)) {
      next.OnFenceDone(fence);
    }
  }
  if (!rest.empty() || next.IsInside(0) != ranks.IsInside(0) || next.AbortCode(0) != ranks.AbortCode(0) ||
      next.Speaks(0) != ranks.Speaks(0)) {
    std::abort();  // the next agent must know what the last one knew
  }
  for (std::string_view torn = text; TakePmiEntry(torn, entry);) {
  }
  task::PmiLines lines("sekisho job 0 token");
  lines.TakeFromRank(text);
  lines.TakeFromAgent(text);
  lines.Connect();
  return 0;
}
