// SPDX-License-Identifier: Apache-2.0
// Whether another process runs, is stopped, or is dead.  Linux.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace sekisho::pm {

struct ProcessState {
  bool stopped = false;    // every thread of it
  std::uint64_t runs = 0;  // grows whenever one of them ran

  bool operator==(const ProcessState&) const = default;
};

// Not stopped if nothing can be learned.
ProcessState ReadProcessState(pid_t pid);

// What all its threads have used so far; 0 if nothing can be learned.
std::int64_t ProcessorTime(pid_t pid);
// Whether its first thread runs, or waits for a processor.
bool IsRunnable(pid_t pid);

int OpenPidFd(pid_t pid);
bool IsReadable(int fd);  // also: closed by the other side; of a pidfd: the process is dead

}  // namespace sekisho::pm
