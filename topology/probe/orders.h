// SPDX-License-Identifier: Apache-2.0
// What a prober is told on its standard input and says on its standard output:
// docs/protocol/12-topology.md, "Probers".  Pure.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "topology/measurement.h"

namespace sekisho::topology {

inline constexpr size_t kLongestOrder = 256;

// Of one run: who does not show it is not answered.
using ProbeKey = std::array<uint8_t, 16>;

struct ProbeTarget {
  std::string address;  // IPv4
  uint16_t port = 0;
};

struct ProbeOrder {
  enum class Kind { kKey, kMeasure, kQuit };
  Kind kind = Kind::kQuit;
  ProbeKey key{};
  long id = 0;
  ProbeTarget target;
  Request request;  // without its hosts
};

// "K KEY", "M id address port sets stop most" or "Q", each with a line's end.
std::string PrintKeyOrder(const ProbeKey& key);
std::string PrintMeasureOrder(long id, const ProbeTarget& target, const Request& request);
std::optional<ProbeOrder> ParseOrder(std::string_view line);

// What a prober says first: "R port address name".
struct ProbeReady {
  ProbeTarget at;
  std::string name;  // as its host calls itself
};
std::string PrintReady(const ProbeReady& ready);
std::optional<ProbeReady> ParseReady(std::string_view line);

// "A id min lo hi pings dur"; without pings there was no answer.
struct ProbeResult {
  long id = 0;
  std::string_view answer;  // for ParseAnswer()
};
std::string PrintResult(long id, const Answer& answer);
std::optional<ProbeResult> ParseResult(std::string_view line);

}  // namespace sekisho::topology
