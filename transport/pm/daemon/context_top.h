// SPDX-License-Identifier: Apache-2.0
// What `sekisho pm top` shows of a context: lines of a word, names and values, which
// client/local/pm_top.cc reads.
#pragma once

#include <sys/types.h>

#include <span>

#include "transport/pm/shared_memory.h"

namespace sekisho::pm {

struct Driver {
  pid_t program = 0;
  bool is_program = false;  // it called just now
  bool is_gone = false;
};

// Of the context itself if `first` is 0, and of each known peer from `first` on, a line each.  If
// `out` is too small the last line is "more N": the peer to go on with.
void WriteTop(SharedMemory& memory, const Driver& driver, NodeId first, std::span<char> out);

}  // namespace sekisho::pm
