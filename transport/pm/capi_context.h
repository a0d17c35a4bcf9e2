// SPDX-License-Identifier: Apache-2.0
// What is behind the C interface's pmContext.
#pragma once

#include <pthread.h>
#include <unistd.h>

#include <condition_variable>
#include <memory>
#include <system_error>

#include "transport/pm/buffers.h"
#include "transport/pm/context.h"
#include "transport/pm/fork_mark.h"
#include "transport/pm/lazy_timer.h"
#include "transport/pm/pm.h"
#include "transport/pm/remote_memory.h"

namespace sekisho::pm {

// The errno value that a caller of pm.h gets.
int Errno(const std::error_code& error);

// Remote memory's way to the other nodes.
class ContextPort final : public RemotePort {
 public:
  explicit ContextPort(pmContext& context) : context_(context) {}

  bool Send(NodeId node, Bytes head, Bytes body) override;
  bool IsGone(NodeId node) override;
  void Await(NodeId node, bool awaits) override;
  std::uint32_t Session(NodeId node) override;
  bool MayBeNear(NodeId node) override;
  bool Copy(const NearPlace& from, std::uint64_t secret, MutableBytes to) override;
  std::uint32_t Process() override { return static_cast<std::uint32_t>(getpid()); }
  std::uint64_t Random() override;

 private:
  pmContext& context_;
};

}  // namespace sekisho::pm

struct pmContext {
  ~pmContext() {
    if (descriptor >= 0) close(descriptor);
  }

  sekisho::pm::Context& core() { return *context; }

  // Deals with what arrived and is not for the program; whether a message for it is there.
  bool Look();
  // After every call: what other threads sleep for may have changed.
  void NoteChange();
  // Whether a message of this length would find room behind all that are open.
  std::error_code Room(sekisho::pm::NodeId node, size_t length);

  const sekisho::pm::ForkMark mark;
  sekisho::pm::CallLock lock;
  bool waits = false;  // a thread is in the core's Wait
  // The others in pmWait wait for it.  Apart, since a child of fork must not destroy it.
  std::unique_ptr<std::condition_variable> followed;
  int selecting = 0;    // threads between pmBeforeSelect and pmAfterSelect
  pthread_t selects{};  // the last of them

  std::unique_ptr<sekisho::pm::Context> context;
  std::unique_ptr<bool[]> told_gone;  // the program knows that this node is gone
  int nodes = 0;
  sekisho::pm::Address own;  // as the job file says
  int descriptor = -1;       // epoll over the socket, the timer and the daemon's bell
  sekisho::pm::LazyTimer timer;
  sekisho::pm::ContextPort port{*this};
  sekisho::pm::RemoteMemory remote;

  sekisho::pm::Places<sekisho::pm::SendPlace, sekisho::pm::kSendPlaces> sends;
  int open_sends = 0;
  int sending = -1;  // by pmGetSendBuffer
  sekisho::pm::Places<sekisho::pm::ReceivePlace, sekisho::pm::kReceivePlaces> receives;
  std::array<int, sekisho::pm::kReceivePlaces> queue;  // to be received: a ring
  size_t queue_first = 0, queue_count = 0;
  int to_release = 0;  // could not be, because the job was stopped
  int receiving = -1;  // by pmReceive
};

namespace sekisho::pm {

// One call of pm.h.
class Call {
 public:
  // Of a child of fork, nothing: the lock may be held by a thread that is not here.
  explicit Call(pmContext* context) : context_(*context), is_ours_(!context->mark.is_forked()) {
    if (is_ours_) context_.lock.lock();
  }
  ~Call() {
    if (!is_ours_) return;
    context_.NoteChange();
    context_.lock.unlock();
  }
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  bool is_ours() const { return is_ours_; }

 private:
  pmContext& context_;
  const bool is_ours_;
};

}  // namespace sekisho::pm
