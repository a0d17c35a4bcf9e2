// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/channel.h"

#include <sys/socket.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {

Channel::Channel(int fd) : fd_(fd) {
  const int on = 1;
  setsockopt(fd_, SOL_SOCKET, SO_OOBINLINE, &on, sizeof on);
}

Channel::~Channel() { close(fd_); }

ssize_t Channel::Read(char* bytes, size_t most) { return recv(fd_, bytes, most, 0); }

ssize_t Channel::Write(const char* bytes, size_t count) {
  return send(fd_, bytes, count, MSG_NOSIGNAL);
}

bool Channel::End() {
  shutdown(fd_, SHUT_WR);
  return true;
}

void Channel::ResetAtClose() {
  const linger now = {1, 0};
  setsockopt(fd_, SOL_SOCKET, SO_LINGER, &now, sizeof now);
}

}  // namespace sekisho::nxproxy::client
