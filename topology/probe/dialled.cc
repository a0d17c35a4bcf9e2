// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/dialled.h"

#include <cerrno>
#include <cstring>

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace sekisho::topology {

void Dialled::Close() {
  if (socket_ >= 0) {
    close(socket_);
    socket_ = -1;
  }
}

bool Dialled::Dial(const ProbeTarget& target) {
  Close();
  dialled_ = {
      .sin_family = AF_INET, .sin_port = htons(target.port), .sin_addr = {}, .sin_zero = {}};
  socket_ = ::socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(socket_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return socket_ >= 0 && inet_pton(AF_INET, target.address.c_str(), &dialled_.sin_addr) == 1 &&
         (connect(socket_, reinterpret_cast<sockaddr*>(&dialled_), sizeof dialled_) == 0 ||
          errno == EINPROGRESS);
}

bool Dialled::Send(const void* bytes, size_t size) {
  return send(socket_, bytes, size, MSG_NOSIGNAL) == static_cast<ssize_t>(size);
}

bool Dialled::Greet(const ProbeKey& key, Wanted wanted) {
  int error = 0;
  socklen_t size = sizeof error;
  char hello[sizeof key + 1];
  std::memcpy(hello, key.data(), key.size());
  hello[key.size()] = static_cast<char>(wanted);
  return getsockopt(socket_, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error == 0 &&
         Send(hello, sizeof hello);
}

// Under nxproxy's shim libc's getpeername tells whom the program asked for: the system call tells
// the truth.
bool Dialled::IsRelayed() const {
  sockaddr_in peer{};
  socklen_t size = sizeof peer;
  return syscall(SYS_getpeername, socket_, &peer, &size) == 0 &&
         (peer.sin_family != AF_INET || peer.sin_port != dialled_.sin_port ||
          peer.sin_addr.s_addr != dialled_.sin_addr.s_addr);
}

}  // namespace sekisho::topology
