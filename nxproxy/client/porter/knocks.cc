// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/knocks.h"

#include <cerrno>
#include <cstring>

#include <netinet/in.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "nxproxy/client/porter/sockets.h"
#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr size_t kWaitingMax = 1024;

wire::Address V4(const uint8_t (&ip)[4], uint16_t port) {
  wire::Address address;
  address.ip[10] = address.ip[11] = 0xff;
  std::memcpy(address.ip.data() + 12, ip, 4);
  address.port = port;
  return address;
}

// Where to knock for a listener: a wildcard has every address, loopback is the one that is always
// there.
wire::Address DoorOf(const wire::Address& listener, bool is_v6_only) {
  if (!IsWildcard(listener)) {
    return listener;
  }
  wire::Address door;
  door.ip[15] = 1;
  door.port = listener.port;
  return is_v6_only ? door : V4({127, 0, 0, 1}, listener.port);
}

}  // namespace

Knocks::~Knocks() {
  while (!waiting_.empty()) {
    TurnAway(waiting_.begin());
  }
}

void Knocks::TurnAway(Table::iterator waiting) {
  loop_.Forget(waiting->second.knock);
  close(waiting->second.knock);
  waiting->second.visitor.stream->ResetAtClose();
  waiting_.erase(waiting);
}

void Knocks::Knock(const wire::Address& listener, bool is_v6_only, Visitor visitor) {
  const wire::Address door = DoorOf(listener, is_v6_only);
  wire::Address from = door.is_v4() ? V4(kKnockIpV4, 0) : door;
  from.port = 0;
  sockaddr_storage address;
  socklen_t length = wire::ToSocket(from, address);
  const int knock = socket(address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (knock < 0 || waiting_.size() >= kWaitingMax ||
      bind(knock, reinterpret_cast<sockaddr*>(&address), length) != 0) {
    close(knock);
    visitor.stream->ResetAtClose();
    return;
  }
  const Pair ends = {door, LocalOf(knock)};
  waiting_[ends] = {knock, listener, std::move(visitor)};  // before the program can see it
  length = wire::ToSocket(door, address);
  if (connect(knock, reinterpret_cast<sockaddr*>(&address), length) != 0 && errno != EINPROGRESS) {
    TurnAway(waiting_.find(ends));
    on_refused_(listener);
    return;
  }
  loop_.Watch(knock, EPOLLIN, [this, ends](uint32_t) { OnEvents(ends); });
}

// Nothing is ever sent on a knock: it was refused, or the program closed it.
void Knocks::OnEvents(const Pair& ends) {
  const auto found = waiting_.find(ends);
  if (found == waiting_.end()) {
    return;
  }
  const wire::Address listener = found->second.listener;
  TurnAway(found);
  on_refused_(listener);
}

Visitor Knocks::Claim(const wire::Address& local, const wire::Address& remote) {
  const auto found = waiting_.find({local, remote});
  if (found == waiting_.end()) {
    return {};
  }
  Visitor visitor = std::move(found->second.visitor);
  loop_.Forget(found->second.knock);
  if (visitor.is_encrypted) {
    visitor.knock = std::make_unique<Channel>(found->second.knock);
  } else {
    Reset(found->second.knock);  // leaves no TIME_WAIT behind
  }
  waiting_.erase(found);
  return visitor;
}

}  // namespace sekisho::nxproxy::client
