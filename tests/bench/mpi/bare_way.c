/* SPDX-License-Identifier: Apache-2.0
 * A preload for tests/bench/mpi/bench: connections to another site (another 10.N) go by way of bare_relay at $BARE_RELAY,
 * ADDRESS:PORT, and both ends see each other's own addresses.  Enough for the benchmark, and for nothing else. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

enum { kDescriptors = 1024 };
static struct sockaddr_in relay, seen[kDescriptors];

static int ReadRelay(void) {
  if (relay.sin_family == 0) {
    char text[64] = "";
    const char* const named = getenv("BARE_RELAY");
    strncpy(text, named != NULL ? named : "", sizeof text - 1);
    char* const colon = strchr(text, ':');
    if (colon != NULL) {
      *colon = 0;
      relay.sin_port = htons((uint16_t)atoi(colon + 1));
      inet_pton(AF_INET, text, &relay.sin_addr);
      relay.sin_family = AF_INET;
    }
  }
  return relay.sin_family != 0;
}

/* 10.N of the first address that begins with 10; -1: there is none. */
static int OwnSite(void) {
  static int site = -2;
  struct ifaddrs* all = NULL;
  if (site == -2 && getifaddrs(&all) == 0) {
    site = -1;
    for (struct ifaddrs* one = all; one != NULL && site < 0; one = one->ifa_next) {
      if (one->ifa_addr != NULL && one->ifa_addr->sa_family == AF_INET) {
        const uint32_t ip = ntohl(((struct sockaddr_in*)one->ifa_addr)->sin_addr.s_addr);
        site = ip >> 24 == 10 ? (int)(ip >> 16 & 255) : -1;
      }
    }
    freeifaddrs(all);
  }
  return site;
}

int connect(int fd, const struct sockaddr* address, socklen_t length) {
  int (*const next)(int, const struct sockaddr*, socklen_t) = dlsym(RTLD_NEXT, "connect");
  const struct sockaddr_in* const to = (const struct sockaddr_in*)address;
  const uint32_t ip = address->sa_family == AF_INET ? ntohl(to->sin_addr.s_addr) : 0;
  if (ip >> 24 != 10 || (int)(ip >> 16 & 255) == OwnSite() || (ip >> 16 & 255) == 0 || fd >= kDescriptors || !ReadRelay()) {
    return next(fd, address, length);
  }
  const int flags = fcntl(fd, F_GETFL);
  fcntl(fd, F_SETFL, flags & ~O_NONBLOCK);
  char where[6];
  memcpy(where, &to->sin_addr, 4);
  memcpy(where + 4, &to->sin_port, 2);
  seen[fd] = *to;
  const int is_there = next(fd, (struct sockaddr*)&relay, sizeof relay) == 0 && send(fd, where, sizeof where, MSG_NOSIGNAL) == sizeof where;
  fcntl(fd, F_SETFL, flags);
  return is_there ? 0 : -1;
}

static int IsRelay(const struct sockaddr_in* peer) {
  return ReadRelay() && peer->sin_family == AF_INET && peer->sin_addr.s_addr == relay.sin_addr.s_addr;
}

int accept4(int fd, struct sockaddr* address, socklen_t* length, int flags) {
  int (*const next)(int, struct sockaddr*, socklen_t*, int) = dlsym(RTLD_NEXT, "accept4");
  const int taken = next(fd, address, length, flags);
  struct sockaddr_in peer = {0};
  socklen_t bytes = sizeof peer;
  int (*const peer_of)(int, struct sockaddr*, socklen_t*) = dlsym(RTLD_NEXT, "getpeername");
  if (taken >= 0 && taken < kDescriptors && peer_of(taken, (struct sockaddr*)&peer, &bytes) == 0 && IsRelay(&peer)) {
    struct pollfd wait = {.fd = taken, .events = POLLIN};
    seen[taken] = peer;
    poll(&wait, 1, 5000);
    if (recv(taken, &seen[taken].sin_addr, 4, MSG_WAITALL) == 4 && address != NULL && *length >= sizeof peer) {
      memcpy(address, &seen[taken], sizeof peer);
    }
  }
  return taken;
}

int accept(int fd, struct sockaddr* address, socklen_t* length) { return accept4(fd, address, length, 0); }

int getpeername(int fd, struct sockaddr* address, socklen_t* length) {
  int (*const next)(int, struct sockaddr*, socklen_t*) = dlsym(RTLD_NEXT, "getpeername");
  const int result = next(fd, address, length);
  if (result == 0 && fd < kDescriptors && *length >= sizeof relay && IsRelay((struct sockaddr_in*)address) && seen[fd].sin_family != 0) {
    memcpy(address, &seen[fd], sizeof relay);
  }
  return result;
}
