// SPDX-License-Identifier: Apache-2.0
// Starts a program as an account: own session, own user and groups, a clean environment, and nothing
// inherited but standard error and one end of each of two socket pairs.
#pragma once

#include <string>
#include <vector>

#include <sys/types.h>

#include "common/status.h"

namespace sekisho::gatekeeper {

struct Account {
  std::string name;
  uid_t uid = 0;
  gid_t gid = 0;
  std::vector<gid_t> groups;
  std::string home;
};

// Refused: no such account, root's, or (when this process is not root) another than our own.
absl::StatusOr<Account> FindAccount(const std::string& name);

// PARENT/NAME, mode 0700, owned by the account; made if it is not there.  Refused if it is anything else
// than such a directory.
absl::StatusOr<std::string> AccountDirectory(const std::string& parent, const Account& account);

struct Child {
  pid_t pid = -1;
  int control_fd = -1;  // our ends of the pairs; the child's are its descriptors 3 and 4
  int calls_fd = -1;
  int pid_fd = -1;      // readable when the child has ended
};

// argv[0] is the program's path.  The environment is PATH, HOME, USER, LOGNAME and what of ours begins
// with SEKISHO_, GRPC_ or names a sanitizer's options.
absl::StatusOr<Child> Launch(const Account& account, const std::vector<std::string>& argv);

}  // namespace sekisho::gatekeeper
