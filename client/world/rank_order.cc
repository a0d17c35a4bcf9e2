// SPDX-License-Identifier: Apache-2.0
#include "client/world/rank_order.h"

#include <fmt/format.h>

#include "rankmap/text.h"

namespace sekisho::client {

absl::StatusOr<std::vector<int>> ParseRankOrder(std::string_view text, const std::string& source,
                                                int ranks) {
  rankmap::LineReader reader(text, source);
  std::vector<std::string_view> words;
  std::vector<int> rank_of_slot(size_t(ranks), -1);
  std::vector<int> line_of_slot(size_t(ranks), 0);
  int rank = 0;
  while (reader.Next(words)) {
    if (words.size() != 1) {
      return reader.Error("expected one slot, the place of a rank in the machine file's order");
    }
    if (rank == ranks) {
      return reader.Error(fmt::format("expected {} lines, one a rank, saw more", ranks));
    }
    ASSIGN_OR_RETURN(const int64_t slot, reader.Integer(words[0], 0, ranks - 1, "slot"));
    if (rank_of_slot[size_t(slot)] >= 0) {
      return reader.Error(fmt::format("slot {} is rank {}'s, by line {}: a slot is one process's",
                                      slot, rank_of_slot[size_t(slot)],
                                      line_of_slot[size_t(slot)]));
    }
    rank_of_slot[size_t(slot)] = rank++;
    line_of_slot[size_t(slot)] = reader.line();
  }
  if (reader.is_cut()) {
    return reader.CutOff();
  }
  if (rank < ranks) {
    return reader.Error(fmt::format("expected {} lines, one a rank, saw {}", ranks, rank));
  }
  return rank_of_slot;
}

void ApplyRankOrder(const std::vector<int>& rank_of_slot, std::vector<RankRange>& parts) {
  for (RankRange& part : parts) {
    const auto first = rank_of_slot.begin() + part.first;
    part.ranks.assign(first, first + part.count);
  }
}

}  // namespace sekisho::client
