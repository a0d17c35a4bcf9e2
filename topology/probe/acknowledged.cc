// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/acknowledged.h"

#include <cstddef>

#include <linux/tcp.h>  // libc's tcp_info ends before what is wanted, and cannot stand beside this one
#include <netinet/in.h>
#include <sys/socket.h>

namespace sekisho::topology {

std::optional<uint64_t> AcknowledgedBytes(int socket) {
  tcp_info info{};
  socklen_t size = sizeof info;
  constexpr size_t kEnd = offsetof(tcp_info, tcpi_bytes_acked) + sizeof info.tcpi_bytes_acked;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < kEnd) {
    return std::nullopt;
  }
  // Also what came behind a packet that was lost: at the beginning, when queues overflow, that is
  // much, and would seem to come when the gap is filled.
  return info.tcpi_bytes_acked + static_cast<uint64_t>(info.tcpi_sacked) * info.tcpi_snd_mss;
}

}  // namespace sekisho::topology
