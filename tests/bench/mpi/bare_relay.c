/* SPDX-License-Identifier: Apache-2.0
 * bare_relay PORT copy|splice: the least that a relay can do, and nothing else: the floor of what a hop costs on this
 * machine.  Who connects says in 6 bytes where to, the far end is told in 4 from where; then a thread a direction, that blocks.
 * tests/bench/mpi/bare_way.c sends programs here. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kBytes = 1 << 20 };

struct Direction {
  int from, to;
};
static int splices;

static void Pass(int from, int to) {
  int ends[2];
  char* const buffer = malloc(kBytes);
  if (buffer == NULL || pipe(ends) != 0) {
    return;
  }
  fcntl(ends[0], F_SETPIPE_SZ, kBytes);
  for (ssize_t got;;) {
    got = splices ? splice(from, NULL, ends[1], NULL, kBytes, SPLICE_F_MOVE) : recv(from, buffer, kBytes, 0);
    if (got <= 0) {
      break;
    }
    for (ssize_t sent; got > 0; got -= sent) {
      sent = splices ? splice(ends[0], NULL, to, NULL, (size_t)got, SPLICE_F_MOVE)
                     : send(to, buffer, (size_t)got, MSG_NOSIGNAL);
      if (sent <= 0 || (!splices && sent < got)) { /* a blocking send takes all */
        return;
      }
    }
  }
  shutdown(to, SHUT_WR);
  close(ends[0]);
  close(ends[1]);
  free(buffer);
}

static void* Back(void* argument) {
  const struct Direction direction = *(struct Direction*)argument;
  free(argument);
  Pass(direction.from, direction.to);
  return NULL;
}

static void* Serve(void* argument) {
  const int near = (int)(intptr_t)argument;
  const int far = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  struct sockaddr_in to = {.sin_family = AF_INET}, from;
  socklen_t length = sizeof from;
  char where[6];
  struct Direction* const back = malloc(sizeof *back);
  if (back != NULL && recv(near, where, sizeof where, MSG_WAITALL) == sizeof where &&
      getpeername(near, (struct sockaddr*)&from, &length) == 0) {
    memcpy(&to.sin_addr, where, 4);
    memcpy(&to.sin_port, where + 4, 2);
    setsockopt(near, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(far, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    if (connect(far, (struct sockaddr*)&to, sizeof to) == 0 && send(far, &from.sin_addr, 4, MSG_NOSIGNAL) == 4) {
      pthread_t thread;
      *back = (struct Direction){far, near};
      pthread_create(&thread, NULL, Back, back);
      Pass(near, far);
      pthread_join(thread, NULL);
    }
  }
  close(near);
  close(far);
  return NULL;
}

int main(int argc, char** argv) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  const int on = 1;
  struct sockaddr_in at = {.sin_family = AF_INET};
  if (argc != 3) {
    fputs("bare_relay PORT copy|splice\n", stderr);
    return 64;
  }
  at.sin_port = htons((uint16_t)atoi(argv[1]));
  splices = strcmp(argv[2], "splice") == 0;
  setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (bind(listener, (struct sockaddr*)&at, sizeof at) != 0 || listen(listener, 64) != 0) {
    perror("bare_relay");
    return 1;
  }
  for (;;) {
    pthread_t thread;
    const int near = accept(listener, NULL, NULL);
    if (near >= 0 && pthread_create(&thread, NULL, Serve, (void*)(intptr_t)near) == 0) {
      pthread_detach(thread);
    }
  }
}
