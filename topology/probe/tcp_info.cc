// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/tcp_info.h"

#include <cstddef>

#include <linux/tcp.h>  // libc's tcp_info ends before what is wanted, and cannot stand beside this one
#include <netinet/in.h>
#include <sys/socket.h>

namespace sekisho::topology {
namespace {

// Nothing: the kernel is too old to know what ends at `end`.
std::optional<tcp_info> Ask(int socket, size_t end) {
  tcp_info info{};
  socklen_t size = sizeof info;
  if (getsockopt(socket, IPPROTO_TCP, TCP_INFO, &info, &size) != 0 || size < end) {
    return std::nullopt;
  }
  return info;
}

}  // namespace

std::optional<uint64_t> AcknowledgedBytes(int socket) {
  const auto info =
      Ask(socket, offsetof(tcp_info, tcpi_bytes_acked) + sizeof(tcp_info::tcpi_bytes_acked));
  if (!info) {
    return std::nullopt;
  }
  // Also what came behind a packet that was lost: at the beginning, when queues overflow, that is
  // much, and would seem to come when the gap is filled.
  return info->tcpi_bytes_acked + static_cast<uint64_t>(info->tcpi_sacked) * info->tcpi_snd_mss;
}

std::optional<double> ShortestRoundTripUs(int socket) {
  const auto info = Ask(socket, offsetof(tcp_info, tcpi_min_rtt) + sizeof(tcp_info::tcpi_min_rtt));
  constexpr uint32_t kNone = UINT32_MAX;
  // Of a packet that was sent twice the kernel goes by TCP's timestamps, which are milliseconds:
  // too little by as much.
  if (!info || info->tcpi_min_rtt == 0 || info->tcpi_min_rtt == kNone ||
      info->tcpi_total_retrans > 0) {
    return std::nullopt;
  }
  return info->tcpi_min_rtt;
}

}  // namespace sekisho::topology
