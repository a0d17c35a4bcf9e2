// SPDX-License-Identifier: Apache-2.0
// A fuzzer's input, taken from its beginning.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/pm/packet.h"

namespace sekisho::pm {

class FuzzInput {
 public:
  FuzzInput(const std::uint8_t* data, std::size_t size) : rest_(data, size) {}
  bool empty() const { return rest_.empty(); }
  std::uint8_t Byte() {
    if (rest_.empty()) return 0;
    const std::uint8_t byte = rest_[0];
    rest_ = rest_.subspan(1);
    return byte;
  }
  void Fill(MutableBytes out) {
    const std::size_t size = out.size() < rest_.size() ? out.size() : rest_.size();
    std::memcpy(out.data(), rest_.data(), size);
    rest_ = rest_.subspan(size);
  }
  std::uint64_t Number() {  // small, or one of the ends
    const std::uint8_t byte = Byte();
    if (byte < 128) return byte;
    if (byte < 192) return std::uint64_t{1} << (byte - 128);
    return ~std::uint64_t{0} - (byte - 192);
  }

 private:
  Bytes rest_;
};

}  // namespace sekisho::pm
