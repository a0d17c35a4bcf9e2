// SPDX-License-Identifier: Apache-2.0
// Any bytes as a datagram: parsing ends, and what was understood says the same when written again.
#include <cstdlib>
#include <cstring>

#include "transport/pm/packet.h"

using namespace sekisho::pm;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Packet packet;
  if (ParsePacket({data, size}, packet) != ParseError::kNone) return 0;
  std::array<std::uint8_t, kHeaderSize> header;
  WriteHeader(packet.header, header);
  if (std::memcmp(header.data(), data, kHeaderSize) != 0) std::abort();

  Greeting greeting;
  for (const Kind kind : {Kind::kHello, Kind::kChallenge, Kind::kAnswer, Kind::kWelcome}) {
    if (!ParseGreeting(kind, packet.control, greeting)) continue;
    std::array<std::uint8_t, kGreetingControlSize> again;
    WriteGreeting(kind, greeting, again);
    if (std::memcmp(again.data(), packet.control.data(), again.size()) != 0) std::abort();
  }

  FrameReader reader(packet.control, packet.payload);
  Frame frame;
  while (reader.Next(frame)) {
    std::array<std::uint8_t, 1024> out;
    FrameWriter writer(out);
    bool fits = true;
    switch (frame.kind) {
      case FrameKind::kAck:
        fits = writer.Ack(std::span(frame.ranges).first(frame.range_count), frame.delay_us,
                          frame.ce_count);
        break;
      case FrameKind::kCredit:
        fits = writer.Credit(frame.channel, frame.value, frame.length);
        break;
      case FrameKind::kData:
        fits = writer.Data(frame.channel, frame.value, frame.length);
        break;
      case FrameKind::kPing:
        fits = writer.Ping();
        break;
      case FrameKind::kGang:
        fits = writer.Gang(frame.gang);
        break;
      case FrameKind::kPad:
        fits = writer.One(frame.kind, frame.length);
        break;
      default:
        fits = writer.One(frame.kind, frame.value);
    }
    if (!fits) std::abort();
    const bool has_payload = frame.kind == FrameKind::kData;
    FrameReader second({out.data(), writer.size()}, has_payload ? frame.payload : Bytes{});
    Frame copy;
    if (frame.kind == FrameKind::kPad) continue;  // its payload is not in the frame
    if (!second.Next(copy) || !second.ok() || copy.kind != frame.kind) std::abort();
    const bool has_value = frame.kind != FrameKind::kAck && frame.kind != FrameKind::kPing;
    if (frame.kind == FrameKind::kGang) {
      if (copy.gang != frame.gang) std::abort();
      continue;
    }
    if (has_value && copy.value != frame.value) std::abort();
  }
  return 0;
}
