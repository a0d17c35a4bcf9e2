// SPDX-License-Identifier: Apache-2.0
// The contexts of this host.
#include "transport/pm/daemon/registry.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/daemon/keeper.h"
#include "transport/pm/daemon/process_state.h"
#include "transport/pm/job_file.h"

namespace sekisho::pm {
namespace {

constexpr std::size_t kContextsMax = 1024;
constexpr std::ptrdiff_t kContextsOfUser = 256;
constexpr int kStartsMax = 1'000'000;  // of the keeper of one context

int Errno(const std::error_code& error) {
  if (!error) return 0;
  return error.category() == std::generic_category() ? error.value() : EINVAL;
}

void CloseAll(std::span<int> fds) {
  for (int& fd : fds) {
    if (fd >= 0) close(fd);
    fd = -1;
  }
}

std::uint64_t Incarnation() {
  timespec now;
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<std::uint64_t>(now.tv_sec) * kSecond + static_cast<std::uint64_t>(now.tv_nsec);
}

// Everything but these, standard error, and what comes below it.
void KeepOnly(std::vector<int> fds) {
  std::sort(fds.begin(), fds.end());
  unsigned next = 3;
  for (const int fd : fds) {
    if (fd < 3) continue;
    const auto keep = static_cast<unsigned>(fd);
    if (keep > next) (void)close_range(next, keep - 1, 0);
    next = std::max(next, keep + 1);
  }
  (void)close_range(next, ~0u, 0);
}

}  // namespace

void Reply(int client, int error, const std::string& text, std::span<const int> fds) {
  AnswerMessage answer;
  answer.error = error;
  answer.length = static_cast<std::uint32_t>(std::min(text.size(), answer.text.size() - 1));
  memcpy(answer.text.data(), text.data(), answer.length);
  (void)SendMessage(client, BytesOf(answer), fds);
}

Registry::~Registry() {
  for (const auto& context : contexts_) Free(*context);
}

Registry::Context* Registry::Find(std::uint16_t number, std::uint16_t node, uid_t uid) {
  for (const auto& context : contexts_) {
    if (context->number == number && context->node == node && context->uid == uid) {
      return context.get();
    }
  }
  return nullptr;
}

bool Registry::MayHaveMore(uid_t uid) const {
  const auto own = std::count_if(contexts_.begin(), contexts_.end(),
                                 [uid](const auto& context) { return context->uid == uid; });
  return contexts_.size() < kContextsMax && own < kContextsOfUser;
}

int Registry::Start(Context& context) {
  int control[2];
  if (++context.starts > kStartsMax) return EMFILE;
  if (context.head.get() == nullptr) (void)context.head.Map(context.fds.memory);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) return errno;
  const pid_t pid = fork();
  if (pid < 0) {
    CloseAll(control);
    return EAGAIN;
  }
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGINT, SIG_IGN);
    KeepOnly({context.fds.memory, context.fds.socket, context.fds.keeper_bell,
              context.fds.program_bell, context.connection, context.pid_fd, control[1]});
    Keeper keeper({context.fds, context.connection, context.pid_fd, context.program, control[1],
                   path_.c_str(), context.parked});
    _exit(keeper.Run());
  }
  close(control[1]);
  if (context.control >= 0) close(context.control);
  context.control = control[0];
  context.keeper = pid;
  return 0;
}

// What is left of it is to deliver what its program said last, and then to close.
bool Registry::HasLostItsProgram(const Context& context) {
  std::array<pollfd, 2> ends = {pollfd{context.pid_fd, POLLIN, 0},
                                pollfd{context.connection, 0, 0}};
  return !context.parked && (context.pid_fd < 0 || poll(ends.data(), ends.size(), 0) > 0);
}

void Registry::Free(Context& context) {
  ForgetOffers(context);
  std::array<int, 7> fds = {context.fds.memory,       context.fds.socket, context.fds.keeper_bell,
                            context.fds.program_bell, context.connection, context.pid_fd,
                            context.control};
  CloseAll(fds);
}

void Registry::Reap() {
  int status;
  for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;) {
    const auto at = std::find_if(contexts_.begin(), contexts_.end(),
                                 [pid](const auto& context) { return context->keeper == pid; });
    if (at == contexts_.end()) continue;
    Context& context = **at;
    // Killed from outside: another takes its place.  Left or crashed: over.
    const bool again = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
    if (again && Start(context) == 0) continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kKeeperDone) {
      fprintf(stderr, "sekisho-pmd: context given up number=%u node=%u status=%#x\n",
              context.number, context.node, status);
    }
    Free(context);
    contexts_.erase(at);
  }
}

// What was saved goes on as it was: not if the job file says something else by now.
bool Registry::Authenticates(const Context& context, const Config& as) {
  SharedMemory memory;
  return !memory.Map(dup(context.fds.memory)) && memory.config().payload_tag == as.payload_tag;
}

int Registry::Open(const Client& client, const AskMessage& ask, const Received& received) {
  if (received.fd_count != 1) return EINVAL;
  if (!MayHaveMore(client.uid)) return EMFILE;
  Config config = ask.config;
  if (const auto error = ReadKeyFile(received.fds[0], client.uid, config.key)) return Errno(error);
  if (Context* known = Find(config.context, config.node, client.uid)) {
    if (known->parked && known->key == config.key) {
      return Authenticates(*known, config) ? Attach(*known, client) : EINVAL;
    }
    return HasLostItsProgram(*known) ? EINPROGRESS : EADDRINUSE;
  }
  config.incarnation = Incarnation();
  if (getrandom(&config.seed, sizeof config.seed, 0) != sizeof config.seed) return EIO;
  if (Endpoint::MemoryNeeded(config) == 0) return EINVAL;

  auto context = std::make_unique<Context>();
  context->number = config.context;
  context->node = config.node;
  context->key = config.key;
  context->uid = client.uid;
  Wire wire;
  SharedMemory memory;
  if (const auto error = wire.Open(ask.own, {})) return Errno(error);
  if (const auto error = memory.Make(config, wire.own_address(), Wire::Now())) return Errno(error);
  context->fds = {dup(memory.fd()), dup(wire.fd()), eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                  eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
  context->connection = dup(client.fd);
  context->pid_fd = OpenPidFd(client.pid);
  context->program = client.pid;
  const int error = context->pid_fd < 0 ? ESRCH : Start(*context);
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

// A program for a context that waits for one.
int Registry::Attach(Context& context, const Client& client) {
  const int pid_fd = OpenPidFd(client.pid);
  if (pid_fd < 0) return ESRCH;
  const pid_t old = context.keeper;
  context.pid_fd = pid_fd;
  context.connection = dup(client.fd);
  context.program = client.pid;
  context.parked = false;
  kill(old, SIGKILL);
  while (waitpid(old, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (const int error = Start(context)) return error;
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
  ForgetOffers(*context);
  std::array<int, 2> old = {context->pid_fd, context->connection};
  const int error = Attach(*context, client);
  if (error != ESRCH) CloseAll(old);
  return error;
}

// The one that is named, if this is its memory.
Registry::Context* Registry::FindByMemory(const AskMessage& ask, int memory) {
  struct stat theirs, ours;
  if (fstat(memory, &theirs) != 0) return nullptr;
  for (const auto& context : contexts_) {
    if (context->number != ask.config.context || context->node != ask.config.node) continue;
    if (fstat(context->fds.memory, &ours) == 0 && ours.st_dev == theirs.st_dev &&
        ours.st_ino == theirs.st_ino) {
      return context.get();
    }
  }
  return nullptr;
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
  Context* context = Find(config.context, config.node, client.uid);
  if (context == nullptr) {
    if (!MayHaveMore(client.uid)) return EMFILE;
    auto made = std::make_unique<Context>();
    Wire wire;
    SharedMemory memory;
    const Address own = ask.own.port != 0 ? ask.own : saved.own;
    if (const auto error = wire.Open(own, {})) return Errno(error);
    if (const auto error = memory.Make(config, wire.own_address(), Wire::Now())) {
      return Errno(error);
    }
    made->number = config.context;
    made->node = config.node;
    made->key = key;
    made->uid = client.uid;
    made->parked = true;
    made->fds = {dup(memory.fd()), dup(wire.fd()), eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC),
                 eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)};
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
  if (received.fd_count != ContextFds::kCount + (by_keeper && received.fds[4] >= 0 ? 1u : 0u)) {
    return EINVAL;
  }
  SharedMemory memory;
  Wire wire;
  if (const auto error = memory.Map(dup(received.fds[0]))) return Errno(error);
  if (const auto error = wire.Adopt(dup(received.fds[1]))) return Errno(error);
  const Config& config = memory.config();
  if (Find(config.context, config.node, client.uid) != nullptr) return EEXIST;
  if (!MayHaveMore(client.uid)) return EMFILE;
  auto context = std::make_unique<Context>();
  context->number = config.context;
  context->node = config.node;
  context->key = config.key;
  context->uid = client.uid;
  context->program = by_keeper ? static_cast<pid_t>(ask.program) : client.pid;
  context->pid_fd = context->program > 0 ? OpenPidFd(context->program) : -1;
  context->connection = by_keeper ? received.fds[4] : dup(client.fd);
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

// The context that is meant, if the client has its key.
int Registry::Named(const Client& client, const AskMessage& ask, const Received& received,
                    Context*& context) {
  JobKey key;
  if (received.fd_count == 0) return EINVAL;
  if (const auto error = ReadKeyFile(received.fds[0], client.uid, key)) return Errno(error);
  context = Find(ask.config.context, ask.config.node, client.uid);
  return context == nullptr || key != context->key ? ENOENT : 0;
}

// Who has user and key of a program may see what it sees.
int Registry::Trace(const Client& client, const AskMessage& ask, const Received& received) {
  Context* context = nullptr;
  if (const int error = Named(client, ask, received, context)) return error;
  Reply(client.fd, 0, "", std::span(&context->fds.memory, 1));
  return 0;
}

bool Registry::AreOfOneJob(const Context& a, const Context& b) {
  return a.number == b.number && a.uid == b.uid && a.key == b.key;
}

// Their programs begin nothing new, or go on.
void Registry::SayStopIsNear(const Context& asked, bool is_near) {
  const Nanos now = Wire::Now();
  for (const auto& context : contexts_) {
    if (!AreOfOneJob(*context, asked) || context->head.get() == nullptr) continue;
    auto& stop = context->head.get()->stop_is_near;
    // Who asks again and again holds nobody up for longer.
    if (!is_near || !IsNear(stop.load(), now)) stop.store(is_near ? now + kStopIsNear : 0);
  }
}

// All of a job that are on this host are about to hear of it.
void Registry::Attend(const Context& asked) {
  AskMessage ask;
  ask.ask = Ask::kAttend;
  for (const auto& context : contexts_) {
    if (context.get() != &asked && AreOfOneJob(*context, asked) && context->control >= 0) {
      (void)SendMessage(context->control, BytesOf(ask), {}, MSG_DONTWAIT);
    }
  }
}

// The keeper answers the client itself.
int Registry::Forward(const Client& client, const AskMessage& ask, const Received& received) {
  const std::array<int, 2> fds = {client.fd, received.fds[1]};
  for (;;) {
    Context* context = nullptr;
    if (const int error = Named(client, ask, received, context)) return error;
    const bool stops = ask.ask == Ask::kStop;
    if (stops || ask.ask == Ask::kGo) SayStopIsNear(*context, stops);
    const int error =
        SendMessage(context->control, BytesOf(ask),
                    std::span(fds).first(received.fd_count > 1 ? 2u : 1u), MSG_DONTWAIT);
    if (stops && error == 0) Attend(*context);
    if (stops && error != 0) SayStopIsNear(*context, false);
    if (error != EPIPE) return error;
    // The keeper is ending: either the context is over, or another takes its place.
    siginfo_t ended;
    while (waitid(P_PID, static_cast<id_t>(context->keeper), &ended, WEXITED | WNOWAIT) != 0) {
      if (errno != EINTR) return error;
    }
    Reap();
  }
}

std::string Registry::List(uid_t uid, std::size_t first) const {
  constexpr std::size_t kRoom = sizeof(AnswerMessage::text) - 200;  // of a line, and of the last
  std::string text;
  for (std::size_t i = first; i < contexts_.size(); ++i) {
    const Context& context = *contexts_[i];
    if (context.uid != uid && uid != 0) continue;
    if (text.size() > kRoom) return text + "more " + std::to_string(i) + "\n";
    text += "context " + std::to_string(context.number) + " node " + std::to_string(context.node) +
            " program " + std::to_string(context.program) + " keeper " +
            std::to_string(context.keeper) + " starts " + std::to_string(context.starts) +
            " parked " + std::to_string(context.parked) + "\n";
  }
  return text;
}

void Registry::OnMessage(const Client& client, const AskMessage& ask, Received& received) {
  int error = EINVAL;
  bool answered = false;
  if (ask.magic == AskMessage::kMagic) {
    switch (ask.ask) {
      case Ask::kOpen:
        error = Open(client, ask, received);
        answered = error == 0;
        break;
      case Ask::kAdopt:
        error = Adopt(client, ask, received);
        answered = error == 0;
        break;
      case Ask::kList:
        Reply(client.fd, 0, List(client.uid, ask.first), {});
        answered = true;
        break;
      case Ask::kRestore:
        error = Restore(client, ask, received);
        answered = error == 0;
        break;
      case Ask::kTrace:
        error = Trace(client, ask, received);
        answered = error == 0;
        break;
      case Ask::kMove:
        error = Move(client, ask, received);
        answered = error == 0;
        break;
      case Ask::kNear:
        error = Near(client, ask, received);
        answered = error == 0;
        break;
      case Ask::kTop:
      case Ask::kMetrics:
      case Ask::kStop:
      case Ask::kGo:
      case Ask::kSave:
      case Ask::kDrop:
        error = Forward(client, ask, received);
        answered = error == 0;
        break;
      default:
        break;
    }
  }
  if (!answered) Reply(client.fd, error, "", {});
  CloseAll(received.fds);
  close(client.fd);
}

}  // namespace sekisho::pm
