// SPDX-License-Identifier: Apache-2.0
// Loaded into a daemon of the lab (/etc/ld.so.preload): lists every durable write and every send of the process, and
// kills it, as kill -9 does, before or after the one that it was told.  docs/operations/chaos.md
//
// A program is looked after if /run/chaos/PROGRAM exists: `struct control`, shared with tests/chaos/points.py.  The
// list goes on over restarts of the program.  $SEKISHO_KILL_POINTS_CONTROL and _DURABLE are of its own test.
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

enum { kBefore = 0, kAfter = 1, kDeathsMax = 16, kTextSize = 64, kCapacity = 32768 };

struct death {
  uint64_t nth;  // wanted at this occurrence of `point` in its process, counted from 1; 0: no more of them
  uint64_t side;
  char point[kTextSize];
};

struct control {
  _Atomic uint64_t count;  // points so far, all processes together, and one without a text as a process begins
  _Atomic uint64_t deaths;  // so many of `death` have come to pass
  _Atomic uint64_t armed;   // how often it was told: processes count from there on
  struct death death[kDeathsMax];  // one after the other, each of a process after the one before
  struct {
    uint64_t process;
    char text[kTextSize];
  } point[kCapacity];
};

static struct control* control;
static pid_t owner;
static const char* also_durable;  // what begins with this

static void List(const char* text) {
  const uint64_t number = atomic_fetch_add(&control->count, 1);
  if (number < kCapacity) {
    control->point[number].process = (uint64_t)owner;
    snprintf(control->point[number].text, kTextSize, "%s", text);
  }
}

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
  List("");
}

// The supervisor of a task leaves its parent before all else, and is what is looked after.
pid_t setsid(void) {
  static int has_left;
  if (control && !has_left && getpid() != owner && strcmp(program_invocation_short_name, "sekisho-task") == 0) {
    has_left = 1;
    owner = getpid();
    List("");
  }
  return (pid_t)syscall(SYS_setsid);
}

static int IsOfId(char one) { return ('a' <= one && one <= 'z') || ('2' <= one && one <= '7'); }
static int IsHex(char one) { return ('a' <= one && one <= 'f') || ('0' <= one && one <= '9'); }
static int IsDigit(char one) { return '0' <= one && one <= '9'; }
static int IsLetter(char one) { return ('a' <= one && one <= 'z') || ('A' <= one && one <= 'Z') || IsDigit(one); }
static size_t Run(const char* text, int (*is_of_it)(char)) {
  size_t length = 0;
  while (is_of_it(text[length])) {
    ++length;
  }
  return length;
}

// A path without what is different each time: ids of jobs (and an array's index), hashes, numbers, mkstemp's letters.
static void MakePlain(char* text) {
  char* to = text;
  for (const char* from = text; *from != '\0';) {
    const size_t hex = Run(from, IsHex), id = Run(from, IsOfId), digits = Run(from, IsDigit), all = strcspn(from, "/.[");
    const int begins = to == text || to[-1] == '/' || to[-1] == '.';
    const int extends = to != text && to[-1] == '.' && from[all] == '\0';
    const char* const word = !begins || all == 0 ? NULL
                             : hex == all && hex == 64 ? "SHA"
                             : id == all && id == 13   ? "JOB"
                             : digits == all           ? "N"
                             : extends && all == 6 && Run(from, IsLetter) == 6 ? "XXXXXX"
                                                       : NULL;
    if (!word) {
      *to++ = *from++;
      continue;
    }
    memcpy(to, word, strlen(word));  // as long as what it is for, or shorter
    to += strlen(word);
    from += all + (from[all] == '[' ? strcspn(from + all, "/") : 0);
  }
  *to = '\0';
}

static atomic_int is_dying;

static void Die(void) {
  if (!atomic_exchange(&is_dying, 1)) {
    control->deaths++;  // the next process counts towards the next of them
    syscall(SYS_kill, owner, SIGKILL);
  }
  for (;;) {
    pause();
  }
}

// Whether this is the place at which the process is to die next.  All places are counted, as several processes of one
// program may run, each counting for itself.
static const struct death* Met(const char* text) {
  static _Atomic uint64_t armed, seen[kDeathsMax];
  const uint64_t now = control->armed;
  if (atomic_exchange(&armed, now) != now) {
    for (int i = 0; i < kDeathsMax; ++i) {
      seen[i] = 0;
    }
  }
  const struct death* met = NULL;
  for (uint64_t i = control->deaths; i < kDeathsMax && control->death[i].nth != 0; ++i) {
    if (strcmp(control->death[i].point, text) == 0 && atomic_fetch_add(&seen[i], 1) + 1 == control->death[i].nth && i == control->deaths) {
      met = &control->death[i];
    }
  }
  return met;
}

// Whether the process is to die after it.
static int Enter(const char* operation, char* what) {
  while (is_dying) {
    pause();
  }
  char text[kTextSize] = {0};
  MakePlain(what);
  const size_t length = strlen(what), room = kTextSize - 1 - strlen(operation) - 1;
  snprintf(text, sizeof text, "%s %s", operation, length > room ? what + length - room : what);
  List(text);
  const struct death* const met = Met(text);
  if (met && met->side == kBefore) {
    Die();
  }
  return met != NULL;
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
  const int served = here < there ? here : there;
  snprintf(what, PATH_MAX, served < 10000 ? "%s %d" : "%s N", here < there ? "from" : "to", served);
  return 1;
}

// Of a database's file, what is written between two syncs is one write, in pieces: only its first counts.
static int IsFirst(const char* path, int is_sync) {
  static const char* const kFiles[] = {"-wal", "-journal", ".db"};
  static atomic_int is_amid[sizeof kFiles / sizeof *kFiles];
  const char* const end = path + strlen(path);
  for (size_t i = 0; i < sizeof kFiles / sizeof *kFiles; ++i) {
    const size_t length = strlen(kFiles[i]);
    if ((size_t)(end - path) >= length && strcmp(end - length, kFiles[i]) == 0) {
      return !atomic_exchange(&is_amid[i], !is_sync) || is_sync;
    }
  }
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

#define AROUND(is_point, operation, call)                                    \
  do {                                                                       \
    const int saved = errno;                                                 \
    char what[PATH_MAX];                                                     \
    const int dies = IsLookedAfter() && (is_point) && Enter(operation, what); \
    errno = saved;                                                           \
    const long result = (call);                                              \
    if (dies) {                                                              \
      Die();                                                                 \
    }                                                                        \
    return result;                                                           \
  } while (0)
#define CREATES(flags) (((flags) & O_CREAT) != 0 || ((flags) & O_TMPFILE) == O_TMPFILE)
#define ON_FD(operation, call) AROUND(IsPoint(fd, what), operation, call)
#define WRITE(call) AROUND(IsPoint(fd, what) && IsFirst(what, 0), "write", call)
#define SYNC(call) AROUND(IsPoint(fd, what) && IsFirst(what, 1), "sync", call)
#define ON_NAME(folder, name, operation, call) AROUND(IsDurableName(folder, name, what), operation, call)

// Data.
ssize_t write(int fd, const void* data, size_t size) { WRITE(syscall(SYS_write, fd, data, size)); }
ssize_t writev(int fd, const struct iovec* parts, int count) { WRITE(syscall(SYS_writev, fd, parts, count)); }
ssize_t pwrite(int fd, const void* data, size_t size, off_t at) { WRITE(syscall(SYS_pwrite64, fd, data, size, at)); }
ssize_t pwrite64(int fd, const void* data, size_t size, off_t at) { WRITE(syscall(SYS_pwrite64, fd, data, size, at)); }
int ftruncate(int fd, off_t size) { ON_FD("truncate", syscall(SYS_ftruncate, fd, size)); }
int ftruncate64(int fd, off_t size) { ON_FD("truncate", syscall(SYS_ftruncate, fd, size)); }
int fallocate(int fd, int mode, off_t at, off_t size) { ON_FD("allocate", syscall(SYS_fallocate, fd, mode, at, size)); }
int fallocate64(int fd, int mode, off_t at, off_t size) { ON_FD("allocate", syscall(SYS_fallocate, fd, mode, at, size)); }
int posix_fallocate(int fd, off_t at, off_t size) { ON_FD("allocate", syscall(SYS_fallocate, fd, 0, at, size) == 0 ? 0 : errno); }
int posix_fallocate64(int fd, off_t at, off_t size) { ON_FD("allocate", syscall(SYS_fallocate, fd, 0, at, size) == 0 ? 0 : errno); }
int fsync(int fd) { SYNC(syscall(SYS_fsync, fd)); }
int fdatasync(int fd) { SYNC(syscall(SYS_fdatasync, fd)); }

// Sends.
ssize_t send(int fd, const void* data, size_t size, int flags) { ON_FD("send", syscall(SYS_sendto, fd, data, size, flags, NULL, 0)); }
ssize_t sendto(int fd, const void* data, size_t size, int flags, const struct sockaddr* to, socklen_t to_size) {
  ON_FD("send", syscall(SYS_sendto, fd, data, size, flags, to, to_size));
}
ssize_t splice(int from, off_t* from_at, int fd, off_t* at, size_t size, unsigned flags) {
  ON_FD("send", syscall(SYS_splice, from, from_at, fd, at, size, flags));
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
int fchown(int fd, uid_t user, gid_t group) { ON_FD("chown", syscall(SYS_fchown, fd, user, group)); }
int fchownat(int fd, const char* path, uid_t user, gid_t group, int flags) {
  ON_NAME(fd, path, "chown", syscall(SYS_fchownat, fd, path, user, group, flags));
}

static int Open(int fd, const char* path, int flags, mode_t mode) {
  AROUND((CREATES(flags) || (flags & O_TRUNC) != 0) && IsDurableName(fd, path, what), CREATES(flags) ? "create" : "truncate",
         syscall(SYS_openat, fd, path, flags, mode));
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
