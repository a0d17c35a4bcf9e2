// SPDX-License-Identifier: Apache-2.0
// How a context comes to be, and to another program.
#include <errno.h>
#include <signal.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <utility>

#include "transport/pm/daemon/process_state.h"
#include "transport/pm/daemon/registry.h"
#include "transport/pm/job_file.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

std::uint64_t Incarnation() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

}  // namespace

// What was saved goes on as it was: not if the job file says something else by now.
bool Registry::Authenticates(const Context& context, const Config& as) {
  SharedMemory memory;
  return !memory.Map(dup(context.fds.memory)) && memory.config().payload_tag == as.payload_tag;
}

// A client as a program.  0 or errno.
int Registry::Watch(const Client& client, Program& program) {
  program = {client.pid, OpenPidFd(client.pid), dup(client.fd)};
  if (program.pid_fd >= 0 && program.connection >= 0) return 0;
  const int error = errno;
  Forget(program);
  return error;
}

void Registry::Forget(Program& program) {
  for (const int fd : {program.pid_fd, program.connection}) {
    if (fd >= 0) close(fd);
  }
  program = {};
}

// With memory and a socket, but nobody who drives it yet.
int Registry::Make(const Config& config, const Address& own, uid_t uid,
                   std::unique_ptr<Context>& made) {
  Wire wire;
  SharedMemory memory;
  if (const auto error = wire.Open(own, {})) return Errno(error);
  if (const auto error = memory.Make(config, wire.own_address(), Wire::Now())) return Errno(error);
  made = std::make_unique<Context>();
  made->number = config.context;
  made->node = config.node;
  made->key = config.key;
  made->uid = uid;
  made->fds = {dup(memory.fd()), dup(wire.fd()), eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
               eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  return 0;
}

int Registry::Open(const Client& client, const AskMessage& ask, const Received& received) {
  if (received.fd_count != 1) return EINVAL;
  if (!MayHaveMore(client.uid)) return EMFILE;
  Config config = ask.config;
  if (const auto error = ReadKeyFile(received.fds[0], client.uid, config.key)) return Errno(error);
  if (Context* known = Find(config.key, config.context, config.node, client.uid)) {
    if (known->parked) return Authenticates(*known, config) ? Attach(*known, client) : EINVAL;
    return HasLostItsProgram(*known) ? EINPROGRESS : EADDRINUSE;
  }
  config.incarnation = Incarnation();
  if (getrandom(&config.seed, sizeof config.seed, 0) != sizeof config.seed) return EIO;
  if (Endpoint::MemoryNeeded(config) == 0) return EINVAL;

  std::unique_ptr<Context> context;
  if (const int error = Make(config, ask.own, client.uid, context)) {
    // A job before, under another key, whose last words are still on their way.
    return error == EADDRINUSE && IsEnding(config, client.uid) ? EINPROGRESS : error;
  }
  int error = Watch(client, context->program);
  if (error == 0) error = Start(*context);
  if (error != 0) {
    Free(*context);
    return error;
  }
  const std::array<int, ContextFds::kCount> fds = {context->fds.memory, context->fds.socket,
                                                   context->fds.keeper_bell,
                                                   context->fds.program_bell};
  Reply(client.fd, 0, "", fds);
  contexts_.push_back(std::move(context));
  return 0;
}

// Another program for a context, or the first for one that waits for it.  Its keeper ends when
// there is another: where none can be started, all is as it was.
int Registry::Attach(Context& context, const Client& client) {
  Program other;
  if (const int error = Watch(client, other)) return error;
  std::swap(context.program, other);  // the other is the one before, now
  const bool parked = std::exchange(context.parked, false);
  const int control = std::exchange(context.control, -1);
  const pid_t keeper = context.keeper;
  if (const int error = Start(context)) {
    std::swap(context.program, other);
    context.parked = parked;
    context.control = control;
    Forget(other);
    return error;
  }
  kill(keeper, SIGKILL);
  while (waitpid(keeper, nullptr, 0) < 0 && errno == EINTR) {
  }
  close(control);
  Forget(other);
  const std::array<int, ContextFds::kCount> fds = {
      context.fds.memory, context.fds.socket, context.fds.keeper_bell, context.fds.program_bell};
  Reply(client.fd, 0, "", fds);
  return 0;
}

// Another program for a context that has one.  It holds the memory, which only that one can have
// given to it.
int Registry::Move(const Client& client, const AskMessage& ask, const Received& received) {
  if (received.fd_count != 1) return EINVAL;
  Context* const context = FindByMemory(ask, received.fds[0]);
  if (context == nullptr) return ENOENT;
  if (const int error = Attach(*context, client)) return error;
  ForgetOffers(*context);
  return 0;
}

// The one that is named, if this is its memory.
Registry::Context* Registry::FindByMemory(const AskMessage& ask, int memory) {
  for (const auto& context : contexts_) {
    if (context->number != ask.config.context || context->node != ask.config.node) continue;
    if (IsMemoryOf(*context, memory)) return context.get();
  }
  return nullptr;
}

bool Registry::IsMemoryOf(const Context& context, int memory) {
  struct stat theirs, ours;
  return fstat(memory, &theirs) == 0 && fstat(context.fds.memory, &ours) == 0 &&
         ours.st_dev == theirs.st_dev && ours.st_ino == theirs.st_ino;
}

// Into the context that is there and stopped, else into a new one without a program.
int Registry::Restore(const Client& client, const AskMessage& ask, const Received& received) {
  JobKey key;
  if (received.fd_count != 2) return EINVAL;
  if (const auto error = ReadKeyFile(received.fds[0], client.uid, key)) return Errno(error);
  alignas(SharedHead) std::array<std::uint8_t, 4096> head;
  struct stat status;
  Config config;
  // A file: anything else may let who reads it wait for ever.
  if (fstat(received.fds[1], &status) != 0 || !S_ISREG(status.st_mode) ||
      pread(received.fds[1], head.data(), head.size(), 0) != static_cast<ssize_t>(head.size())) {
    return EINVAL;
  }
  const auto& saved = *reinterpret_cast<const SharedHead*>(head.data());
  if (CheckHead(saved, static_cast<std::size_t>(status.st_size), config) || config.key != key) {
    return EINVAL;
  }
  Context* context = Find(config.key, config.context, config.node, client.uid);
  if (context == nullptr) {
    if (!MayHaveMore(client.uid)) return EMFILE;
    std::unique_ptr<Context> made;
    const Address own = ask.own.port != 0 ? ask.own : saved.own;
    if (const int error = Make(config, own, client.uid, made)) return error;
    made->parked = true;
    if (const int error = Start(*made)) {
      Free(*made);
      return error;
    }
    context = contexts_.emplace_back(std::move(made)).get();
  }
  const std::array<int, 2> fds = {client.fd, received.fds[1]};
  return SendMessage(context->control, BytesOf(ask), fds, MSG_DONTWAIT);
}

// From a program whose daemon was killed, or from a keeper that lost it.
int Registry::Adopt(const Client& client, const AskMessage& ask, Received& received) {
  const bool by_keeper = ask.program >= 0 && client.uid == geteuid();
  const uid_t uid = by_keeper && ask.owner >= 0 ? static_cast<uid_t>(ask.owner) : client.uid;
  if (received.fd_count != ContextFds::kCount + (by_keeper && received.fds[4] >= 0 ? 1u : 0u)) {
    return EINVAL;
  }
  SharedMemory memory;
  Wire wire;
  if (const auto error = memory.Map(dup(received.fds[0]))) return Errno(error);
  if (const auto error = wire.Adopt(dup(received.fds[1]))) return Errno(error);
  const Config& config = memory.config();
  if (const Context* known = Find(config.key, config.context, config.node, uid)) {
    // The keeper asks again, since it had no patience: another waits until it ends.
    if (!by_keeper || !IsMemoryOf(*known, received.fds[0])) return EEXIST;
    Reply(client.fd, 0, "", {});
    return 0;
  }
  if (!MayHaveMore(uid)) return EMFILE;
  auto context = std::make_unique<Context>();
  context->number = config.context;
  context->node = config.node;
  context->key = config.key;
  context->uid = uid;
  Program& program = context->program;
  program.pid = by_keeper ? static_cast<pid_t>(ask.program) : client.pid;
  program.pid_fd = program.pid > 0 ? OpenPidFd(program.pid) : -1;
  if (program.pid > 0 && program.pid_fd < 0 && errno != ESRCH) return errno;  // it may live
  program.connection = by_keeper ? received.fds[4] : dup(client.fd);
  context->fds = {received.fds[0], received.fds[1], received.fds[2], received.fds[3]};
  received.fds.fill(-1);
  if (const int error = Start(*context)) {
    Free(*context);
    return error;
  }
  Reply(client.fd, 0, "", {});
  contexts_.push_back(std::move(context));
  return 0;
}

}  // namespace sekisho::pm
