// SPDX-License-Identifier: Apache-2.0
// Any answer of a launcher: an error, or a value that was in it, within its room.
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>

#include "transport/pm/pmi.h"

using sekisho::pm::Pmi;
using sekisho::pm::PmiValue;

namespace {

constexpr int kFd = 200;

// A new connection, of which our side is kFd.
int OtherSide() {
  int ends[2];
  if (socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0 || dup2(ends[1], kFd) != kFd) std::abort();
  close(ends[1]);
  return ends[0];
}

void Write(int fd, const void* data, std::size_t size) {
  if (write(fd, data, size) != static_cast<ssize_t>(size)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size > 2 * Pmi::kLineMax) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const std::string_view value = PmiValue(text, "value");
  if (!value.empty() && text.find(value) == text.npos) std::abort();

  setenv("PMI_FD", "200", 1);
  setenv("PMI_RANK", "0", 1);
  setenv("PMI_SIZE", "1", 1);
  const int other = OtherSide();
  constexpr std::string_view kName = "cmd=my_kvsname kvsname=a\n";
  Pmi pmi;
  Write(other, kName.data(), kName.size());
  if (pmi.Open()) std::abort();
  Write(other, data, size);
  shutdown(other, SHUT_WR);
  std::array<char, 24> got;
  got.back() = 'x';
  if (!pmi.Get("key", got)) {
    const std::string_view taken(got.data());
    if (taken.empty() || taken.size() >= got.size() || text.find(taken) == text.npos) std::abort();
  }
  close(other);
  return 0;
}
