// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/sock_diag.h"

#include <array>
#include <optional>

#include <arpa/inet.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/proc_net.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr uint32_t kListen = 1u << 10;  // TCP_LISTEN, as a bit

struct Request {
  nlmsghdr header;
  inet_diag_req_v2 what;
};

bool Ask(int netlink, uint8_t family, uint16_t port) {
  Request request{};
  request.header.nlmsg_len = sizeof request;
  request.header.nlmsg_type = SOCK_DIAG_BY_FAMILY;
  request.header.nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP;
  request.what.sdiag_family = family;
  request.what.sdiag_protocol = IPPROTO_TCP;
  request.what.idiag_states = kListen;
  request.what.id.idiag_sport = htons(port);
  return send(netlink, &request, sizeof request, 0) == sizeof request;
}

// To the end of the answer.  Nothing: the kernel does not say.
std::optional<bool> HasOne(int netlink, uint16_t port) {
  alignas(nlmsghdr) std::array<char, 8192> buffer;
  bool has_one = false;
  for (;;) {
    const ssize_t size = recv(netlink, buffer.data(), buffer.size(), 0);
    if (size <= 0) {
      return std::nullopt;
    }
    auto left = static_cast<unsigned>(size);
    for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) {
        return has_one;
      }
      if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
          message->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) {
        return std::nullopt;
      }
      const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(message));
      has_one |= found->id.idiag_sport == htons(port);
    }
  }
}

std::optional<bool> AskKernel(uint16_t port) {
  const int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) {
    return std::nullopt;
  }
  std::optional<bool> has_one = false;
  for (const uint8_t family : {AF_INET, AF_INET6}) {
    if (has_one == false) {
      has_one = Ask(netlink, family, port) ? HasOne(netlink, port) : std::nullopt;
    }
  }
  close(netlink);
  return has_one;
}

}  // namespace

bool IsListenedTo(uint16_t port) {
  if (const auto answer = AskKernel(port)) {
    return *answer;
  }
  return ReadTcpTable().listening_ports.contains(port);
}

}  // namespace sekisho::nxproxy::client
