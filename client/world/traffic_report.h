// SPDX-License-Identifier: Apache-2.0
// What the tracer in a program's ranks says of their traffic and of their nodes' distances, on their standard error among other
// text: docs/protocol/8-rankmap-files.md, "Reported".  Pure.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/status.h"
#include "rankmap/pattern.h"

namespace sekisho::client {

class TrafficReport {
 public:
  explicit TrafficReport(int ranks) : ranks_(size_t(ranks)) {}

  // More of `rank`'s standard error; a line may come in pieces.
  void Add(int rank, std::string_view data);

  // Of all ranks, each line that they say they have written.
  bool is_whole() const { return whole_ == int(ranks_.size()); }
  // The end of all text that was none of it: why there may be no report.
  const std::string& other_text() const { return other_text_; }

  int ranks() const { return int(ranks_.size()); }
  // Of one that is whole.
  absl::StatusOr<rankmap::Pattern> pattern() const;
  int NodeOf(int rank) const { return ranks_[size_t(rank)].node; }
  // The least round trip that was seen, in ns; of a node with itself: inside it.  0: not measured.
  int64_t RoundTrip(int node, int other) const;

  // All its lines, as a file; and back.  InvalidArgument: that is none, or of other ranks.
  std::string Print() const;
  static absl::StatusOr<TrafficReport> Parse(std::string_view text, int ranks);

 private:
  struct Rank {
    std::string line;  // that has not ended
    std::vector<std::string> lines;
    std::vector<rankmap::Message> messages;
    int node = -1;
    bool is_done = false;
  };
  void AddLine(int rank, const std::string& line);
  bool Take(int rank, const std::string& line);

  std::vector<Rank> ranks_;
  std::map<std::pair<int, int>, int64_t> far_;  // lower node first
  int whole_ = 0;                               // ranks
  std::string other_text_;
};

}  // namespace sekisho::client
