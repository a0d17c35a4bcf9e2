// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/shim.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "nxproxy/client/tcp.h"

namespace sekisho::nxproxy::client {
namespace {

int SendPreface(int fd, const LocalReply& how) {
  const ssize_t sent = send(fd, how.preface, how.preface_bytes, MSG_NOSIGNAL);
  return sent == static_cast<ssize_t>(how.preface_bytes) ? 0 : -1;
}

int FamilyOf(const LocalReply& reply) { return (reply.flags & kIsV6) != 0 ? AF_INET6 : AF_INET; }

thread_local int refused_error = 0;
thread_local char refused_text[kLocalTextMax] = {};

int Refuse(const LocalReply& reply) {
  std::memcpy(refused_text, reply.text, sizeof refused_text);
  refused_text[sizeof refused_text - 1] = 0;
  refused_error = reply.error != 0 ? reply.error : ECONNREFUSED;
  errno = refused_error;
  return -1;
}

bool IsSet(const char* name) {
  const char* value = getenv(name);
  return value != nullptr && *value != 0 && std::strcmp(value, "0") != 0;
}

const char* Copy(const char* name, char (&out)[kListMax]) {
  const char* value = getenv(name);
  std::strncpy(out, value != nullptr ? value : "", sizeof out - 1);
  return out;
}

}  // namespace

const char* LastRefusal(int error) {
  return error != 0 && error == refused_error && refused_text[0] != 0 ? refused_text : nullptr;
}

void Shim::ReadEnvironment() {
  const char* porter = getenv("NXPROXY_PORTER");
  is_active = porter != nullptr && ParsePlace(porter, place);
  is_advertising = IsSet("NXPROXY_ADVERTISE");
  takes_loopback = IsSet("NXPROXY_LOOPBACK");
  rules.relayed = Copy("NXPROXY_RELAYED", relayed);
  rules.direct = Copy("NXPROXY_DIRECT", direct);
  tells_direct = IsSet("NXPROXY_LINKS");
}

bool Shim::LocalName(int fd, Address& out) const {
  sockaddr_storage name;
  socklen_t length = sizeof name;
  if (calls.getsockname(fd, reinterpret_cast<sockaddr*>(&name), &length) != 0) {
    return false;
  }
  const auto address = wire::FromSocket(reinterpret_cast<sockaddr*>(&name));
  if (address) {
    out = *address;
  }
  return address.has_value();
}

int Shim::Reserve(int fd, uint32_t flags, uint16_t port) {
  const int family = TcpFamily(fd);
  LocalRequest request;
  LocalReply reply;
  int unused;
  request.verb = LocalVerb::kReserve;
  request.inode = InodeOf(fd);
  request.flags = FlagsOf(fd, family) | flags;
  request.port = port;
  if (family == 0 || !LocalName(fd, request.local)) {
    errno = family == 0 ? EOPNOTSUPP : errno;
    return -1;
  }
  if (!is_active || !Ask(place, request, reply, unused)) {
    errno = ENETDOWN;
    return -1;
  }
  return reply.answer == LocalAnswer::kRefused ? Refuse(reply) : 0;
}

int Shim::Listen(int fd, int backlog) {
  const int result = calls.listen(fd, backlog);
  if (result != 0 || !is_active) {
    return result;
  }
  const int saved = errno;
  LocalRequest request;
  LocalReply reply;
  int unused;
  const int family = TcpFamily(fd);
  if (family == 0 || !LocalName(fd, request.local) ||
      (IsLoopback(request.local) && !takes_loopback)) {
    errno = saved;
    return result;
  }
  request.verb = LocalVerb::kListen;
  request.inode = InodeOf(fd);
  request.flags = FlagsOf(fd, family);
  request.backlog = backlog;
  if (Ask(place, request, reply, unused) && reply.answer == LocalAnswer::kRefused) {
    shutdown(fd, SHUT_RDWR);  // listens no more
    return Refuse(reply);
  }
  errno = saved;
  return result;
}

// Puts the connection that the porter made under the number of the knock.
int Shim::TakeStream(int fd, int stream, int flags) {
  CopyOptions(fd, stream);
  const int status = fcntl(stream, F_GETFL) & ~O_NONBLOCK;
  fcntl(stream, F_SETFL, (flags & SOCK_NONBLOCK) != 0 ? status | O_NONBLOCK : status);
  long result;
  do {
    result = syscall(SYS_dup3, stream, fd, (flags & SOCK_CLOEXEC) != 0 ? O_CLOEXEC : 0);
  } while (result < 0 && (errno == EINTR || errno == EBUSY));
  syscall(SYS_close, stream);
  return result < 0 ? -1 : 0;
}

int Shim::Accept(int fd, sockaddr* address, socklen_t* length, int flags) {
  if (!is_active) {
    return calls.accept4(fd, address, length, flags);
  }
  sockaddr_storage from{};
  socklen_t from_bytes = sizeof from;
  const int accepted = calls.accept4(fd, reinterpret_cast<sockaddr*>(&from), &from_bytes, flags);
  if (accepted < 0) {
    return -1;
  }
  const int saved = errno;
  const auto remote = wire::FromSocket(reinterpret_cast<sockaddr*>(&from));
  LocalRequest request;
  if (remote && LocalName(accepted, request.local) && MayBeKnock(*remote, request.local)) {
    LocalReply reply;
    int stream;
    request.verb = LocalVerb::kClaim;
    request.remote = *remote;
    const bool is_ours = Ask(place, request, reply, stream) && reply.answer == LocalAnswer::kStream;
    if (is_ours) {
      from_bytes = Fill(reply.peer, from.ss_family, from);
      if (stream >= 0 && TakeStream(accepted, stream, flags) != 0) {
        syscall(SYS_close, accepted);
        return -1;
      }
    }
  }
  CopyOut(from, from_bytes, address, length);
  errno = saved;
  return accepted;
}

// A socket that blocks and that nobody has bound may become another: nobody waits for it by epoll,
// nobody relies on its address.
bool Shim::IsReplaceable(int fd, int family, const Address& local) const {
  return place.reversed_port != 0 && family == AF_INET && local.port == 0 &&
         (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
}

// Connects the program's own socket to the relay and puts the preface before all that the program
// will ever write.  TCP fast open queues it in the kernel together with the SYN, so that a socket
// that does not block needs no help later: poll, epoll and SO_ERROR tell the truth.
int Shim::DialRelay(int fd, int family, const LocalReply& how) {
  sockaddr_storage relay;
  const socklen_t length = Fill(how.address, family, relay);
  const auto* to = reinterpret_cast<const sockaddr*>(&relay);
  if (how.preface_bytes == 0) {
    return calls.connect(fd, to, length);
  }
  const bool is_blocking = (fcntl(fd, F_GETFL) & O_NONBLOCK) == 0;
  const int on = 1;
  if (setsockopt(fd, IPPROTO_TCP, TCP_FASTOPEN_NO_COOKIE, &on, sizeof on) == 0) {
    const ssize_t sent =
        sendto(fd, how.preface, how.preface_bytes, MSG_FASTOPEN | MSG_NOSIGNAL, to, length);
    if (sent == static_cast<ssize_t>(how.preface_bytes)) {
      if (is_blocking) {
        return WaitForConnection(fd);
      }
      errno = EINPROGRESS;
      return -1;
    }
    if (sent >= 0 || (errno != EOPNOTSUPP && errno != EINPROGRESS)) {
      return -1;
    }
    if (errno == EINPROGRESS) {
      return WaitForConnection(fd) == 0 ? SendPreface(fd, how) : -1;
    }
  }
  // Fast open is switched off here: a socket that does not block waits for the relay after all.
  if (calls.connect(fd, to, length) != 0 && (errno != EINPROGRESS || WaitForConnection(fd) != 0)) {
    return -1;
  }
  return SendPreface(fd, how);
}

int Shim::Connect(int fd, const sockaddr* address, socklen_t length) {
  const size_t needed = address != nullptr && address->sa_family == AF_INET6 ? sizeof(sockaddr_in6)
                                                                             : sizeof(sockaddr_in);
  if (!is_active || address == nullptr || length < needed) {
    return calls.connect(fd, address, length);
  }
  const int saved = errno;
  const auto remote = wire::FromSocket(address);
  LocalRequest request;
  int family = 0;
  const bool is_asked =
      remote && (asks_always ? !IsLoopback(*remote) : MayBeRelayed(*remote, place, rules));
  const bool is_told = remote && !is_asked && tells_direct && !IsLoopback(*remote) &&
                       IsInList(*remote, rules.direct);
  if (!(is_asked || is_told) || (family = TcpFamily(fd)) == 0 || !LocalName(fd, request.local) ||
      IsLoopback(request.local)) {
    errno = saved;
    return calls.connect(fd, address, length);
  }
  LocalReply reply;
  request.verb = LocalVerb::kConnect;
  request.remote = *remote;
  request.flags = FlagsOf(fd, family) | (is_told ? kIsTold : 0);
  if (IsReplaceable(fd, family, request.local)) {
    request.flags |= kIsReplaceable;
  }
  int stream;
  const bool is_answered = Ask(place, request, reply, stream);
  if (is_answered && reply.answer == LocalAnswer::kStream && stream >= 0) {
    const bool closes = (fcntl(fd, F_GETFD) & FD_CLOEXEC) != 0;
    const int result = TakeStream(fd, stream, closes ? SOCK_CLOEXEC : 0);
    errno = result == 0 ? saved : errno;
    return result;
  }
  if (is_answered && !is_told && reply.answer == LocalAnswer::kRefused) {
    return Refuse(reply);
  }
  if (!is_answered || reply.answer != LocalAnswer::kDial ||
      (family == AF_INET && !reply.address.is_v4())) {
    errno = saved;
    return calls.connect(fd, address, length);
  }
  const int result = DialRelay(fd, family, reply);
  if (result != 0 && errno != EINPROGRESS) {
    return result;
  }
  const int outcome = errno;
  request.verb = LocalVerb::kDialled;
  request.peer = *remote;
  request.remote = reply.address;
  if (reply.preface_bytes != 0 && LocalName(fd, request.local)) {
    Ask(place, request, reply, stream);
  }
  errno = result == 0 ? saved : outcome;
  return result;
}

bool Shim::AskName(const Address& local, const Address& remote, LocalReply& reply) const {
  LocalRequest request;
  int unused;
  request.verb = LocalVerb::kName;
  request.local = local;
  request.remote = remote;
  return Ask(place, request, reply, unused) && reply.answer == LocalAnswer::kKnown;
}

int Shim::Getpeername(int fd, sockaddr* address, socklen_t* length) {
  if (!is_active) {
    return calls.getpeername(fd, address, length);
  }
  sockaddr_storage peer;
  socklen_t bytes = sizeof peer;
  if (calls.getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &bytes) != 0) {
    return -1;
  }
  const auto remote = wire::FromSocket(reinterpret_cast<sockaddr*>(&peer));
  const bool is_relay = remote && IsRelay(*remote, place);
  Address local;
  LocalReply reply;
  if (remote && (is_relay || IsLoopback(*remote) || place.reversed_port != 0) && LocalName(fd, local) &&
      (is_relay || MayBeKnock(*remote, local) || local.port == place.reversed_port) &&
      AskName(local, *remote, reply)) {
    bytes = Fill(reply.peer, FamilyOf(reply), peer);
  }
  CopyOut(peer, bytes, address, length);
  return 0;
}

int Shim::PublicName(int fd, sockaddr* address, socklen_t* length) {
  LocalRequest request;
  LocalReply reply;
  int unused;
  request.verb = LocalVerb::kAddress;
  request.inode = InodeOf(fd);
  if (!is_active || !LocalName(fd, request.local) || !Ask(place, request, reply, unused) ||
      reply.answer != LocalAnswer::kKnown) {
    errno = ENOTCONN;
    return -1;
  }
  sockaddr_storage name;
  const socklen_t bytes = Fill(reply.self, TcpFamily(fd), name);
  CopyOut(name, bytes, address, length);
  return 0;
}

int Shim::Getsockname(int fd, sockaddr* address, socklen_t* length) {
  if (!is_active) {
    return calls.getsockname(fd, address, length);
  }
  sockaddr_storage name;
  socklen_t bytes = sizeof name;
  if (calls.getsockname(fd, reinterpret_cast<sockaddr*>(&name), &bytes) != 0) {
    return -1;
  }
  const int saved = errno;
  const auto local = wire::FromSocket(reinterpret_cast<sockaddr*>(&name));
  sockaddr_storage peer;
  socklen_t peer_bytes = sizeof peer;
  LocalReply reply;
  int unused;
  if (!local || local->port == 0) {
    // Not of the internet, or not bound: as it is.
  } else if (calls.getpeername(fd, reinterpret_cast<sockaddr*>(&peer), &peer_bytes) == 0) {
    const auto remote = wire::FromSocket(reinterpret_cast<sockaddr*>(&peer));
    if (remote && (IsRelay(*remote, place) || MayBeKnock(*remote, *local)) &&
        AskName(*local, *remote, reply) && reply.self.port != 0) {
      bytes = Fill(reply.self, FamilyOf(reply), name);
    }
  } else if (is_advertising && !IsLoopback(*local) && TcpFamily(fd) != 0) {
    LocalRequest request;
    request.verb = LocalVerb::kReserve;
    request.inode = InodeOf(fd);
    request.local = *local;
    request.flags = FlagsOf(fd, name.ss_family);
    if (Ask(place, request, reply, unused) && reply.answer == LocalAnswer::kKnown) {
      Address shown = reply.self;
      if (IsWildcard(*local)) {
        shown.ip = local->ip;
      }
      bytes = Fill(shown, name.ss_family, name);
    }
  }
  CopyOut(name, bytes, address, length);
  errno = saved;
  return 0;
}

}  // namespace sekisho::nxproxy::client
