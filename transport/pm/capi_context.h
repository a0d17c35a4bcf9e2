// SPDX-License-Identifier: Apache-2.0
// What is behind the C interface's pmContext.
#pragma once

#include <unistd.h>

#include <memory>
#include <system_error>

#include "transport/pm/context.h"
#include "transport/pm/lazy_timer.h"
#include "transport/pm/pm.h"
#include "transport/pm/remote_memory.h"

namespace sekisho::pm {

// The errno value that a caller of pm.h gets.
int Errno(const std::error_code& error);

// Remote memory's way to the other nodes.
class ContextPort final : public RemotePort {
 public:
  ContextPort(std::unique_ptr<Context>& context, const Address& own)
      : context_(context), own_(own) {}

  bool Send(NodeId node, Bytes head, Bytes body) override;
  bool IsGone(NodeId node) override;
  std::uint32_t Session(NodeId node) override;
  bool MayBeNear(NodeId node) override;
  bool Copy(const NearPlace& from, std::uint64_t secret, MutableBytes to) override;
  std::uint32_t Process() override { return static_cast<std::uint32_t>(getpid()); }
  std::uint64_t Random() override;

 private:
  std::unique_ptr<Context>& context_;
  const Address& own_;
};

}  // namespace sekisho::pm

struct pmContext {
  ~pmContext() {
    if (descriptor >= 0) close(descriptor);
  }

  sekisho::pm::Context& core() { return *context; }

  // Deals with what arrived and is not for the program; whether a message for it is there.
  bool Look();

  std::unique_ptr<sekisho::pm::Context> context;
  std::unique_ptr<bool[]> told_gone;  // the program knows that this node is gone
  int nodes = 0;
  sekisho::pm::Address own;  // as the job file says
  int descriptor = -1;       // epoll over the socket, the timer and the daemon's bell
  sekisho::pm::LazyTimer timer;
  sekisho::pm::ContextPort port{context, own};
  sekisho::pm::RemoteMemory remote;
  bool sending = false;
  sekisho::pm::NodeId send_to = 0;
  size_t send_length = 0;
  sekisho::pm::Message next;  // taken from its ring
  bool has_next = false;      // the program gets it with its next pmReceive
  bool release_next = false;  // nobody needs it any more
  bool receiving = false;
  sekisho::pm::Message message;
  alignas(64) unsigned char send_buffer[PM_MTU];
  alignas(64) unsigned char wrapped[PM_MTU];  // of a message that crosses the end of its ring
};
