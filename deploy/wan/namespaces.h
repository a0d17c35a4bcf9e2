// SPDX-License-Identifier: Apache-2.0
// Network namespaces, bound to files as `ip netns` does, that do not outlive the process: a child
// that waits for nothing else removes them if the process is killed.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace sekisho::wan {

class Namespaces {
 public:
  // Their files will be /run/netns/PREFIXname.
  Namespaces(const std::string& prefix, const std::vector<std::string>& names);
  ~Namespaces();
  Namespaces(const Namespaces&) = delete;
  Namespaces& operator=(const Namespaces&) = delete;

  // Takes the prefix, which one process at a time may have, and clears away what a former one left.
  bool Begin(std::string& error);

  // Makes namespace number `i` and leaves the process in it.
  bool Make(size_t i, std::string& error);

  // Enters the namespace at `path`, or, if that is "", the one in which the process began.
  bool Enter(const std::string& path, std::string& error);

  const std::string& path(size_t i) const { return paths_[i]; }

 private:
  const std::string prefix_;
  std::vector<std::string> paths_;
  int home_ = -1;
  int lock_ = -1;
  int alive_ = -1;  // the guard reads the other end
  pid_t guard_ = -1;
};

}  // namespace sekisho::wan
