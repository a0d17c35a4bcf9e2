// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/sock_diag.h"

#include <array>
#include <optional>
#include <utility>

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

using Inodes = std::set<uint64_t>;

// To the end of the answer.  Nothing: the kernel does not say.
std::optional<Inodes> Receive(int netlink, uint16_t port) {
  alignas(nlmsghdr) std::array<char, 8192> buffer;
  Inodes inodes;
  for (;;) {
    const ssize_t size = recv(netlink, buffer.data(), buffer.size(), 0);
    if (size <= 0) {
      return std::nullopt;
    }
    auto left = static_cast<unsigned>(size);
    for (auto* message = reinterpret_cast<const nlmsghdr*>(buffer.data()); NLMSG_OK(message, left);
         message = NLMSG_NEXT(message, left)) {
      if (message->nlmsg_type == NLMSG_DONE) {
        return inodes;
      }
      if (message->nlmsg_type != SOCK_DIAG_BY_FAMILY ||
          message->nlmsg_len < NLMSG_LENGTH(sizeof(inet_diag_msg))) {
        return std::nullopt;
      }
      const auto* found = static_cast<const inet_diag_msg*>(NLMSG_DATA(message));
      if (port == 0 || found->id.idiag_sport == htons(port)) {
        inodes.insert(found->idiag_inode);
      }
    }
  }
}

// Who listens at `port`, at any if it is 0.  Nothing: the kernel does not say.
std::optional<Inodes> AskKernel(uint16_t port) {
  const int netlink = socket(AF_NETLINK, SOCK_DGRAM | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
  if (netlink < 0) {
    return std::nullopt;
  }
  std::optional<Inodes> all = Inodes();
  for (const uint8_t family : {AF_INET, AF_INET6}) {
    if (all && (port == 0 || all->empty())) {
      std::optional<Inodes> found = Ask(netlink, family, port) ? Receive(netlink, port) : std::nullopt;
      if (found) {
        all->merge(*found);
      } else {
        all.reset();
      }
    }
  }
  close(netlink);
  return all;
}

}  // namespace

bool IsListenedTo(uint16_t port) {
  if (const auto inodes = AskKernel(port)) {
    return !inodes->empty();
  }
  return ReadTcpTable().listening_ports.contains(port);
}

std::set<uint64_t> Listening() {
  if (auto inodes = AskKernel(0)) {
    return *std::move(inodes);
  }
  return ReadTcpTable().listening;
}

}  // namespace sekisho::nxproxy::client
