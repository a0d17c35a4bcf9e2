// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/local.h"

#include <cerrno>
#include <cstddef>
#include <cstring>

#include <arpa/inet.h>
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

namespace sekisho::nxproxy::client {
namespace {

constexpr int kAnswerTimeS = 20;  // the porter's own limits are shorter
// Whom a user namespace does not know, all of them, it shows as this one.
constexpr uid_t kOverflowUid = 65534;
constexpr uint32_t kAllUids = 0xffffffff;

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

// Moves `at` behind the number.
bool ParseNumber(const char*& at, uint32_t& out) {
  const char* begin = at;
  uint64_t number = 0;
  while (*at >= '0' && *at <= '9' && number <= UINT32_MAX) {
    number = number * 10 + static_cast<uint64_t>(*at++ - '0');
  }
  out = static_cast<uint32_t>(number);
  return at != begin && number <= UINT32_MAX;
}

bool ParseColumn(const char*& at, uint32_t& out) {
  while (*at == ' ') {
    ++at;
  }
  return ParseNumber(at, out);
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
  const timeval limit = {kAnswerTimeS, 0};  // for connect, too: who has the name may accept nobody
  syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
  syscall(SYS_setsockopt, fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  long result;
  do {
    result = syscall(SYS_connect, fd, &address, length);
  } while (result < 0 && errno == EINTR);
  if (result < 0) {
    syscall(SYS_close, fd);
    return -1;
  }
  return static_cast<int>(fd);
}

// The kernel's word, not the peer's: whose process it was that began to listen.
uid_t UserBehind(int connection) {
  ucred credential{};
  socklen_t length = sizeof credential;
  const long result =
      syscall(SYS_getsockopt, connection, SOL_SOCKET, SO_PEERCRED, &credential, &length);
  return result == 0 ? credential.uid : kOverflowUid;
}

// Anybody can bind the porter's name where it is not: on another host, or when it has died.
bool IsPorter(uid_t seen, const LocalPlace& place) {
  if (seen == place.uid && seen != kOverflowUid) {
    return true;
  }
  char uid_map[1024];  // a signal handler's stack may be small
  const long file = syscall(SYS_openat, AT_FDCWD, "/proc/self/uid_map", O_RDONLY | O_CLOEXEC);
  const long got = file >= 0 ? syscall(SYS_read, file, uid_map, sizeof uid_map - 1) : -1;
  uid_map[got > 0 ? got : 0] = 0;
  if (file >= 0) {
    syscall(SYS_close, file);
  }
  return IsSameUser(seen, place.uid, uid_map);
}

// A line for people, as long as an answer has room.
class Line {
 public:
  explicit Line(char (&out)[kLocalTextMax]) : at_(out), end_(out + sizeof out - 1) {}

  Line& Add(const char* text) {
    while (*text != 0 && at_ < end_) {
      *at_++ = *text++;
    }
    *at_ = 0;
    return *this;
  }

  Line& Add(uint32_t number) {
    char digits[11] = {};
    char* first = digits + sizeof digits - 1;
    do {
      *--first = static_cast<char>('0' + number % 10);
      number /= 10;
    } while (number != 0);
    return Add(first);
  }

 private:
  char* at_;
  char* const end_;
};

void RefuseStranger(uid_t seen, const LocalPlace& place, LocalReply& reply) {
  reply = LocalReply{};
  reply.answer = LocalAnswer::kRefused;
  reply.error = EACCES;
  Line line(reply.text);
  line.Add("the porter ").Add(place.name).Add(": expected uid ").Add(place.uid);
  line.Add(", uid ").Add(seen).Add(" answered");
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

bool AskAt(int connection, const LocalPlace& place, LocalRequest& request, LocalReply& reply,
           int& fd) {
  const uid_t seen = UserBehind(connection);
  if (!IsPorter(seen, place)) {
    RefuseStranger(seen, place, reply);
    return true;
  }
  std::memcpy(request.key, place.key, sizeof request.key);
  const long sent =
      syscall(SYS_sendto, connection, &request, sizeof request, MSG_NOSIGNAL, nullptr, 0);
  return sent == sizeof request && Receive(connection, reply, fd);
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
  if (!ParseNumber(key, place.uid) || *key++ != ':') {
    return false;  // before there was a uid the key stood here
  }
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

bool IsSameUser(uid_t seen, uid_t expected, const char* uid_map) {
  uint32_t first = 0;
  uint32_t around = 0;
  uint32_t count = 0;
  for (const char* at = uid_map; ParseColumn(at, first) && ParseColumn(at, around) &&
                                 ParseColumn(at, count) && *at == '\n';
       ++at) {
    if (seen >= first && seen - first < count) {
      const bool is_one = seen != kOverflowUid || count == kAllUids;
      return is_one && (seen == expected || around + (seen - first) == expected);
    }
  }
  return false;
}

bool Ask(const LocalPlace& place, LocalRequest& request, LocalReply& reply, int& fd) {
  const int saved = errno;
  fd = -1;
  const int connection = Dial(place);
  const bool is_answered = connection >= 0 && AskAt(connection, place, request, reply, fd);
  if (connection >= 0) {
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
