// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/orders.h"

#include <charconv>
#include <vector>

#include <fmt/format.h>

#include "topology/text_format.h"

namespace sekisho::topology {
namespace {

constexpr int kMostSets = 16;
constexpr int kMostPings = 1000;

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

std::optional<ProbeOrder> ParseOrder(std::string_view line) {
  const std::vector<std::string_view> words = Words(line);
  ProbeOrder order;
  if (words.size() == 1 && words[0] == "Q") {
    return order;
  }
  if (words.size() == 2 && words[0] == "K" && ParseKey(words[1], order.key)) {
    order.kind = ProbeOrder::Kind::kKey;
    return order;
  }
  if (words.size() == 7 && words[0] == "M" && ParseWhole(words[1], 0L, 1L << 60, order.id) &&
      ParseTarget(words[2], words[3], order.target) &&
      ParseWhole(words[4], 1, kMostSets, order.request.sets) &&
      ParseWhole(words[5], 1, kMostPings, order.request.stop) &&
      ParseWhole(words[6], 1, kMostPings, order.request.most)) {
    order.kind = ProbeOrder::Kind::kMeasure;
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

std::string PrintResult(long id, const Answer& answer) {
  return fmt::format("A {} {}", id, PrintAnswer(answer));
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
