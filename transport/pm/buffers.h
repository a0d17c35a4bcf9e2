// SPDX-License-Identifier: Apache-2.0
// The buffers of the C interface: several open at once, each known by a descriptor.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "transport/pm/context.h"
#include "transport/pm/pm.h"

namespace sekisho::pm {

// Fixed places, named by numbers of which none comes back soon.
template <typename T, std::size_t kSize>
class Places {
 public:
  static_assert((kSize & (kSize - 1)) == 0);

  // -1: none is free.
  int Take() {
    for (std::size_t i = 0; i < kSize; ++i) {
      Place& place = places_[i];
      if (place.taken) continue;
      place.taken = true;
      place.generation = (place.generation + 1) % (std::size_t{1} << 20);
      return static_cast<int>(place.generation * kSize + i);
    }
    return -1;
  }
  T* Find(int number) {
    if (number < 0) return nullptr;
    Place& place = places_[static_cast<std::size_t>(number) % kSize];
    const bool is_it = place.taken && place.generation == static_cast<std::size_t>(number) / kSize;
    return is_it ? &place.value : nullptr;
  }
  void Free(int number) { places_[static_cast<std::size_t>(number) % kSize].taken = false; }

  template <typename Visit>
  void ForEach(Visit visit) {
    for (std::size_t i = 0; i < kSize; ++i) {
      if (places_[i].taken) {
        visit(places_[i].value, static_cast<int>(places_[i].generation * kSize + i));
      }
    }
  }

 private:
  struct Place {
    T value;
    std::size_t generation = 0;
    bool taken = false;
  };

  std::array<Place, kSize> places_;
};

// What a program sends, from its pmGetSendBuffer to the release of its descriptor.
struct SendPlace {
  enum class State : std::uint8_t { kOpen, kSending, kSent, kOperation };
  State state = State::kOpen;
  NodeId node = 0;
  std::size_t length = 0;
  std::unique_ptr<unsigned char[]> buffer;  // kept for the next one
  std::uint32_t session = 0;                // kSent: what acknowledges it
  std::uint64_t end = 0;
  std::uint32_t operation = 0;  // kOperation: of remote memory
};

// A message that was taken from its ring.
struct ReceivePlace {
  enum class State : std::uint8_t { kQueued, kGiven, kReleasing, kReleased };
  State state = State::kQueued;
  Message message;
  std::unique_ptr<unsigned char[]> whole;  // of one that crosses the end of its ring; kept
};

inline constexpr std::size_t kSendPlaces = 64;
inline constexpr std::size_t kReceivePlaces = 256;
static_assert(kReceivePlaces <= Context::kHeldMax);

}  // namespace sekisho::pm
