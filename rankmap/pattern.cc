// SPDX-License-Identifier: Apache-2.0
#include "rankmap/pattern.h"

#include <algorithm>
#include <numeric>
#include <tuple>
#include <unordered_map>

#include "rankmap/errors.h"

namespace sekisho::rankmap {
namespace {

constexpr int64_t kMaxTotal = int64_t{1} << 53;

absl::Status CheckMessage(int ranks, const Message& message) {
  if (message.source >= static_cast<uint32_t>(ranks) ||
      message.target >= static_cast<uint32_t>(ranks)) {
    return errors::BadPattern(
        fmt::format("message {} -> {} with {} ranks", message.source, message.target, ranks));
  }
  if (message.bytes < 0 || message.count < 0 || message.step < 0) {
    return errors::BadPattern(fmt::format("message {} -> {}: negative size, count or step",
                                          message.source, message.target));
  }
  if (message.step >= Pattern::kMaxSteps) {
    return errors::BadPattern(
        fmt::format("step {}: at most {} steps", message.step, Pattern::kMaxSteps));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<Pattern> Pattern::Create(int ranks, std::vector<Message> messages) {
  if (ranks < 1 || ranks > kMaxRanks) {
    return errors::BadPattern(fmt::format("{} ranks: expected 1 to {}", ranks, kMaxRanks));
  }
  Pattern pattern;
  pattern.ranks_ = ranks;
  for (const Message& message : messages) {
    RETURN_IF_ERROR(CheckMessage(ranks, message));
    if (message.bytes > kMaxTotal - pattern.total_bytes_ ||
        message.count > kMaxTotal - pattern.total_count_) {
      return errors::TooLarge("pattern");
    }
    pattern.total_bytes_ += message.bytes;
    pattern.total_count_ += message.count;
    pattern.steps_ = std::max(pattern.steps_, message.step + 1);
  }

  const auto key = [](const Message& m) { return std::tuple(m.source, m.target, m.step); };
  if (!std::is_sorted(messages.begin(), messages.end(),
                      [&](const Message& a, const Message& b) { return key(a) < key(b); })) {
    std::sort(messages.begin(), messages.end(),
              [&](const Message& a, const Message& b) { return key(a) < key(b); });
  }
  size_t kept = 0;
  for (const Message& message : messages) {
    if (kept > 0 && key(messages[kept - 1]) == key(message)) {
      messages[kept - 1].bytes += message.bytes;
      messages[kept - 1].count += message.count;
    } else {
      messages[kept++] = message;
    }
  }
  messages.resize(kept);
  pattern.messages_ = std::move(messages);
  return pattern;
}

uint64_t Pattern::Hash() const {
  uint64_t hash = 0xcbf29ce484222325;
  const auto mix = [&](uint64_t word) { hash = (hash ^ word) * 0x100000001b3 + (hash >> 29); };
  mix(ranks_);
  for (const Message& m : messages_) {
    mix((uint64_t{m.source} << 32) | m.target);
    mix(m.bytes);
    mix(m.step);
    mix(m.count);
  }
  return hash;
}

Graph MakeGraph(const Pattern& pattern, Weight weight, int size) {
  size = std::max(size, pattern.ranks());
  Graph graph;
  graph.offsets.assign(size + 1, 0);
  const auto value = [&](const Message& m) { return weight == Weight::kBytes ? m.bytes : m.count; };
  int64_t unit = 0;
  for (const Message& m : pattern.messages()) {
    if (m.source != m.target && value(m) > 0) {
      ++graph.offsets[m.source + 1];
      ++graph.offsets[m.target + 1];
      unit = std::gcd(unit, value(m));
    }
  }
  graph.unit = std::max<int64_t>(unit, 1);
  std::partial_sum(graph.offsets.begin(), graph.offsets.end(), graph.offsets.begin());
  graph.arcs.resize(graph.offsets[size]);
  std::vector<uint32_t> next(graph.offsets.begin(), graph.offsets.end() - 1);
  for (const Message& m : pattern.messages()) {
    if (m.source != m.target && value(m) > 0) {
      graph.arcs[next[m.source]++] = {m.target, value(m) / graph.unit, 0};
      graph.arcs[next[m.target]++] = {m.source, 0, value(m) / graph.unit};
    }
  }

  uint32_t kept = 0;
  for (int v = 0; v < size; ++v) {
    const uint32_t first = graph.offsets[v];
    const uint32_t last = graph.offsets[v + 1];
    std::sort(graph.arcs.begin() + first, graph.arcs.begin() + last,
              [](const Graph::Arc& a, const Graph::Arc& b) { return a.peer < b.peer; });
    const uint32_t begin = kept;
    for (uint32_t i = first; i < last; ++i) {
      const Graph::Arc arc = graph.arcs[i];
      if (kept > begin && graph.arcs[kept - 1].peer == arc.peer) {
        graph.arcs[kept - 1].out += arc.out;
        graph.arcs[kept - 1].in += arc.in;
      } else {
        graph.arcs[kept++] = arc;
      }
    }
    graph.offsets[v] = begin;
  }
  graph.offsets[size] = kept;
  graph.arcs.resize(kept);
  graph.arcs.shrink_to_fit();
  return graph;
}

namespace {

constexpr uint32_t kOutside = UINT32_MAX;
constexpr size_t kFewVertices = 32;  // one of so many: not worth a list of all

template <typename Local>
Graph InducedBy(const Graph& graph, std::span<const uint32_t> vertices, const Local& local) {
  Graph result;
  result.unit = graph.unit;
  result.offsets.push_back(0);
  for (const uint32_t vertex : vertices) {
    for (const Graph::Arc& arc : graph.Of(vertex)) {
      if (const uint32_t peer = local(arc.peer); peer != kOutside) {
        result.arcs.push_back({peer, arc.out, arc.in});
      }
    }
    result.offsets.push_back(static_cast<uint32_t>(result.arcs.size()));
  }
  return result;
}

}  // namespace

Graph Induced(const Graph& graph, std::span<const uint32_t> vertices) {
  if (vertices.size() * kFewVertices < static_cast<size_t>(graph.size())) {
    std::unordered_map<uint32_t, uint32_t> local;
    local.reserve(vertices.size() * 2);
    for (uint32_t i = 0; i < vertices.size(); ++i) {
      local.emplace(vertices[i], i);
    }
    return InducedBy(graph, vertices, [&](uint32_t peer) {
      const auto found = local.find(peer);
      return found != local.end() ? found->second : kOutside;
    });
  }
  std::vector<uint32_t> local(graph.size(), kOutside);
  for (uint32_t i = 0; i < vertices.size(); ++i) {
    local[vertices[i]] = i;
  }
  return InducedBy(graph, vertices, [&](uint32_t peer) { return local[peer]; });
}

Pattern Induced(const Pattern& pattern, std::span<const uint32_t> vertices) {
  std::vector<uint32_t> number(pattern.ranks(), kOutside);
  for (uint32_t i = 0; i < vertices.size(); ++i) {
    number[vertices[i]] = i;
  }
  std::vector<Message> messages;
  for (Message m : pattern.messages()) {
    if (number[m.source] != kOutside && number[m.target] != kOutside) {
      m.source = number[m.source];
      m.target = number[m.target];
      messages.push_back(m);
    }
  }
  return *Pattern::Create(static_cast<int>(vertices.size()), std::move(messages));
}

}  // namespace sekisho::rankmap
