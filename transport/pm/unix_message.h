// SPDX-License-Identifier: Apache-2.0
// What programs, the command line and sekisho-pmd say to each other on its Unix socket: one
// message each way, with descriptors.  docs/protocol/9-pm.md, "Two drivers".
#pragma once

#include <sys/socket.h>

#include <array>
#include <span>
#include <system_error>

#include "transport/pm/types.h"

namespace sekisho::pm {

enum class Ask : std::uint32_t {
  kOpen = 1,  // a new context; descriptor: the job's key file; EINPROGRESS: ask again, one of this
              // name has lost its program and will soon be closed
  kAdopt,     // a context that another daemon made; descriptors as in the answer to kOpen
  kList,      // answer: text; the last line is "more N" if not all had room: ask for these.
              // Descriptor, or none: a key file, then only contexts that have its key
  kTop,       // of one context, as are the following; descriptor: the key file; answer as to kList
  kMetrics,   // likewise, for Prometheus
  kStop,      // the whole job; answered when nothing of any node is under way
  kGo,        // the whole job
  kSave,      // of a stopped context; second descriptor: the file
  kRestore,
  kDrop,    // of a stopped job, its program dead: forgotten, and nobody is told
  kTrace,   // answer: a descriptor, the context's memory
  kMove,    // a context has another program now; descriptor: the context's memory, which proves it
  kNear,    // a ring to another context of the same user and job; descriptor: the own one's memory;
            // answer: a descriptor, see near_links.h
  kAttend,  // sekisho-pmd to keepers: their job is about to stop; no answer
};

struct AskMessage {
  static constexpr std::uint32_t kMagic = 0x33445350;

  std::uint32_t magic = kMagic;
  Ask ask = Ask::kList;
  Config config;  // kOpen: without key, seed and incarnation; else context and node name the one
  Address own;
  NodeId peer = 0;          // kNear: of the other one
  std::uint16_t first = 0;  // kList, kTop: the context or the peer to begin with
  std::uint32_t timeout_ms = 0;
  std::int32_t owner = -1;    // kAdopt by a keeper: uid of the context's owner
  std::int64_t program = -1;  // kAdopt by a keeper: pid of the program, 0 if it is dead
};

struct AnswerMessage {
  std::int32_t error = 0;  // errno
  std::uint32_t length = 0;
  std::array<char, 4096> text{};
};

// Of a context, in this order.
struct ContextFds {
  static constexpr std::size_t kCount = 4;
  int memory = -1;
  int socket = -1;
  int keeper_bell = -1;   // eventfd: the program rings
  int program_bell = -1;  // eventfd: the keeper rings
};

inline constexpr std::size_t kFdsMax = 5;

struct Received {
  std::size_t size = 0;  // 0: the other side is gone, or nothing came
  std::array<int, kFdsMax> fds{-1, -1, -1, -1, -1};
  std::size_t fd_count = 0;
};

// 0 or errno.  Never blocks longer than the socket is set to.
int SendMessage(int socket, std::span<const std::uint8_t> text, std::span<const int> fds,
                int flags = 0);  // of sendmsg
// Descriptors that come are close-on-exec and the caller's.
// `flags` are of recvmsg.
Received ReceiveMessage(int socket, std::span<std::uint8_t> text, int flags = 0);

template <typename T>
std::span<const std::uint8_t> BytesOf(const T& value) {
  return {reinterpret_cast<const std::uint8_t*>(&value), sizeof value};
}
template <typename T>
std::span<std::uint8_t> RoomFor(T& value) {
  return {reinterpret_cast<std::uint8_t*>(&value), sizeof value};
}

// $PM_DAEMON, else $XDG_RUNTIME_DIR/sekisho-pmd, else /run/sekisho-pmd/pmd; false if too long.
bool DaemonPath(const char* given, std::array<char, 108>& path);
// A connected socket, or -1 with errno.  One that does not `wait` blocks nowhere, not even if the
// daemon is stopped.
int ConnectDaemon(const char* path, bool wait = true);
// Asks and waits for the answer, at most `timeout_ms`.  0 or errno.
int AskDaemon(int socket, const AskMessage& ask, std::span<const int> fds, int timeout_ms,
              AnswerMessage& answer, Received& received);

}  // namespace sekisho::pm
