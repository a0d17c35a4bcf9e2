// SPDX-License-Identifier: Apache-2.0
// A packet in the making, between the parts of the endpoint that fill it.
#pragma once

#include <algorithm>

#include "transport/pm/endpoint.h"

namespace sekisho::pm {

inline constexpr std::size_t kFloorRoom = 3;  // the FLOOR frame; its value is always below 2^14
inline constexpr std::size_t kControlRoom = 1024;

// Its frames, which are written where they leave from, and which segments follow as payload.
struct Endpoint::Draft {
  // In `datagram`, which has room for `size` bytes and for header, FLOOR frame and tag.
  Draft(MutableBytes datagram, std::size_t size)
      : limit(size),
        writer(
            datagram.subspan(kHeaderSize, std::min(kControlRoom, datagram.size() - kHeaderSize))) {
    writer.SetRoom(limit);
  }

  std::size_t room() const { return limit - writer.size() - payload; }
  void AddPayload(std::size_t bytes) {
    payload += bytes;
    writer.SetRoom(limit - payload);
  }

  // Its length as the frame says: the record may be in memory that someone spoils, also between
  // the looks at whether it fits.
  void AddSegment(std::uint32_t index, std::uint32_t length) {
    if (length > room()) Spoiled();
    segments[segment_count] = index;
    lengths[segment_count++] = length;
    AddPayload(length);
  }

  std::size_t limit;  // of control part and payload together
  FrameWriter writer;
  std::size_t payload = 0;
  std::size_t padding = 0;
  std::array<std::uint32_t, kSegmentsPerPacket> segments;
  std::array<std::uint32_t, kSegmentsPerPacket> lengths;
  std::uint8_t segment_count = 0;
  std::uint8_t carried = 0;
  bool eliciting = false;
  bool acks = false;
  bool grants = false;
};

}  // namespace sekisho::pm
