/* SPDX-License-Identifier: Apache-2.0 */
/* A server that binds first and is reached by anybody, from behind a firewall that lets nothing in.
 *
 *   cc -o nxproxy-echo nxproxy-echo.c $(pkg-config --cflags --libs nxproxy)
 *   inside$  NXPROXY_SCOPE=public ./nxproxy-echo
 *   reach me at 203.0.113.5 20001
 *   outside$ nc 203.0.113.5 20001          (or: ./nxproxy-echo 203.0.113.5 20001) */
#include <arpa/inet.h>
#include <errno.h>
#include <nxproxy.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void Die(const char* what) {
  fprintf(stderr, "%s: %s\n", what, nxproxy_strerror(errno));
  exit(1);
}

/* Copies until the far end closes its half, then closes ours. */
static void Copy(int from, int to) {
  char buffer[65536];
  ssize_t got;
  while ((got = read(from, buffer, sizeof buffer)) > 0) {
    if (write(to, buffer, (size_t)got) != got) {
      Die("write");
    }
  }
}

static int Serve(void) {
  struct sockaddr_in any = {.sin_family = AF_INET}, name;
  socklen_t length = sizeof name;
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (NxProxyBind(listener, (struct sockaddr*)&any, sizeof any) != 0 || NxProxyListen(listener, 16) != 0 ||
      NxProxyGetsockname(listener, (struct sockaddr*)&name, &length) != 0) {
    Die("bind");
  }
  printf("reach me at %s %d\n", inet_ntoa(name.sin_addr), ntohs(name.sin_port));
  fflush(stdout);
  for (;;) {
    struct pollfd wanted = {listener, POLLIN, 0};
    poll(&wanted, 1, -1);
    length = sizeof name;
    const int peer = NxProxyAccept(listener, (struct sockaddr*)&name, &length, 0);
    if (peer < 0) {
      Die("accept");
    }
    printf("%s is here\n", inet_ntoa(name.sin_addr));
    fflush(stdout);
    if (fork() == 0) {
      Copy(peer, peer);
      _exit(0);
    }
    NxProxyClose(peer);
    while (waitpid(-1, NULL, WNOHANG) > 0) {
    }
  }
}

static int Call(const char* host, const char* port) {
  struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port))};
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  inet_pton(AF_INET, host, &there.sin_addr);
  if (NxProxyConnect(fd, (struct sockaddr*)&there, sizeof there) != 0) {
    Die("connect");
  }
  Copy(0, fd);
  shutdown(fd, SHUT_WR);
  Copy(fd, 1);
  return 0;
}

int main(int argc, char** argv) { return argc == 3 ? Call(argv[1], argv[2]) : Serve(); }
