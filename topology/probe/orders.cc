// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/orders.h"

#include <algorithm>
#include <charconv>
#include <vector>

#include <fmt/format.h>

namespace sekisho::topology {
namespace {

constexpr int kMostSets = 16;
constexpr int kMostPings = 1000;
constexpr uint64_t kMostFlowMs = 60000;

std::vector<std::string_view> Words(std::string_view line) {
  std::vector<std::string_view> words;
  for (size_t at = 0; at < line.size();) {
    const size_t end = std::min(line.find(' ', at), line.size());
    if (end > at) {
      words.push_back(line.substr(at, end - at));
    }
    at = end + 1;
  }
  return words;
}

template <typename T>
bool ParseWhole(std::string_view word, T least, T most, T& value) {
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() && value >= least &&
         value <= most;
}

bool ParseKey(std::string_view word, ProbeKey& key) {
  if (word.size() != 2 * key.size()) {
    return false;
  }
  for (size_t i = 0; i < key.size(); ++i) {
    const auto [end, error] =
        std::from_chars(word.data() + 2 * i, word.data() + 2 * i + 2, key[i], 16);
    if (error != std::errc() || end != word.data() + 2 * i + 2) {
      return false;
    }
  }
  return true;
}

bool ParseTarget(std::string_view address, std::string_view port, ProbeTarget& target) {
  target.address = address;
  return address.size() <= 15 && ParseWhole<uint16_t>(port, 1, 65535, target.port);
}

}  // namespace

std::string PrintKeyOrder(const ProbeKey& key) {
  return fmt::format("K {:02x}\n", fmt::join(key, ""));
}

std::string PrintMeasureOrder(long id, const ProbeTarget& target, const Request& request) {
  return fmt::format("M {} {} {} {} {} {}\n", id, target.address, target.port, request.sets,
                     request.stop, request.most);
}

std::string PrintFlowOrder(long id, const ProbeTarget& target, int duration_ms) {
  return fmt::format("F {} {} {} {}\n", id, target.address, target.port, duration_ms);
}

std::string PrintWaitOrder(long id, const ProbeTarget& target, int duration_ms) {
  return fmt::format("W {} {} {} {}\n", id, target.address, target.port, duration_ms);
}

std::string PrintGoOrder(long id, long waiting) { return fmt::format("G {} {}\n", id, waiting); }

std::string PrintSourceOrder(long id, const std::string& path) {
  return fmt::format("S {} {}\n", id, path);
}

std::string PrintTargetOrder(long id, uint64_t size, const std::string& path) {
  return fmt::format("T {} {} {}\n", id, size, path);
}

std::string PrintPullOrder(long id, const ProbeTarget& target) {
  return fmt::format("P {} {} {}\n", id, target.address, target.port);
}

std::string PrintHereOrder(long id) { return fmt::format("H {}\n", id); }
std::string PrintDigestOrder(long id) { return fmt::format("D {}\n", id); }
std::string PrintCommitOrder(long id) { return fmt::format("C {}\n", id); }

std::optional<ProbeOrder> ParseOrder(std::string_view line) {
  using Kind = ProbeOrder::Kind;
  const std::vector<std::string_view> words = Words(line);
  const size_t count = words.size();
  const std::string_view name = count == 0 || words[0].size() != 1 ? "" : words[0];
  ProbeOrder order;
  if (name == "Q" && count == 1) {
    return order;
  }
  if (name == "K" && count == 2 && ParseKey(words[1], order.key)) {
    order.kind = Kind::kKey;
    return order;
  }
  if (count < 2 || !ParseWhole(words[1], 0L, 1L << 60, order.id)) {
    return std::nullopt;
  }
  // The path is all that follows the words before it.
  const auto path_after = [&](size_t word) {
    const size_t begin = static_cast<size_t>(words[word].data() + words[word].size() - line.data());
    order.path = line.substr(std::min(begin + 1, line.size()));
    return !order.path.empty() && order.path.find('\0') == std::string::npos;
  };
  const auto is = [&](std::string_view wanted, Kind kind, bool is_good) {
    order.kind = kind;
    return name == wanted && is_good;
  };
  const auto is_flow = [&] {
    return count == 5 && ParseTarget(words[2], words[3], order.target) &&
           ParseWhole<uint64_t>(words[4], 1, kMostFlowMs, order.number);
  };
  const bool has_target = count >= 4 && ParseTarget(words[2], words[3], order.target);
  if (is("M", Kind::kMeasure,
         count == 7 && has_target && ParseWhole(words[4], 1, kMostSets, order.request.sets) &&
             ParseWhole(words[5], 1, kMostPings, order.request.stop) &&
             ParseWhole(words[6], 1, kMostPings, order.request.most)) ||
      is("F", Kind::kFlow, is_flow()) || is("W", Kind::kWait, is_flow()) ||
      is("G", Kind::kGo,
         count == 3 && ParseWhole<uint64_t>(words[2], 0, uint64_t{1} << 60, order.number)) ||
      is("P", Kind::kPull, count == 4 && has_target) || is("H", Kind::kHere, count == 2) ||
      is("D", Kind::kDigest, count == 2) || is("C", Kind::kCommit, count == 2) ||
      is("S", Kind::kSource, count > 2 && path_after(1)) ||
      is("T", Kind::kTarget,
         count > 3 && ParseWhole<uint64_t>(words[2], 0, uint64_t{1} << 60, order.number) &&
             path_after(2))) {
    return order;
  }
  return std::nullopt;
}

std::string PrintReady(const ProbeReady& ready) {
  return fmt::format("R {} {} {}\n", ready.at.port, ready.at.address, ready.name);
}

std::optional<ProbeReady> ParseReady(std::string_view line) {
  const std::vector<std::string_view> words = Words(line);
  ProbeReady ready;
  if (words.size() != 4 || words[0] != "R" || !ParseTarget(words[2], words[1], ready.at)) {
    return std::nullopt;
  }
  ready.name = words[3];
  return ready;
}

std::string PrintResult(long id, std::string_view answer) {
  return fmt::format("A {} {}\n", id, answer);
}

double ParseFlow(std::string_view answer) {
  const std::vector<std::string_view> words = Words(answer);
  uint64_t bytes = 0;
  uint64_t us = 0;
  if (words.size() != 2 || !ParseWhole<uint64_t>(words[0], 0, uint64_t{1} << 60, bytes) ||
      !ParseWhole<uint64_t>(words[1], 1, uint64_t{1} << 60, us)) {
    return 0;
  }
  return 8 * static_cast<double>(bytes) / static_cast<double>(us);
}

std::optional<ProbeResult> ParseResult(std::string_view line) {
  ProbeResult result;
  const size_t space = line.find(' ', 2);
  if (!line.starts_with("A ") || space == std::string_view::npos ||
      !ParseWhole(line.substr(2, space - 2), 0L, 1L << 60, result.id)) {
    return std::nullopt;
  }
  result.answer = line.substr(space + 1);
  return result;
}

}  // namespace sekisho::topology
