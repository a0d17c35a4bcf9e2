// SPDX-License-Identifier: Apache-2.0
// The file of one spooled stream.  It is the account's while the task runs, which may open
// /dev/stdout by name, and root's once nobody else can change it.
#pragma once

#include <sys/types.h>

namespace sekisho::agent::task {

class Spool {
 public:
  // In the task's directory, where only root makes files.
  Spool(int dir_fd, const char* name) : dir_fd_(dir_fd), name_(name) {}
  ~Spool();
  Spool(const Spool&) = delete;
  Spool& operator=(const Spool&) = delete;

  // Makes it.  What the task writes to, for the caller to close; -1 with errno.
  int Open(uid_t uid, gid_t gid);

  // When the task has ended: what it wrote is not its account's to change any more.  A file that
  // has another name, or is written to by somebody else, stays the account's: it would fill the
  // disk in root's name.
  void Take();

 private:
  int dir_fd_;
  const char* name_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  int fd_ = -1;  // of this very file, whatever becomes of its name; only to be read, see Take
};

}  // namespace sekisho::agent::task
