// SPDX-License-Identifier: Apache-2.0
// What the two ways to measure PM against TCP share.
#pragma once

#include <memory>
#include <vector>

#include "transport/pm/device.h"

namespace sekisho::pm {

struct Cell {
  const char* name;
  std::size_t size;
  bool round_trip;
};

struct Settings {
  Nanos time = 300 * kMillisecond;
  Nanos tail_time = 0;  // of the rows about a latency tail; 0: as the others
  int rounds = 5;
  bool offload = true;
  bool has_cable = false;  // node 1 on another host
  int mtu = 1500;          // of the goals' network
  bool payload_tag = true;
  std::uint32_t datagram_max = 1472;
  bool is_json = false;
  bool explains = false;
  std::uint32_t ring = 1 << 20;
  const char* only = "";  // rows with this in their name
};

inline constexpr Cell kCells[] = {
    {"round trip 8 B", 8, true},      {"round trip 8 KiB", 8192, true},
    {"bandwidth 64 B", 64, false},    {"bandwidth 1 KiB", 1024, false},
    {"bandwidth 8 KiB", 8192, false}, {"bandwidth 64 KiB", 65536, false}};

inline constexpr ChannelId kEcho = 0;
inline constexpr ChannelId kSink = 1;

std::unique_ptr<Device> OpenNode(NodeId node, const Settings& settings);
void Report(const char* name, const char* unit, std::vector<double> pm, std::vector<double> tcp);

// Both ends in one thread, processor time: other load on the machine disturbs it least.
void OneThread(const Settings& settings);

// Datagrams through memory against all by UDP, under a daemon.
void NearBench(const Settings& settings);

// The goals' table, as far as one machine can tell; an exit code.
int Goals(const Settings& settings);

}  // namespace sekisho::pm
