// SPDX-License-Identifier: Apache-2.0
// What the emulator reads of a packet.  Foreign bytes: anything may be in them.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

namespace sekisho::wan {

struct PacketFacts {
  uint32_t source = 0;
  uint32_t target = 0;
  uint8_t protocol = 0;
  uint16_t source_port = 0;  // TCP and UDP, first fragments
  uint16_t target_port = 0;
  bool is_opening = false;  // TCP's first packet, ICMP's echo request
};

constexpr uint8_t kIcmp = 1;
constexpr uint8_t kTcp = 6;
constexpr uint8_t kUdp = 17;

// Nothing if it is no IPv4 packet.
std::optional<PacketFacts> ReadPacket(std::span<const uint8_t> packet);

}  // namespace sekisho::wan
