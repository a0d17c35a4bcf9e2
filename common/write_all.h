// SPDX-License-Identifier: Apache-2.0
// Standard library only: also for what is linked statically.
#pragma once

#include <cerrno>
#include <string_view>

#include <unistd.h>

namespace sekisho {

// To a descriptor that blocks.  False: not all of it could be written, and errno says why.
inline bool WriteAll(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t n = write(fd, bytes.data(), bytes.size());
    if (n < 0 && errno != EINTR) {
      return false;
    }
    bytes.remove_prefix(n > 0 ? static_cast<size_t>(n) : 0);
  }
  return true;
}

}  // namespace sekisho
