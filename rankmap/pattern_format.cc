// SPDX-License-Identifier: Apache-2.0
#include "rankmap/pattern_format.h"

#include <iterator>
#include <limits>

#include "rankmap/errors.h"
#include "rankmap/network.h"
#include "rankmap/text.h"

namespace sekisho::rankmap {
namespace {

constexpr int64_t kMaxBytes = int64_t{1} << 53;
constexpr int64_t kMaxDense = 8192;

// N lines of N numbers: what each rank sends to each, as one message unless it is 0.
absl::StatusOr<std::vector<Message>> ReadMatrix(LineReader& reader, int64_t ranks) {
  std::vector<Message> messages;
  std::vector<std::string_view> words;
  for (int64_t source = 0; source < ranks; ++source) {
    if (!reader.Next(words) || static_cast<int64_t>(words.size()) != ranks) {
      return reader.Error(fmt::format("row {} of the matrix: expected {} numbers, found {}", source, ranks, words.size()));
    }
    for (int64_t target = 0; target < ranks; ++target) {
      ASSIGN_OR_RETURN(const int64_t bytes, reader.Integer(words[target], 0, kMaxBytes, "bytes"));
      if (bytes > 0) {
        messages.push_back({static_cast<uint32_t>(source), static_cast<uint32_t>(target), bytes, 0, 1});
      }
    }
  }
  if (reader.Next(words)) {
    return reader.Error(fmt::format("more than the {} rows of the matrix", ranks));
  }
  return messages;
}

absl::StatusOr<std::vector<Message>> ReadMessages(LineReader& reader, int64_t ranks) {
  std::vector<Message> messages;
  std::vector<std::string_view> words;
  while (reader.Next(words)) {
    if (words.size() < 3 || words.size() > 5) {
      return reader.Error("expected 'source target bytes [step] [messages]'");
    }
    Message m;
    ASSIGN_OR_RETURN(m.source, reader.Integer(words[0], 0, ranks - 1, "source"));
    ASSIGN_OR_RETURN(m.target, reader.Integer(words[1], 0, ranks - 1, "target"));
    ASSIGN_OR_RETURN(m.bytes, reader.Integer(words[2], 0, kMaxBytes, "bytes"));
    if (words.size() > 3) {
      ASSIGN_OR_RETURN(m.step, reader.Integer(words[3], 0, Pattern::kMaxSteps - 1, "step"));
    }
    if (words.size() > 4) {
      ASSIGN_OR_RETURN(m.count, reader.Integer(words[4], 0, kMaxBytes, "messages"));
    }
    messages.push_back(m);
  }
  return messages;
}

}  // namespace

absl::StatusOr<Pattern> ParsePattern(std::string_view text, std::string_view file) {
  LineReader reader(text, file);
  std::vector<std::string_view> words;
  const bool is_line = reader.Next(words) && words.size() == 2;
  const bool is_dense = is_line && words[0] == "matrix";
  if (!is_dense && (!is_line || words[0] != "ranks")) {
    return reader.Error("expected 'ranks N' first, or 'matrix N'");
  }
  ASSIGN_OR_RETURN(const int64_t ranks, reader.Integer(words[1], 1, is_dense ? kMaxDense : Pattern::kMaxRanks, "ranks"));
  ASSIGN_OR_RETURN(std::vector<Message> messages, is_dense ? ReadMatrix(reader, ranks) : ReadMessages(reader, ranks));
  if (reader.is_cut()) {
    return reader.CutOff();
  }
  auto pattern = Pattern::Create(static_cast<int>(ranks), std::move(messages));
  if (!pattern.ok()) {
    return reader.Error(std::string(pattern.status().message()));
  }
  return pattern;
}

std::string PrintPattern(const Pattern& pattern) {
  bool has_counts = false;
  for (const Message& m : pattern.messages()) {
    has_counts |= m.count != 1;
  }
  std::string text = fmt::format("ranks {}\n", pattern.ranks());
  const auto out = std::back_inserter(text);
  for (const Message& m : pattern.messages()) {
    fmt::format_to(out, "{} {} {}", m.source, m.target, m.bytes);
    if (has_counts) {
      fmt::format_to(out, " {} {}\n", m.step, m.count);
    } else if (pattern.steps() > 1) {
      fmt::format_to(out, " {}\n", m.step);
    } else {
      text += '\n';
    }
  }
  return text;
}

absl::StatusOr<std::vector<int>> ParsePlacement(std::string_view text, std::string_view file) {
  LineReader reader(text, file);
  std::vector<std::string_view> words;
  std::vector<int> nodes;
  while (reader.Next(words)) {
    if (words.size() != 1) {
      return reader.Error("expected one node number");
    }
    ASSIGN_OR_RETURN(const int64_t node,
                     reader.Integer(words[0], 0, Network::kMaxNodes - 1, "node"));
    nodes.push_back(static_cast<int>(node));
  }
  if (reader.is_cut()) {
    return reader.CutOff();
  }
  if (nodes.empty()) {
    return reader.Error("expected a node number for every rank");
  }
  return nodes;
}

std::string PrintPlacement(std::span<const int> nodes) {
  std::string text;
  for (const int node : nodes) {
    fmt::format_to(std::back_inserter(text), "{}\n", node);
  }
  return text;
}

}  // namespace sekisho::rankmap
