// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/client/porter/exec.h"

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "nxproxy/client/porter/kin.h"
#include "nxproxy/client/porter/porter.h"

namespace sekisho::nxproxy::client {
namespace {

constexpr int64_t kLookMs = 1000;
constexpr int kFarewellMs = 2000;
constexpr int64_t kEndMs = 1500;  // from SIGTERM to SIGKILL

void Say(const std::string& line) { std::fprintf(stderr, "sekisho: %s\n", line.c_str()); }

int ExitCodeOf(const Refusal& refusal) {
  using wire::Code;
  switch (refusal.code) {
    case Code::kUnauthenticated:
    case Code::kTokenInvalid:
    case Code::kTokenExpired:
    case Code::kDenied:
    case Code::kQuota:
    case Code::kNotOwner:
      return kExitRefused;
    default:
      return kExitFailed;
  }
}

void WriteAll(int fd, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(fd, text.data() + done, text.size() - done);
    if (wrote <= 0) {
      return;
    }
    done += static_cast<size_t>(wrote);
  }
}

std::string ReadAll(int fd) {
  std::string text;
  char buffer[1024];
  ssize_t got;
  while ((got = read(fd, buffer, sizeof buffer)) > 0 || (got < 0 && errno == EINTR)) {
    text.append(buffer, got > 0 ? static_cast<size_t>(got) : 0);
    if (text.find('\n') != std::string::npos) {
      break;
    }
  }
  return text;
}

// The shim that another `relay exec`, perhaps another host's, put into this process (preload.cc): our own connections
// are not that one's affair, nor of a stranger who has taken its porter's name.
void LeaveShim() {
  if (void* const leave = dlsym(RTLD_DEFAULT, "nxproxy_preload_leave"); leave != nullptr) {
    reinterpret_cast<void (*)()>(leave)();
  }
}

// The porter's life: until `ended` can be read or is closed, and all endpoints have gone.  Writes to `report`
// "ready PLACE\n" or "exit CODE\n", a line for each refused endpoint, and "staying\n" if somebody needs it still.
// `command`: what runs the command, a pidfd; -1: there is none.
int ServeUntilGone(const Options& options, int ended, int report, int command) {
  std::signal(SIGPIPE, SIG_IGN);
  LeaveShim();
  Loop loop;
  bool is_reported = false;
  int exit_code = 0;
  std::unique_ptr<Porter> porter;
  Porter::Handlers handlers;
  bool is_leaving = false;
  const auto leave = [&] {
    if (is_leaving) {
      return;
    }
    is_leaving = true;
    porter->Leave();
    loop.After(50, [&loop] { loop.Stop(); });  // BYE goes out
  };
  handlers.on_line = [&](const std::string& line) {
    Say(line);
    if (porter->refused_binds() != 0) {
      WriteAll(report, "refused\n");
    }
  };
  handlers.on_refused = [&](const Refusal& refusal) {
    Say((options.plan.ends_unreached ? options.plan.label + " could not reach the ranks at other sites: " : "") +
        ToText(refusal));
    if (!is_reported) {
      is_reported = true;
      exit_code = ExitCodeOf(refusal);
      WriteAll(report, "exit " + std::to_string(exit_code) + "\n");
      loop.Stop();
    }
  };
  handlers.on_unreached = [&](const std::string& why) {
    Say(why);
    if (command >= 0) {
      syscall(SYS_pidfd_send_signal, command, SIGTERM, nullptr, 0);  // it hands it on
      loop.After(kEndMs, [command] { syscall(SYS_pidfd_send_signal, command, SIGKILL, nullptr, 0); });
    }
  };
  handlers.on_ready = [&] {
    is_reported = true;
    WriteAll(report, "ready " + porter->Place() + "\n");
  };
  porter = std::make_unique<Porter>(loop, options.servers, options.plan, handlers);
  bool is_staying = false;
  // Again and again, once the command has ended: a daemon that it left behind may listen later.
  std::function<void()> look = [&] {
    porter->SweepNow();
    if (!porter->has_endpoints() && !HasKin("NXPROXY_PORTER=" + porter->Place())) {
      leave();
      return;
    }
    if (!is_staying) {
      is_staying = true;
      WriteAll(report, "staying\n");
    }
    loop.After(kLookMs, look);
  };
  if (ended >= 0) {
    loop.Watch(ended, EPOLLIN, [&](uint32_t) {
      loop.Forget(ended);
      char has_failed = 0;
      const std::string why = porter->OnCommandEnded();
      if (read(ended, &has_failed, 1) == 1 && !why.empty()) {
        Say(why);
      }
      look();
    });
  } else {
    loop.After(0, look);
  }
  porter->Start();
  loop.Run();
  return exit_code;
}

// What else the caller had open is not the porter's to hold.
void CloseAllBut(int& report, int& ended) {
  const int high[] = {fcntl(report, F_DUPFD, 64), fcntl(ended, F_DUPFD, 64)};
  report = dup2(high[0], 3);
  ended = dup2(high[1], 4);
  fcntl(3, F_SETFD, FD_CLOEXEC);
  fcntl(4, F_SETFD, FD_CLOEXEC);
  syscall(SYS_close_range, 5, ~0u, 0);
}

// A child of init, in a session of its own: the command's wait() never sees it, the terminal's
// signals do not reach it.  SIGTERM is for the command: whose end is its end.
void StartPorter(const Options& options, int report[2], int life[2]) {
  const pid_t command = getpid();
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    if (fork() != 0) {
      _exit(0);
    }
    CloseAllBut(report[1], life[0]);
    // It waits for our report: the number is still its own.
    const int runs_it = static_cast<int>(syscall(SYS_pidfd_open, command, 0));
    prctl(PR_SET_NAME, "nxporter");
    std::signal(SIGTERM, SIG_IGN);
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    if (chdir("/") != 0) {
      _exit(kExitFailed);
    }
    _exit(ServeUntilGone(options, life[0], report[1], runs_it));
  }
  close(report[1]);
  close(life[0]);
  waitpid(child, nullptr, 0);
}

// Beside this program (build folder), or where it is installed.
std::string ShimPath() {
  char buffer[4096];
  const ssize_t length = readlink("/proc/self/exe", buffer, sizeof buffer - 1);
  std::string folder(buffer, length > 0 ? static_cast<size_t>(length) : 0);
  folder.erase(folder.rfind('/') == std::string::npos ? 0 : folder.rfind('/'));
  const std::string name = "/libnxproxy-preload.so";
  if (access((folder + name).c_str(), R_OK) == 0) {
    return folder + name;
  }
  return SEKISHO_LIBDIR + name;
}

void SetEnvironment(const Options& options, const std::string& place) {
  const bool may_be_reversed = place.find(';') != std::string::npos;
  setenv("NXPROXY_PORTER", place.c_str(), 1);
  const char* loaded = getenv("LD_PRELOAD");
  const std::string shim = ShimPath();
  if (loaded == nullptr || *loaded == 0) {
    setenv("LD_PRELOAD", shim.c_str(), 1);
  } else if (std::strstr(loaded, shim.c_str()) == nullptr) {
    setenv("LD_PRELOAD", (shim + ":" + loaded).c_str(), 1);
  }
  if (options.is_advertising) {
    setenv("NXPROXY_ADVERTISE", "1", 1);
  }
  if (options.takes_loopback) {
    setenv("NXPROXY_LOOPBACK", "1", 1);
  }
  // UCX, under MPICH, waits for one connection after the other unless told not to.  Reversed ones need sockets that block.
  if (!may_be_reversed) {
    setenv("UCX_TCP_CONN_NB", "y", 0);
  }
  // Its thread that accepts asks us while it holds the lock that the program's thread waits for: not by spinning, or it
  // takes the processor from all who have the answer.
  setenv("UCX_USE_MT_MUTEX", "y", 0);
}

// A porter that serves this process already, as within another `relay exec`.  An environment that
// came from another host (mpiexec sends its own along) names one that does not answer here; if somebody else
// does, that is said.
bool HasPorter() {
  const char* text = getenv("NXPROXY_PORTER");
  LocalPlace place;
  LocalRequest request;
  LocalReply reply;
  int unused = -1;
  request.verb = LocalVerb::kName;
  if (text == nullptr || !ParsePlace(text, place) || !Ask(place, request, reply, unused)) {
    return false;
  }
  if (reply.answer == LocalAnswer::kRefused) {
    Say(std::string(reply.text) + ": starting another porter");
    return false;
  }
  return true;
}

bool IsPlain(const Options& options) {
  return options.plan.scope == wire::Scope::kJob && options.plan.first_port == 0 &&
         options.plan.ports.empty() && !options.plan.is_encrypted;
}

int RunCommand(const std::vector<std::string>& words) {
  std::vector<char*> arguments;
  for (const std::string& word : words) {
    arguments.push_back(const_cast<char*>(word.c_str()));
  }
  arguments.push_back(nullptr);
  sigset_t ours;
  sigset_t before;
  sigemptyset(&ours);
  for (const int number : {SIGCHLD, SIGTERM, SIGINT, SIGQUIT, SIGHUP, SIGUSR1, SIGUSR2, SIGWINCH, SIGCONT}) {
    sigaddset(&ours, number);
  }
  std::signal(SIGCHLD, SIG_DFL);
  sigprocmask(SIG_BLOCK, &ours, &before);  // before there is a command that could miss one
  const pid_t child = fork();
  if (child == 0) {
    sigprocmask(SIG_SETMASK, &before, nullptr);
    execvp(arguments[0], arguments.data());
    Say(words[0] + ": " + std::strerror(errno));
    _exit(errno == ENOENT ? 127 : kExitFailed);
  }
  if (child < 0) {
    Say(words[0] + ": " + std::strerror(errno));
    return kExitFailed;
  }
  int status = 0;
  while (waitpid(child, &status, WNOHANG) != child) {
    siginfo_t info{};
    const int number = sigwaitinfo(&ours, &info);
    // Those that were sent to us alone: what the terminal sends reaches the command by itself.
    if (number > 0 && number != SIGCHLD && info.si_code <= 0) {
      kill(child, number);
    }
  }
  sigprocmask(SIG_SETMASK, &before, nullptr);
  return WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status);
}

// Until the porter has taken leave of the relay, or says that it stays: an agent that kills what a task leaves
// behind would have the relay wait for it to come back.  All that it has said.
std::string AwaitFarewell(int report) {
  std::string said;
  pollfd readable{report, POLLIN, 0};
  while (said.find("staying\n") == std::string::npos && poll(&readable, 1, kFarewellMs) > 0) {
    char buffer[1024];
    const ssize_t got = read(report, buffer, sizeof buffer);
    if (got <= 0) {
      break;
    }
    said.append(buffer, static_cast<size_t>(got));
  }
  return said;
}

}  // namespace

int Exec(const Options& options) {
  int report[2];
  int life[2];  // open at our end while the command runs
  if (options.command.empty() || pipe2(report, O_CLOEXEC) != 0 || pipe2(life, O_CLOEXEC) != 0) {
    Say("relay exec: expected a command behind --");
    return kExitUsage;
  }
  if (IsPlain(options) && HasPorter()) {
    SetEnvironment(options, getenv("NXPROXY_PORTER"));
    return RunCommand(options.command);
  }
  StartPorter(options, report, life);
  const std::string answer = ReadAll(report[0]);
  if (!answer.starts_with("ready ")) {
    return answer.starts_with("exit ") ? std::atoi(answer.c_str() + 5) : kExitFailed;
  }
  SetEnvironment(options, answer.substr(6, answer.find('\n') - 6));
  const int code = RunCommand(options.command);
  if (code != 0) {
    std::signal(SIGPIPE, SIG_IGN);  // the porter may be dead
    WriteAll(life[1], "!");  // it may know why
  }
  close(life[1]);
  const std::string said = AwaitFarewell(report[0]);
  return code != 0 && said.starts_with("refused") ? kExitRefused : code;
}

int Serve(const Options& options, int pid) {
  int report[2];
  if (pipe2(report, O_CLOEXEC) != 0) {
    return kExitFailed;
  }
  const pid_t child = fork();
  if (child == 0) {
    setsid();
    int ended = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
    CloseAllBut(report[1], ended);
    prctl(PR_SET_NAME, "nxporter");
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(null, 1);
    _exit(ServeUntilGone(options, ended, report[1], -1));
  }
  close(report[1]);
  const std::string answer = ReadAll(report[0]);
  if (!answer.starts_with("ready ")) {
    return answer.starts_with("exit ") ? std::atoi(answer.c_str() + 5) : kExitFailed;
  }
  WriteAll(1, answer.substr(6));
  return 0;
}

}  // namespace sekisho::nxproxy::client
