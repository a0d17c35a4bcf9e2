// SPDX-License-Identifier: Apache-2.0
// The contexts of this host.
#include "transport/pm/daemon/registry.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>

#include "transport/pm/daemon/keeper.h"

namespace sekisho::pm {
namespace {

constexpr std::size_t kContextsMax = 1024;
constexpr std::ptrdiff_t kContextsOfUser = 256;
constexpr int kStartsMax = 1'000'000;  // of the keeper of one context

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

Registry::Context* Registry::Find(const JobKey& key, std::uint16_t number, std::uint16_t node,
                                  uid_t uid) {
  for (const auto& context : contexts_) {
    if (context->key == key && context->number == number && context->node == node &&
        context->uid == uid) {
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

// A keeper for what the context is now.  One that still lives must be ended: the new one waits for
// that.  If it fails, nothing has changed.
int Registry::Start(Context& context) {
  int control[2];
  if (context.starts >= kStartsMax) return EMFILE;
  if (context.head.get() == nullptr) (void)context.head.Map(context.fds.memory);
  if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0) return errno;
  const pid_t pid = fork();
  if (pid < 0) {
    const int error = errno;
    CloseAll(control);
    return error;
  }
  if (pid == 0) {
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    signal(SIGINT, SIG_IGN);
    KeepOnly({context.fds.memory, context.fds.socket, context.fds.keeper_bell,
              context.fds.program_bell, context.program.connection, context.program.pid_fd,
              control[1]});
    Keeper keeper({context.fds, context.program.connection, context.program.pid_fd,
                   context.program.pid, context.uid, control[1], path_.c_str(), context.parked});
    _exit(keeper.Run());
  }
  close(control[1]);
  if (context.control >= 0) close(context.control);
  context.control = control[0];
  context.keeper = pid;
  ++context.starts;
  return 0;
}

// What is left of it is to deliver what its program said last, and then to close.
bool Registry::HasLostItsProgram(const Context& context) {
  const Program& program = context.program;
  std::array<pollfd, 2> ends = {pollfd{program.pid_fd, POLLIN, 0},
                                pollfd{program.connection, 0, 0}};
  return !context.parked && (program.pid_fd < 0 || poll(ends.data(), ends.size(), 0) > 0);
}

// One of this name, whatever its key.
bool Registry::IsEnding(const Config& config, uid_t uid) {
  return std::any_of(contexts_.begin(), contexts_.end(), [&](const auto& context) {
    return context->number == config.context && context->node == config.node &&
           context->uid == uid && HasLostItsProgram(*context);
  });
}

void Registry::Free(Context& context) {
  ForgetOffers(context);
  Forget(context.program);
  std::array<int, 5> fds = {context.fds.memory, context.fds.socket, context.fds.keeper_bell,
                            context.fds.program_bell, context.control};
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
    const int error = again ? Start(context) : 0;
    if (again && error == 0) continue;
    if (!WIFEXITED(status) || WEXITSTATUS(status) != kKeeperDone) {
      // Its program, if that lives, goes on alone, and offers it to us again.
      fprintf(stderr, "sekisho-pmd: context given up number=%u node=%u status=%#x errno=%d\n",
              context.number, context.node, status, error);
    }
    Free(context);
    contexts_.erase(at);
  }
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
        error = List(client, ask, received);
        answered = error == 0;
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
