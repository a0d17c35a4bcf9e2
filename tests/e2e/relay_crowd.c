/* SPDX-License-Identifier: Apache-2.0 */
/* libnxproxy in a crowd: threads and forked children that call it all at once.
 *
 *   crowd serve          a listener, shared by threads here and in children; prints its public address
 *   crowd call HOST PORT threads that call it, and a port at which nobody is; prints how many processes answered */
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <nxproxy.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { kChildren = 3, kThreads = 4, kCallers = 8, kCalls = 25, kForks = 20 };

static int listener;
static struct sockaddr_in target;
static pid_t answered[kCallers * kCalls];

static void Check(int is_true, const char* what) {
  if (!is_true) {
    fprintf(stderr, "%s: %s\n", what, nxproxy_strerror(errno));
    _exit(1);
  }
}

static void* Serve(void* unused) {
  for (;;) {
    struct sockaddr_in peer;
    socklen_t length = sizeof peer;
    int fd = NxProxyAccept(listener, (struct sockaddr*)&peer, &length, SOCK_CLOEXEC);
    uint64_t number;
    pid_t own = getpid();
    Check(fd >= 0 && peer.sin_family == AF_INET, "accept");
    Check(recv(fd, &number, sizeof number, MSG_WAITALL) == sizeof number, "receive");
    Check(send(fd, &number, sizeof number, 0) == sizeof number && send(fd, &own, sizeof own, 0) == sizeof own, "answer");
    NxProxyClose(fd);
  }
  return unused;
}

static int Listener(void) {
  struct sockaddr_in any = {.sin_family = AF_INET};
  int fd = socket(AF_INET, SOCK_STREAM, 0);
  Check(NxProxyBind(fd, (struct sockaddr*)&any, sizeof any) == 0, "bind");
  Check(NxProxyListen(fd, 128) == 0, "listen");
  return fd;
}

/* Forks while the other threads are inside the library: the child must find its locks free. */
static void* Fork(void* unused) {
  for (int i = 0; i < kForks; ++i) {
    pid_t child = fork();
    int status;
    if (child == 0) {
      struct sockaddr_in name;
      socklen_t length = sizeof name;
      int fd = Listener();
      Check(NxProxyGetsockname(fd, (struct sockaddr*)&name, &length) == 0 && name.sin_port != 0, "name");
      NxProxyClose(fd);
      _exit(0);
    }
    Check(waitpid(child, &status, 0) == child && status == 0, "a forked child");
  }
  printf("forked\n");
  fflush(stdout);
  return unused;
}

static void ServeAll(void) {
  struct sockaddr_in name;
  socklen_t length = sizeof name;
  char text[INET_ADDRSTRLEN];
  pthread_t thread;
  listener = Listener();
  Check(NxProxyGetsockname(listener, (struct sockaddr*)&name, &length) == 0, "name");
  for (int i = 0; i < kChildren; ++i) {
    if (fork() == 0) {
      prctl(PR_SET_PDEATHSIG, SIGKILL);
      break;
    }
    if (i + 1 == kChildren) {
      Check(pthread_create(&thread, NULL, Fork, NULL) == 0, "thread");
      printf("serves %s %d\n", inet_ntop(AF_INET, &name.sin_addr, text, sizeof text), ntohs(name.sin_port));
      fflush(stdout);
    }
  }
  for (int i = 0; i < kThreads; ++i) {
    Check(pthread_create(&thread, NULL, Serve, NULL) == 0, "thread");
  }
  for (;;) {
    pause();
  }
}

static void ConnectPolling(int fd) {
  struct pollfd one = {.fd = fd, .events = POLLOUT};
  int error;
  socklen_t length = sizeof error;
  if (NxProxyConnect(fd, (struct sockaddr*)&target, sizeof target) != 0) {
    Check(errno == EINPROGRESS && poll(&one, 1, 10000) == 1, "connect without blocking");
    Check(getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &length) == 0 && error == 0, "connected");
  }
}

static void* Call(void* own) {
  for (int i = 0; i < kCalls; ++i) {
    const int place = (int)(intptr_t)own * kCalls + i;
    uint64_t number = 1 + (uint64_t)place, seen = 0;
    struct sockaddr_in name, nobody = target;
    socklen_t length = sizeof name;
    struct timeval limit = {.tv_sec = 20};
    int fd = socket(AF_INET, SOCK_STREAM | (i % 2 ? SOCK_NONBLOCK : 0), 0);
    if (i % 2) {
      ConnectPolling(fd);
      Check(fcntl(fd, F_SETFL, 0) == 0, "blocking");
    } else {
      Check(NxProxyConnect(fd, (struct sockaddr*)&target, sizeof target) == 0, "connect");
    }
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
    Check(NxProxyGetpeername(fd, (struct sockaddr*)&name, &length) == 0 && name.sin_port == target.sin_port, "peer");
    Check(send(fd, &number, sizeof number, 0) == sizeof number, "send");
    Check(recv(fd, &seen, sizeof seen, MSG_WAITALL) == sizeof seen && seen == number, "another's answer");
    Check(recv(fd, &answered[place], sizeof answered[place], MSG_WAITALL) == sizeof answered[place], "who answered");
    NxProxyClose(fd);
    nobody.sin_port = htons(29990);
    fd = socket(AF_INET, SOCK_STREAM, 0);
    if (NxProxyConnect(fd, (struct sockaddr*)&nobody, sizeof nobody) == 0) {
      char byte;
      Check(recv(fd, &byte, 1, 0) < 0, "an endpoint that is not there");
    }
    NxProxyClose(fd);
  }
  return NULL;
}

static void CallAll(const char* host, const char* port) {
  pthread_t threads[kCallers];
  int processes = 0;
  target.sin_family = AF_INET;
  target.sin_port = htons((uint16_t)atoi(port));
  Check(inet_pton(AF_INET, host, &target.sin_addr) == 1, "address");
  for (intptr_t i = 0; i < kCallers; ++i) {
    Check(pthread_create(&threads[i], NULL, Call, (void*)i) == 0, "thread");
  }
  for (int i = 0; i < kCallers; ++i) {
    pthread_join(threads[i], NULL);
  }
  for (int i = 0; i < kCallers * kCalls; ++i) {
    int is_new = 1;
    for (int j = 0; j < i; ++j) {
      is_new = is_new && answered[j] != answered[i];
    }
    processes += is_new;
  }
  printf("%d answers from %d processes\n", kCallers * kCalls, processes);
}

int main(int argc, char** argv) {
  if (argc == 4) {
    CallAll(argv[2], argv[3]);
  } else {
    ServeAll();
  }
  return 0;
}
