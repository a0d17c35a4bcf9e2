// SPDX-License-Identifier: Apache-2.0
// The socket calls of a program behind a firewall: docs/protocol/11-nxproxy-shim.md.  One
// implementation under two sets of names: libc's (preload.cc) and NxProxy* (library.cc).
//
// It remembers nothing between two calls but where the porter is: what a socket stands for is known
// by the porter, under the socket's own addresses.  So close, dup, fork, exec and threads need no
// care.
#pragma once

#include <sys/socket.h>

#include "nxproxy/client/local.h"
#include "nxproxy/client/rules.h"

namespace sekisho::nxproxy::client {

inline constexpr size_t kListMax = 512;

// libc's own.
struct Calls {
  int (*listen)(int, int);
  int (*accept4)(int, sockaddr*, socklen_t*, int);
  int (*connect)(int, const sockaddr*, socklen_t);
  int (*getsockname)(int, sockaddr*, socklen_t*);
  int (*getpeername)(int, sockaddr*, socklen_t*);
};

// Why this thread's last call was refused, if it was with `error`; else nullptr.
const char* LastRefusal(int error);

struct Shim {
  Calls calls{};
  LocalPlace place;
  Rules rules;  // point into the two lists
  char relayed[kListMax] = {};
  char direct[kListMax] = {};
  bool is_active = false;       // there is a porter
  bool asks_always = false;     // at each connect, not only by the rules
  bool is_advertising = false;  // getsockname of a listener tells its public address
  bool takes_loopback = false;  // listeners on 127.0.0.1 are published too
  bool tells_direct = false;    // the porter records also what it need not be asked

  // From $NXPROXY_PORTER, _ADVERTISE, _LOOPBACK, _RELAYED, _DIRECT and _LINKS.  Copies them:
  // programs that show their state in ps (nginx, sshd, PostgreSQL) write over their environment.
  void ReadEnvironment();

  // As the calls of the same name.
  int Listen(int fd, int backlog);
  int Accept(int fd, sockaddr* address, socklen_t* length, int flags);
  int Connect(int fd, const sockaddr* address, socklen_t length);
  int Getsockname(int fd, sockaddr* address, socklen_t* length);
  int Getpeername(int fd, sockaddr* address, socklen_t* length);

  // Makes the bound socket an endpoint now; `flags` as in LocalFlags.
  int Reserve(int fd, uint32_t flags, uint16_t port);
  // The endpoint's public address; -1 and ENOTCONN if it is none.
  int PublicName(int fd, sockaddr* address, socklen_t* length);

 private:
  bool LocalName(int fd, Address& out) const;
  bool IsReplaceable(int fd, int family, const Address& local) const;
  bool AskName(const Address& local, const Address& remote, LocalReply& reply) const;
  int DialRelay(int fd, int family, const LocalReply& how);
  int TakeStream(int fd, int stream, int flags);
};

}  // namespace sekisho::nxproxy::client
