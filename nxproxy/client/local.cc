// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/local.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <arpa/inet.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr int kAnswerTimeS = 20;  // the porter's own limits are shorter

int HexDigit(char c) {
  if (c >= '0' && c <= '9') {
    return c - '0';
  }
  return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool ParsePort(const char* begin, const char* end, uint16_t& out) {
  unsigned port = 0;
  for (const char* digit = begin; digit < end; ++digit) {
    if (*digit < '0' || *digit > '9' || (port = port * 10 + (*digit - '0')) > 65535) {
      return false;
    }
  }
  out = static_cast<uint16_t>(port);
  return true;
}

// "192.0.2.1:80" or "[v6]:80" up to `end`, without an allocation.
bool ParseRelay(const char* text, const char* end, Address& out) {
  const bool has_brackets = text < end && *text == '[';
  const char* host = text + (has_brackets ? 1 : 0);
  const char* colon = end;
  while (colon > host && *colon != ':') {
    --colon;
  }
  const char* host_end = colon - (has_brackets ? 1 : 0);
  char ip[64];
  if (host_end <= host || host_end - host >= static_cast<ptrdiff_t>(sizeof ip)) {
    return false;
  }
  std::memcpy(ip, host, host_end - host);
  ip[host_end - host] = 0;
  out = Address{};
  if (!ParsePort(colon + 1, end, out.port)) {
    return false;
  }
  out.ip[10] = out.ip[11] = 0xff;
  if (inet_pton(AF_INET, ip, out.ip.data() + 12) == 1) {
    return true;
  }
  return inet_pton(AF_INET6, ip, out.ip.data()) == 1;
}

// Not through libc's names: those are the ones that the shim replaces.
int Dial(const LocalPlace& place) {
  sockaddr_storage address;
  const socklen_t length = AbstractAddress(place.name, address);
  const long fd = syscall(SYS_socket, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  if (fd < 0) {
    return -1;
  }
  long result;
  do {
    result = syscall(SYS_connect, fd, &address, length);
  } while (result < 0 && errno == EINTR);
  if (result < 0) {
    syscall(SYS_close, fd);
    return -1;
  }
  const timeval limit = {kAnswerTimeS, 0};
  syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  return static_cast<int>(fd);
}

bool Receive(int from, LocalReply& reply, int& fd) {
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))];
  iovec part = {&reply, sizeof reply};
  msghdr message{};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control;
  message.msg_controllen = sizeof control;
  long got;
  do {
    got = syscall(SYS_recvmsg, from, &message, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  const cmsghdr* header = CMSG_FIRSTHDR(&message);
  if (got > 0 && header != nullptr && header->cmsg_type == SCM_RIGHTS) {
    std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
  }
  return got == sizeof reply && reply.version == kLocalVersion;
}

}  // namespace

socklen_t AbstractAddress(const char* name, sockaddr_storage& out) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const size_t length = strnlen(name, sizeof address.sun_path - 1);
  std::memcpy(address.sun_path + 1, name, length);
  std::memset(&out, 0, sizeof out);
  std::memcpy(&out, &address, sizeof address);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

bool ParsePlace(const char* text, LocalPlace& place) {
  const char* key = std::strchr(text, ':');
  if (key == nullptr || key == text || key - text >= static_cast<ptrdiff_t>(sizeof place.name)) {
    return false;
  }
  place = LocalPlace{};
  std::memcpy(place.name, text, key - text);
  ++key;
  for (size_t i = 0; i < kLocalKeyBytes; ++i) {
    const int high = HexDigit(key[2 * i]);
    const int low = high < 0 ? -1 : HexDigit(key[2 * i + 1]);
    if (low < 0) {
      return false;
    }
    place.key[i] = static_cast<uint8_t>(high << 4 | low);
  }
  const char* relay = key + 2 * kLocalKeyBytes;
  if (*relay != ':') {
    return false;
  }
  while (*relay != 0 && *relay != ';' && place.relay_count < 4) {
    ++relay;
    const char* end = relay;
    while (*end != 0 && *end != ',' && *end != ';') {
      ++end;
    }
    if (!ParseRelay(relay, end, place.relays[place.relay_count])) {
      return false;
    }
    ++place.relay_count;
    relay = end;
  }
  return *relay != ';' || ParsePort(relay + 1, relay + std::strlen(relay), place.reversed_port);
}

bool Ask(const LocalPlace& place, LocalRequest& request, LocalReply& reply, int& fd) {
  const int saved = errno;
  fd = -1;
  const int connection = Dial(place);
  bool is_answered = false;
  if (connection >= 0) {
    std::memcpy(request.key, place.key, sizeof request.key);
    const long sent =
        syscall(SYS_sendto, connection, &request, sizeof request, MSG_NOSIGNAL, nullptr, 0);
    is_answered = sent == sizeof request && Receive(connection, reply, fd);
    syscall(SYS_close, connection);
  }
  if (!is_answered && fd >= 0) {
    syscall(SYS_close, fd);
    fd = -1;
  }
  errno = saved;
  return is_answered;
}

}  // namespace sekisho::nxproxy::client
