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

inline constexpr size_t kLongestOrder = 8192;  // with a path

// Of one run: who does not show it is not answered.
using ProbeKey = std::array<uint8_t, 16>;

struct ProbeTarget {
  std::string address;  // IPv4
  uint16_t port = 0;
};

struct ProbeOrder {
  enum class Kind {
    kKey,
    kMeasure,
    kFlow,
    kWait,
    kGo,
    kSource,
    kTarget,
    kPull,
    kHere,
    kDigest,
    kCommit,
    kQuit
  };
  Kind kind = Kind::kQuit;
  ProbeKey key{};
  long id = 0;
  ProbeTarget target;   // of a measurement, a flow or a pull
  Request request;      // without its hosts
  uint64_t number = 0;  // of a flow, ms; of a target, bytes; of "go", which flow
  std::string path;     // of a source or target
};

// Each with a line's end; docs/protocol/12-topology.md, "Probers", lists them.
std::string PrintKeyOrder(const ProbeKey& key);
std::string PrintMeasureOrder(long id, const ProbeTarget& target, const Request& request);
std::string PrintFlowOrder(long id, const ProbeTarget& target, int duration_ms);
// A flow that waits, once it is connected, for "go".
std::string PrintWaitOrder(long id, const ProbeTarget& target, int duration_ms);
std::string PrintGoOrder(long id, long waiting);
std::string PrintSourceOrder(long id, const std::string& path);
std::string PrintTargetOrder(long id, uint64_t size, const std::string& path);
std::string PrintPullOrder(long id, const ProbeTarget& target);
std::string PrintHereOrder(long id);
std::string PrintDigestOrder(long id);
std::string PrintCommitOrder(long id);
std::optional<ProbeOrder> ParseOrder(std::string_view line);

// What a prober says first: "R port address name".
struct ProbeReady {
  ProbeTarget at;
  std::string name;  // as its host calls itself
};
std::string PrintReady(const ProbeReady& ready);
std::optional<ProbeReady> ParseReady(std::string_view line);

// What a flow that waits says once it is connected.
inline constexpr std::string_view kConnected = "connected";

// "A id ANSWER"; of a measurement "min lo hi pings dur", where no pings mean that there was no
// answer.
struct ProbeResult {
  long id = 0;
  std::string_view answer;
};
std::string PrintResult(long id, std::string_view answer);
std::optional<ProbeResult> ParseResult(std::string_view line);

// "bytes us" of a flow as Mb/s; 0: it did not work.
double ParseFlow(std::string_view answer);

}  // namespace sekisho::topology
