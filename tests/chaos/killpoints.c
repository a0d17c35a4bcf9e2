// SPDX-License-Identifier: Apache-2.0
// Loaded into a daemon of the lab (/etc/ld.so.preload): numbers every durable write and every send of the process, and
// kills it, as kill -9 does, before or after the one that it was told.  docs/operations/chaos.md
//
// A program is looked after if /run/chaos/PROGRAM exists: `struct control`, shared with tests/chaos/points.py.  The
// count goes on over restarts of the program.  $SEKISHO_KILL_POINTS_CONTROL and _DURABLE are of its own test.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

enum { kBefore = 0, kAfter = 1, kDeathsMax = 8, kTextSize = 64, kCapacity = 32768 };

struct death {
  _Atomic uint64_t at;    // wanted at this point of its process, counted from 1; 0: no more of them
  _Atomic uint64_t side;
  _Atomic uint64_t born;  // the count when that process began
  _Atomic uint64_t died;  // the count where it was killed
};

struct control {
  _Atomic uint64_t count;    // points so far
  _Atomic uint64_t kill_at;  // 0: none
  _Atomic uint64_t side;
  _Atomic uint64_t deaths;   // at points, since the suite said where
  _Atomic uint64_t born_at;  // the count when this process began
  uint64_t unused[3];
  struct death death[kDeathsMax];  // one after the other, each of the process after the one before
  char point[kCapacity][kTextSize];
};

static struct control* control;
static pid_t owner;
static const char* also_durable;  // what begins with this

__attribute__((constructor)) static void Begin(void) {
  char path[PATH_MAX];
  snprintf(path, sizeof path, "/run/chaos/%s", program_invocation_short_name);
  const char* const other = getenv("SEKISHO_KILL_POINTS_CONTROL");
  also_durable = getenv("SEKISHO_KILL_POINTS_DURABLE");
  if (other) {
    snprintf(path, sizeof path, "%s", other);
  }
  const int fd = (int)syscall(SYS_openat, AT_FDCWD, path, O_RDWR | O_CLOEXEC);
  if (fd < 0) {
    return;
  }
  void* memory = mmap(NULL, sizeof(struct control), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  syscall(SYS_close, fd);
  if (memory == MAP_FAILED) {
    return;
  }
  control = memory;
  owner = getpid();
  control->born_at = control->count;
  const uint64_t next = control->deaths;
  if (next > 0 && next < kDeathsMax && control->death[next].at != 0) {
    control->death[next].born = control->born_at;
    control->side = control->death[next].side;
    control->kill_at = control->born_at + control->death[next].at;
  }
}

static void Die(uint64_t number) {
  control->kill_at = 0;
  control->death[control->deaths++].died = number;
  syscall(SYS_kill, owner, SIGKILL);
  for (;;) {
    pause();
  }
}

static uint64_t Enter(const char* operation, const char* what) {
  const uint64_t number = atomic_fetch_add(&control->count, 1) + 1;
  if (number <= kCapacity) {
    const size_t length = strlen(what);
    const size_t room = kTextSize - 1 - strlen(operation) - 1;
    snprintf(control->point[number - 1], kTextSize, "%s %s", operation, length > room ? what + length - room : what);
  }
  if (number == control->kill_at && control->side == kBefore) {
    Die(number);
  }
  return number;
}

static void Leave(uint64_t number) {
  if (number == control->kill_at && control->side == kAfter) {
    Die(number);
  }
}

static int IsLookedAfter(void) { return control != NULL && getpid() == owner; }

static int IsDurable(const char* path) {
  const size_t length = strlen(path);
  if (also_durable && strncmp(path, also_durable, strlen(also_durable)) == 0) {
    return 1;
  }
  return (strncmp(path, "/var/lib/sekisho/", 17) == 0 || strncmp(path, "/var/log/sekisho/", 17) == 0 ||
          strncmp(path, "/home/", 6) == 0) &&
         (length < 4 || strcmp(path + length - 4, "-shm") != 0);
}

// What the descriptor is of: a durable file, or a stream to somebody.
static int IsPoint(int fd, char what[PATH_MAX]) {
  char link[64];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, what, PATH_MAX - 1);
  if (length < 0) {
    return 0;
  }
  what[length] = '\0';
  if (what[0] == '/') {
    return IsDurable(what);
  }
  struct sockaddr_storage local = {0}, peer = {0};
  socklen_t local_size = sizeof local, peer_size = sizeof peer;
  if (strncmp(what, "socket:", 7) != 0 || getsockname(fd, (struct sockaddr*)&local, &local_size) != 0 ||
      getpeername(fd, (struct sockaddr*)&peer, &peer_size) != 0) {
    return 0;
  }
  if (local.ss_family != AF_INET && local.ss_family != AF_INET6) {
    strcpy(what, "local");
    return 1;
  }
  const int here = ntohs(((struct sockaddr_in*)&local)->sin_port);
  const int there = ntohs(((struct sockaddr_in*)&peer)->sin_port);
  snprintf(what, PATH_MAX, here < there ? "from %d" : "to %d", here < there ? here : there);
  return 1;
}

static int IsDurableName(int folder, const char* name, char what[PATH_MAX]) {
  what[0] = '\0';
  if (name[0] != '/' && folder != AT_FDCWD) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", folder);
    const ssize_t length = syscall(SYS_readlinkat, AT_FDCWD, link, what, PATH_MAX / 2);
    what[length < 0 ? 0 : length] = '\0';
    strcat(what, "/");
  }
  strncat(what, name, PATH_MAX / 2);
  return IsDurable(what);
}

#define AROUND(is_point, operation, call)                            \
  do {                                                               \
    const int saved = errno;                                         \
    char what[PATH_MAX];                                             \
    const int counts = IsLookedAfter() && (is_point);                \
    const uint64_t number = counts ? Enter(operation, what) : 0;     \
    errno = saved;                                                   \
    const long result = (call);                                      \
    if (counts) {                                                    \
      Leave(number);                                                 \
    }                                                                \
    return result;                                                   \
  } while (0)
#define CREATES(flags) (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE)
#define ON_FD(operation, call) AROUND(IsPoint(fd, what), operation, call)
#define ON_NAME(folder, name, operation, call) AROUND(IsDurableName(folder, name, what), operation, call)

// Data.
ssize_t write(int fd, const void* data, size_t size) { ON_FD("write", syscall(SYS_write, fd, data, size)); }
ssize_t writev(int fd, const struct iovec* parts, int count) { ON_FD("write", syscall(SYS_writev, fd, parts, count)); }
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) { ON_FD("write", syscall(SYS_pwrite64, fd, data, size, at)); }
ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) { ON_FD("write", syscall(SYS_pwrite64, fd, data, size, at)); }
int ftruncate(int fd, off_t size) { ON_FD("truncate", syscall(SYS_ftruncate, fd, size)); }
int ftruncate64(int fd, off_t size) { ON_FD("truncate", syscall(SYS_ftruncate, fd, size)); }
int fsync(int fd) { ON_FD("sync", syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { ON_FD("sync", syscall(SYS_fdatasync, fd)); }

// Sends.
ssize_t send(int fd, const void* data, size_t size, int flags) { ON_FD("send", syscall(SYS_sendto, fd, data, size, flags, NULL, 0)); }
ssize_t sendto(int fd, const void* data, size_t size, int flags, const struct sockaddr* to, socklen_t to_size) {
  ON_FD("send", syscall(SYS_sendto, fd, data, size, flags, to, to_size));
}
ssize_t sendmsg(int fd, const struct msghdr* message, int flags) { ON_FD("send", syscall(SYS_sendmsg, fd, message, flags)); }

// Names.
int rename(const char* from, const char* to) { ON_NAME(AT_FDCWD, to, "rename", syscall(SYS_renameat2, AT_FDCWD, from, AT_FDCWD, to, 0)); }
int renameat(int from_fd, const char* from, int to_fd, const char* to) {
  ON_NAME(to_fd, to, "rename", syscall(SYS_renameat2, from_fd, from, to_fd, to, 0));
}
int unlink(const char* path) { ON_NAME(AT_FDCWD, path, "remove", syscall(SYS_unlinkat, AT_FDCWD, path, 0)); }
int unlinkat(int fd, const char* path, int flags) { ON_NAME(fd, path, "remove", syscall(SYS_unlinkat, fd, path, flags)); }
int rmdir(const char* path) { ON_NAME(AT_FDCWD, path, "remove", syscall(SYS_unlinkat, AT_FDCWD, path, AT_REMOVEDIR)); }
int mkdir(const char* path, mode_t mode) { ON_NAME(AT_FDCWD, path, "mkdir", syscall(SYS_mkdirat, AT_FDCWD, path, mode)); }
int mkdirat(int fd, const char* path, mode_t mode) { ON_NAME(fd, path, "mkdir", syscall(SYS_mkdirat, fd, path, mode)); }
int link(const char* from, const char* to) { ON_NAME(AT_FDCWD, to, "link", syscall(SYS_linkat, AT_FDCWD, from, AT_FDCWD, to, 0)); }
int linkat(int from_fd, const char* from, int to_fd, const char* to, int flags) {
  ON_NAME(to_fd, to, "link", syscall(SYS_linkat, from_fd, from, to_fd, to, flags));
}
int symlink(const char* to, const char* path) { ON_NAME(AT_FDCWD, path, "link", syscall(SYS_symlinkat, to, AT_FDCWD, path)); }
int symlinkat(const char* to, int fd, const char* path) { ON_NAME(fd, path, "link", syscall(SYS_symlinkat, to, fd, path)); }
int fchmod(int fd, mode_t mode) { ON_FD("chmod", syscall(SYS_fchmod, fd, mode)); }

static int Open(int fd, const char* path, int flags, mode_t mode) {
  AROUND(CREATES(flags) && IsDurableName(fd, path, what), "create", syscall(SYS_openat, fd, path, flags, mode));
}
#define OPEN(fd)                                      \
  va_list arguments;                                  \
  va_start(arguments, flags);                         \
  const mode_t mode = CREATES(flags) ? va_arg(arguments, mode_t) : 0; \
  va_end(arguments);                                  \
  return Open(fd, path, flags, mode)
int open(const char* path, int flags, ...) { OPEN(AT_FDCWD); }
int open64(const char* path, int flags, ...) { OPEN(AT_FDCWD); }
int openat(int fd, const char* path, int flags, ...) { OPEN(fd); }
int openat64(int fd, const char* path, int flags, ...) { OPEN(fd); }
