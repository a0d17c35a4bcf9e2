// SPDX-License-Identifier: Apache-2.0
// Messages with descriptors on a Unix socket.
#include "transport/pm/unix_message.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

namespace sekisho::pm {

int SendMessage(int socket, std::span<const std::uint8_t> text, std::span<const int> fds,
                int flags) {
  if (fds.size() > kFdsMax) return EINVAL;
  iovec piece = {const_cast<std::uint8_t*>(text.data()), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  if (!fds.empty()) {
    header.msg_control = control.data();
    header.msg_controllen = CMSG_SPACE(fds.size_bytes());
    cmsghdr* c = CMSG_FIRSTHDR(&header);
    c->cmsg_level = SOL_SOCKET;
    c->cmsg_type = SCM_RIGHTS;
    c->cmsg_len = CMSG_LEN(fds.size_bytes());
    memcpy(CMSG_DATA(c), fds.data(), fds.size_bytes());
  }
  ssize_t sent;
  do {
    sent = sendmsg(socket, &header, MSG_NOSIGNAL | flags);
  } while (sent < 0 && errno == EINTR);
  return sent < 0 ? errno : 0;
}

namespace {

// Descriptors that came with a message; how many.  Those that are too many are closed.
std::size_t TakeFds(msghdr& header, std::array<int, kFdsMax>& fds) {
  std::size_t taken = 0;
  for (cmsghdr* c = CMSG_FIRSTHDR(&header); c != nullptr; c = CMSG_NXTHDR(&header, c)) {
    if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS) continue;
    const std::size_t count = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (std::size_t i = 0; i < count; ++i) {
      int fd;
      memcpy(&fd, CMSG_DATA(c) + i * sizeof(int), sizeof fd);
      if (taken < kFdsMax) {
        fds[taken++] = fd;
      } else {
        close(fd);
      }
    }
  }
  return taken;
}

}  // namespace

Received ReceiveMessage(int socket, std::span<std::uint8_t> text, int flags) {
  iovec piece = {text.data(), text.size()};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kFdsMax * sizeof(int))> control{};
  msghdr header{};
  header.msg_iov = &piece;
  header.msg_iovlen = 1;
  header.msg_control = control.data();
  header.msg_controllen = control.size();
  Received received;
  ssize_t size;
  do {
    size = recvmsg(socket, &header, MSG_CMSG_CLOEXEC | flags);
  } while (size < 0 && errno == EINTR);
  if (size <= 0) return received;
  received.size = static_cast<std::size_t>(size);
  received.fd_count = TakeFds(header, received.fds);
  return received;
}

bool DaemonPath(const char* given, std::array<char, 108>& path) {
  const char* named = given != nullptr ? given : getenv("PM_DAEMON");
  const char* folder = getenv("XDG_RUNTIME_DIR");
  int size;
  if (named != nullptr) {
    size = snprintf(path.data(), path.size(), "%s", named);
  } else if (folder != nullptr) {
    size = snprintf(path.data(), path.size(), "%s/sekisho-pmd", folder);
  } else {
    size = snprintf(path.data(), path.size(), "/run/sekisho-pmd/pmd");
  }
  return size > 0 && static_cast<std::size_t>(size) < path.size();
}

int ConnectDaemon(const char* path, bool wait) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  if (strlen(path) >= sizeof address.sun_path) {
    errno = ENAMETOOLONG;
    return -1;
  }
  strcpy(address.sun_path, path);
  const int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | (wait ? 0 : SOCK_NONBLOCK), 0);
  if (fd < 0) return -1;
  if (connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  return fd;
}

int AskDaemon(int socket, const AskMessage& ask, std::span<const int> fds, int timeout_ms,
              AnswerMessage& answer, Received& received) {
  if (const int error = SendMessage(socket, BytesOf(ask), fds)) return error;
  pollfd waiting = {socket, POLLIN, 0};
  if (poll(&waiting, 1, timeout_ms) <= 0) return ETIMEDOUT;
  received = ReceiveMessage(socket, RoomFor(answer));
  if (received.size != sizeof answer) return ECONNRESET;
  return answer.error;
}

}  // namespace sekisho::pm
