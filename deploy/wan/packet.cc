// SPDX-License-Identifier: Apache-2.0
// See packet.h.
#include "deploy/wan/packet.h"

#include <cstddef>

namespace sekisho::wan {
namespace {

uint32_t Number(std::span<const uint8_t> bytes) {
  uint32_t value = 0;
  for (uint8_t byte : bytes) value = value << 8 | byte;
  return value;
}

}  // namespace

std::optional<PacketFacts> ReadPacket(std::span<const uint8_t> packet) {
  if (packet.size() < 20 || packet[0] >> 4 != 4) return std::nullopt;
  const size_t header = (packet[0] & 0xf) * 4;
  if (header < 20 || header > packet.size()) return std::nullopt;
  PacketFacts facts;
  facts.source = Number(packet.subspan(12, 4));
  facts.target = Number(packet.subspan(16, 4));
  facts.protocol = packet[9];
  const bool is_first_fragment = (Number(packet.subspan(6, 2)) & 0x1fff) == 0;
  const std::span<const uint8_t> rest = packet.subspan(header);
  if (!is_first_fragment || rest.size() < 8) return facts;
  if (facts.protocol == kTcp || facts.protocol == kUdp) {
    facts.source_port = static_cast<uint16_t>(Number(rest.subspan(0, 2)));
    facts.target_port = static_cast<uint16_t>(Number(rest.subspan(2, 2)));
  }
  if (facts.protocol == kTcp && rest.size() >= 14) facts.is_opening = (rest[13] & 0x12) == 0x02;
  if (facts.protocol == kIcmp) facts.is_opening = rest[0] == 8;
  return facts;
}

}  // namespace sekisho::wan
