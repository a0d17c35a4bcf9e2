// SPDX-License-Identifier: Apache-2.0
#include "agent/task/spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>

namespace sekisho::agent::task {
namespace {

// The kernel gives no read lease on a file that anybody, also by a mapping, may write to.
bool HasWriter(int fd) {
  const bool is_refused = fcntl(fd, F_SETLEASE, F_RDLCK) != 0;
  return is_refused && errno == EAGAIN;  // else this file system knows no leases
}

}  // namespace

Spool::~Spool() {
  if (fd_ >= 0) {
    close(fd_);
  }
}

int Spool::Open(uid_t uid, gid_t gid) {
  const int fd = openat(dir_fd_, name_, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0600);
  if (fd < 0 || geteuid() != 0) {
    return fd;
  }
  fd_ = openat(dir_fd_, name_, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd_ < 0 || fchown(fd_, uid, gid) != 0) {
    const int error = errno;
    close(fd);
    errno = error;
    return -1;
  }
  uid_ = uid;
  gid_ = gid;
  return fd;
}

void Spool::Take() {
  if (fd_ < 0) {
    return;
  }
  // Looked at when it is root's: by then its account can neither name it anew nor open it.
  struct stat info {};
  const bool is_ours = fchown(fd_, 0, 0) == 0 && fchmod(fd_, 0600) == 0 && fstat(fd_, &info) == 0 &&
                       info.st_nlink == 1 && !HasWriter(fd_);
  if (!is_ours && fchown(fd_, uid_, gid_) != 0) {
    errno = 0;  // it was not to be taken either
  }
  close(fd_);  // with the lease
  fd_ = -1;
}

}  // namespace sekisho::agent::task
