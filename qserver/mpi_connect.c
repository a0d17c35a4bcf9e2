// SPDX-License-Identifier: Apache-2.0
// Of libsekisho-mpich.so: a rank that cannot reach another node of its site learns so from the
// kernel within 15 s, not after two minutes, says who could not reach whom, and ends: its MPI may
// wait for ever.  docs/protocol/15-mpirun.md, "Unreachable".
//
// Also of sockets that do not block: then the error is told by SO_ERROR, or by getpeername's.  It
// stands between the relay's shim, if there is one, and libc: what goes to a relay is not a node's
// address, and not ours to judge.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

// Exit codes.
enum { kUnreached = 125, kUnheard = 126 };
// Seconds: a peer that has ended, so that its host refuses us, is told of by its own agent meanwhile.
enum { kPeerEndsWithin = 3 };
enum { kSynRetries = 3, kSocketsMax = 1024, kNameMax = 256, kPeerMax = 320, kSentenceMax = 1280 };

// By descriptor, until it is known how that went.
static struct sockaddr_storage dialled[kSocketsMax];

// By MPI, not by the program itself, which may wait for a server of its own: called by one of MPI's
// libraries, or, where the relay's shim calls, to a port at which only ranks of this part listen.
static int IsMpis(const void* caller, const struct sockaddr_storage* to) {
  Dl_info library;
  int first = 0;
  int last = 0;
  const int port = ntohs(to->ss_family == AF_INET ? ((const struct sockaddr_in*)to)->sin_port
                                                  : ((const struct sockaddr_in6*)to)->sin6_port);
  const char* const range = getenv("UCX_TCP_PORT_RANGE");
  const char* const kLibraries[] = {"/libuc", "/mca_btl", "/libmpi", "/libfabric"};
  const int is_known = dladdr(caller, &library) != 0 && library.dli_fname;
  for (size_t i = 0; is_known && i < sizeof kLibraries / sizeof *kLibraries; ++i) {
    if (strstr(library.dli_fname, kLibraries[i])) {
      return 1;
    }
  }
  return range && sscanf(range, "%d-%d", &first, &last) == 2 && first <= port && port <= last;
}

static int IsUnreached(int error) {
  return error == ETIMEDOUT || error == EHOSTUNREACH || error == ENETUNREACH ||
         error == EHOSTDOWN || error == ECONNREFUSED;
}

static int IsSameHost(const struct sockaddr_storage* one, const struct sockaddr* other) {
  if (one->ss_family != other->sa_family) {
    return 0;
  }
  return one->ss_family == AF_INET
             ? ((const struct sockaddr_in*)one)->sin_addr.s_addr ==
                   ((const struct sockaddr_in*)other)->sin_addr.s_addr
             : memcmp(&((const struct sockaddr_in6*)one)->sin6_addr,
                      &((const struct sockaddr_in6*)other)->sin6_addr, 16) == 0;
}

static int HasAddress(const char* node, const struct sockaddr_storage* address) {
  struct addrinfo hints = {.ai_family = address->ss_family, .ai_socktype = SOCK_STREAM};
  struct addrinfo* found = 0;
  int is_found = 0;
  if (getaddrinfo(node, 0, &hints, &found) != 0) {
    return 0;
  }
  for (const struct addrinfo* each = found; each; each = each->ai_next) {
    is_found |= IsSameHost(address, each->ai_addr);
  }
  freeaddrinfo(found);
  return is_found;
}

static int NumberOf(const char* variable) {
  const char* const text = getenv(variable);
  return text ? atoi(text) : 0;
}

// "rank 1 on a-n2", "one of ranks 2 to 5 on a-n2"; 0 if no node of this part has the address.
// SEKISHO_NODES and SEKISHO_NODE_RANKS: a-n1,a-n2 and 2,4.
static int NamePeer(const struct sockaddr_storage* address, char* name) {
  const char* nodes = getenv("SEKISHO_NODES");
  const char* counts = getenv("SEKISHO_NODE_RANKS");
  int first = NumberOf("SEKISHO_RANK") - NumberOf("SEKISHO_TASK");
  while (nodes && *nodes) {
    const size_t size = strcspn(nodes, ",");
    const int count = counts ? atoi(counts) : 0;
    char node[kNameMax];
    snprintf(node, sizeof node, "%.*s", (int)size, nodes);
    if (HasAddress(node, address)) {
      if (count == 0) {
        snprintf(name, kPeerMax, "%s", node);
      } else if (count == 1) {
        snprintf(name, kPeerMax, "rank %d on %s", first, node);
      } else {
        snprintf(name, kPeerMax, "one of ranks %d to %d on %s", first, first + count - 1, node);
      }
      return 1;
    }
    first += count;
    nodes += size + (nodes[size] == ',');
    counts = counts ? strchr(counts, ',') : 0;
    counts = counts ? counts + 1 : 0;
  }
  return 0;
}

static void EndIfUnreached(const struct sockaddr_storage* address, int error, const void* caller) {
  char peer[kPeerMax];
  char host[kNameMax] = "";
  char port[16] = "";
  char own[kNameMax] = "";
  char text[kSentenceMax];
  if (!IsUnreached(error) || !getenv("SEKISHO_RANK") || !IsMpis(caller, address) ||
      !NamePeer(address, peer)) {
    return;
  }
  gethostname(own, sizeof own - 1);
  getnameinfo((const struct sockaddr*)address, sizeof *address, host, sizeof host, port,
              sizeof port, NI_NUMERICHOST | NI_NUMERICSERV);
  snprintf(text, sizeof text, "sekisho: rank %s on %s at %s could not reach %s: %s:%s: %s\n",
           getenv("SEKISHO_RANK"), own,
           getenv("SEKISHO_SITE") ? getenv("SEKISHO_SITE") : "its site", peer, host, port,
           strerror(error));
  if (error == ECONNREFUSED) {
    sleep(kPeerEndsWithin);
  }
  _exit(write(STDERR_FILENO, text, strlen(text)) > 0 ? kUnreached : kUnheard);
}

static int IsStream(int fd, const struct sockaddr* address, socklen_t length) {
  int type = 0;
  socklen_t size = sizeof type;
  return address && length <= sizeof(struct sockaddr_storage) &&
         (address->sa_family == AF_INET || address->sa_family == AF_INET6) &&
         getsockopt(fd, SOL_SOCKET, SO_TYPE, &type, &size) == 0 && type == SOCK_STREAM;
}

__attribute__((visibility("default"))) int connect(int fd, const struct sockaddr* address,
                                                   socklen_t length) {
  static int (*next)(int, const struct sockaddr*, socklen_t);
  if (!next) {
    next = dlsym(RTLD_NEXT, "connect");
  }
  if (!IsStream(fd, address, length)) {
    return next(fd, address, length);
  }
  const void* const caller = __builtin_return_address(0);
  const int retries = kSynRetries;
  struct sockaddr_storage to = {0};
  memcpy(&to, address, length);
  if (IsMpis(caller, &to)) {  // the program's own wait as long as they ever did
    setsockopt(fd, IPPROTO_TCP, TCP_SYNCNT, &retries, sizeof retries);
  }
  if (fd < kSocketsMax) {
    dialled[fd].ss_family = 0;  // of another socket that had the number
  }
  const int result = next(fd, address, length);
  const int error = errno;
  if (result != 0 && error == EINPROGRESS && fd < kSocketsMax) {
    dialled[fd] = to;
  } else if (result != 0) {
    EndIfUnreached(&to, error, caller);
  }
  errno = error;
  return result;
}

// The error of a connection that was begun, once it is told.
static void Judge(int fd, int error, const void* caller) {
  if (fd >= 0 && fd < kSocketsMax && dialled[fd].ss_family != 0 && error != EINPROGRESS) {
    const struct sockaddr_storage to = dialled[fd];
    dialled[fd].ss_family = 0;
    EndIfUnreached(&to, error, caller);
  }
}

static int OriginalGetsockopt(int fd, int level, int name, void* value, socklen_t* size) {
  static int (*next)(int, int, int, void*, socklen_t*);
  if (!next) {
    next = dlsym(RTLD_NEXT, "getsockopt");
  }
  return next(fd, level, name, value, size);
}

__attribute__((visibility("default"))) int getsockopt(int fd, int level, int name, void* value,
                                                      socklen_t* size) {
  const int result = OriginalGetsockopt(fd, level, name, value, size);
  if (result == 0 && level == SOL_SOCKET && name == SO_ERROR) {
    Judge(fd, *(const int*)value, __builtin_return_address(0));
  }
  return result;
}

// UCX asks whether it has a peer.
__attribute__((visibility("default"))) int getpeername(int fd, struct sockaddr* address,
                                                       socklen_t* length) {
  static int (*next)(int, struct sockaddr*, socklen_t*);
  if (!next) {
    next = dlsym(RTLD_NEXT, "getpeername");
  }
  const int result = next(fd, address, length);
  const int before = errno;
  int error = 0;
  socklen_t size = sizeof error;
  if (result != 0 && before == ENOTCONN &&
      OriginalGetsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) == 0 && error != 0) {
    Judge(fd, error, __builtin_return_address(0));
  }
  errno = before;
  return result;
}
