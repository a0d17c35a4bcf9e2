// SPDX-License-Identifier: Apache-2.0
// Cuts pieces of memory, one behind the other, into datagrams.
#pragma once

#include <sys/uio.h>

#include <algorithm>
#include <cstdint>
#include <span>

namespace sekisho::pm {

inline constexpr std::size_t kPiecesOfDatagram = 3;

class PieceReader {
 public:
  explicit PieceReader(std::span<const iovec> pieces) : pieces_(pieces) {}

  // The next `size` bytes; how many pieces they lie in.
  std::size_t Take(std::size_t size, std::span<iovec> out) {
    std::size_t count = 0;
    while (size > 0 && count < out.size() && !pieces_.empty()) {
      const std::size_t part = std::min(size, pieces_[0].iov_len - at_);
      out[count++] = {static_cast<std::uint8_t*>(pieces_[0].iov_base) + at_, part};
      size -= part;
      at_ += part;
      if (at_ < pieces_[0].iov_len) break;
      pieces_ = pieces_.subspan(1);
      at_ = 0;
    }
    return count;
  }

 private:
  std::span<const iovec> pieces_;
  std::size_t at_ = 0;
};

}  // namespace sekisho::pm
