// SPDX-License-Identifier: Apache-2.0
#include "agent/task/start.h"

#include <fcntl.h>
#include <grp.h>
#include <linux/keyctl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>

#include "common/utf8.h"

namespace sekisho::agent::task {
namespace {

constexpr rlim_t kOpenFiles = 1024;  // select(2) breaks beyond; whoever needs more may raise it

Failure Fail(int code, std::string what) {
  what += ": ";
  what += std::strerror(errno);
  return {code, std::move(what)};
}

Failure SetLimits(const Spec& spec) {
  const auto set = [](auto resource, rlim_t soft, rlim_t hard) {
    rlimit limit{soft, hard};
    rlimit now{};
    if (getrlimit(resource, &now) == 0) {
      limit.rlim_max = std::min(limit.rlim_max, now.rlim_max);
      limit.rlim_cur = std::min(limit.rlim_cur, limit.rlim_max);
    }
    return setrlimit(resource, &limit) == 0;
  };
  bool ok = set(RLIMIT_NOFILE, kOpenFiles, RLIM_INFINITY);
  if (spec.cpu_limit_s > 0) {
    const auto seconds = static_cast<rlim_t>(spec.cpu_limit_s);
    ok = ok && set(RLIMIT_CPU, seconds, seconds + static_cast<rlim_t>(spec.grace_ms / 1000 + 1));
  }
  if (spec.memory_limit_mb > 0) {
    const auto bytes = static_cast<rlim_t>(spec.memory_limit_mb) << 20;
    ok = ok && set(RLIMIT_DATA, bytes, bytes);
  }
  if (spec.process_limit > 0) {
    const auto most = static_cast<rlim_t>(spec.process_limit);
    ok = ok && set(RLIMIT_NPROC, most, most);
  }
  return ok ? Failure{} : Fail(kNoResources, "cannot set the task's resource limits");
}

Failure BecomeAccount(const Spec& spec) {
  if (geteuid() != 0) {
    if (spec.uid != geteuid()) {
      return {kInvalidUserName,
              "the agent does not run as root and cannot start a task of account " + spec.account};
    }
    return {};
  }
  if (spec.uid == 0) {
    return {kInvalidUserName, "tasks never run as root: account " + spec.account};
  }
  if (setgroups(spec.groups.size(), spec.groups.data()) != 0 ||
      setresgid(spec.gid, spec.gid, spec.gid) != 0 ||
      setresuid(spec.uid, spec.uid, spec.uid) != 0 || setuid(0) == 0) {
    return Fail(kInvalidUserName, "cannot become account " + spec.account);
  }
  return {};
}

Failure OpenInput(const Spec& spec, int given) {
  const char* path = spec.stdin_path.empty() ? "/dev/null" : spec.stdin_path.c_str();
  const int fd = given >= 0 ? given : open(path, O_RDONLY | O_NOCTTY | O_CLOEXEC);
  if (fd < 0 || dup2(fd, 0) != 0) {
    return Fail(kStdinNotFound, std::string("cannot read standard input from ") + path);
  }
  return {};
}

// A check must change nothing: it neither makes nor empties a file.
int OpenForOutput(const char* path, const Spec& spec) {
  if (!spec.check_only) {
    const int emptied = spec.append_output ? 0 : O_TRUNC;
    return open(path, O_WRONLY | O_CREAT | O_APPEND | O_NOCTTY | O_CLOEXEC | emptied, 0666);
  }
  const int fd = open(path, O_WRONLY | O_APPEND | O_NOCTTY | O_CLOEXEC | O_NONBLOCK);
  if (fd >= 0 || errno == ENXIO) {  // a FIFO that nobody reads yet
    return fd >= 0 ? fd : open("/dev/null", O_WRONLY | O_CLOEXEC);
  }
  const std::string text = path;
  const size_t slash = text.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : text.substr(0, slash + 1);
  return errno == ENOENT && access(folder.c_str(), W_OK | X_OK) == 0
             ? open("/dev/null", O_WRONLY | O_CLOEXEC)
             : -1;
}

Failure OpenOutput(const Spec& spec, int given, const std::string& path, int target) {
  const bool is_error = target == STDERR_FILENO;
  const bool is_shared = is_error && given < 0 && !path.empty() && path == spec.stdout_path;
  const char* name = path.empty() ? "/dev/null" : path.c_str();
  const int fd = given >= 0 ? given : is_shared ? STDOUT_FILENO : OpenForOutput(name, spec);
  if (fd < 0 || dup2(fd, target) != target) {
    return Fail(
        is_error ? kOpeningStderr : kOpeningStdout,
        std::string("cannot write standard ") + (is_error ? "error to " : "output to ") + name);
  }
  return {};
}

Failure Check(const std::string& program) {
  struct stat info {};
  if (stat(program.c_str(), &info) != 0) {
    const int code = errno == EACCES ? kExecutablePermissions : kExecutableNotFound;
    return Fail(code, "executable " + program);
  }
  if (S_ISDIR(info.st_mode)) {
    return {kExecutablePermissions, "executable " + program + ": is a directory"};
  }
  if (access(program.c_str(), X_OK) != 0) {
    return Fail(kExecutablePermissions, "executable " + program);
  }
  return {};
}

Failure AfterExec(const std::string& program) {
  switch (const int error = errno; error) {
    case ENOENT:
      return {kExecutablePermissions,
              "executable " + program + ": the interpreter that it names does not exist"};
    case ENOEXEC:
      return {kExecutablePermissions, "executable " + program +
                                          ": neither a program for this machine nor a script that "
                                          "begins with #!"};
    case E2BIG:
      return {kBadArguments, "executable " + program + ": arguments and environment are too long"};
    default:
      return Fail(error == EACCES || error == ETXTBSY || error == EPERM ? kExecutablePermissions
                                                                        : kExecutionFailed,
                  "executable " + program);
  }
}

std::string_view Variable(const Spec& spec, std::string_view name) {
  for (const std::string& entry : spec.environment) {
    const std::string_view view = entry;
    if (view.size() > name.size() && view.substr(0, name.size()) == name &&
        view[name.size()] == '=') {
      return view.substr(name.size() + 1);
    }
  }
  return {};
}

std::vector<char*> Pointers(const std::vector<std::string>& strings) {
  std::vector<char*> pointers;
  for (const std::string& text : strings) {
    pointers.push_back(const_cast<char*>(text.c_str()));
  }
  pointers.push_back(nullptr);
  return pointers;
}

// Nothing but the exec is left: says so, and waits to be released.
Failure AwaitRelease(const Streams& streams, int failure_fd) {
  char byte = kReadyMark;
  if (write(failure_fd, &byte, 1) != 1) {
    return Fail(kNoResources, "cannot tell the supervisor");
  }
  ssize_t n = 0;
  while ((n = read(streams.release, &byte, 1)) < 0 && errno == EINTR) {
  }
  if (n != 1) {
    _exit(127);  // the supervisor is ending
  }
  return {};
}

Failure Execute(const Spec& spec, const Streams& streams, int failure_fd) {
  if (spec.argument.empty() || spec.argument[0].empty()) {
    return {kUndefinedExecutable, "no executable given"};
  }
  const std::string program = FindProgram(spec.argument[0], Variable(spec, "PATH"));
  if (Failure failure = Check(program); failure.has()) {
    return failure;
  }
  if (spec.check_only) {
    _exit(0);
  }
  if (spec.await_release) {
    if (Failure failure = AwaitRelease(streams, failure_fd); failure.has()) {
      return failure;
    }
  }
  if (streams.pmi >= 0 && dup2(streams.pmi, kPmiFd) != kPmiFd) {
    return Fail(kNoMpirun, "cannot give it its process manager");
  }
  for (int signal = 1; signal < NSIG; ++signal) {
    std::signal(signal, SIG_DFL);
  }
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<std::string> words = spec.argument;
  if (!spec.wrapper.empty()) {
    words[0] = program;
    words.insert(words.begin(), spec.wrapper.begin(), spec.wrapper.end());
  }
  const std::string file = spec.wrapper.empty() ? program : spec.wrapper[0];
  execve(file.c_str(), Pointers(words).data(), Pointers(spec.environment).data());
  return AfterExec(file);
}

Failure TryStart(const Spec& spec, Streams streams, int failure_fd, pid_t supervisor) {
  if (Failure failure = SetLimits(spec); failure.has()) {
    return failure;
  }
  if (Failure failure = BecomeAccount(spec); failure.has()) {
    return failure;
  }
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // without its supervisor nobody would learn how it ended
  if (getppid() != supervisor) {
    _exit(127);  // it had gone before
  }
  umask(static_cast<mode_t>(spec.umask) & 0777);
  if (chdir(spec.directory.c_str()) != 0) {
    return Fail(kBadDirectory, "cannot enter directory " + spec.directory);
  }
  if (Failure failure = OpenInput(spec, streams.input); failure.has()) {
    return failure;
  }
  if (Failure failure = OpenOutput(spec, streams.output, spec.stdout_path, 1); failure.has()) {
    return failure;
  }
  if (Failure failure = OpenOutput(spec, streams.error, spec.stderr_path, 2); failure.has()) {
    return failure;
  }
  return Execute(spec, streams, failure_fd);
}

void MakeKillableByMemoryPressure() {
  const int fd = open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC);
  if (fd >= 0) {
    [[maybe_unused]] const ssize_t n = write(fd, "0", 1);
    close(fd);
  }
}

}  // namespace

std::string FindProgram(const std::string& name, std::string_view path) {
  if (name.find('/') != std::string::npos || access(name.c_str(), F_OK) == 0) {
    return name;
  }
  while (!path.empty()) {
    const size_t colon = std::min(path.find(':'), path.size());
    const std::string candidate = std::string(path.substr(0, colon)) + "/" + name;
    if (colon > 0 && access(candidate.c_str(), X_OK) == 0) {
      return candidate;
    }
    path.remove_prefix(std::min(colon + 1, path.size()));
  }
  return name;
}

void BecomeTask(const Spec& spec, Streams streams, int failure_fd) {
  const pid_t supervisor = getsid(0);  // it leads the session that we were born in
  setsid();
  syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, nullptr);  // not root's
  MakeKillableByMemoryPressure();
  const Failure failure = TryStart(spec, streams, failure_fd, supervisor);

  // One atomic write.
  const std::string bytes = std::to_string(failure.gram_code) + "\n" + ToUtf8(failure.reason, 3900);
  [[maybe_unused]] const ssize_t n = write(failure_fd, bytes.data(), bytes.size());
  _exit(127);
}

Failure DecodeFailure(std::string_view bytes) {
  if (bytes.empty()) {
    return {};
  }
  const size_t line_end = std::min(bytes.find('\n'), bytes.size());
  const int code = std::atoi(std::string(bytes.substr(0, line_end)).c_str());
  return {code > 0 ? code : kExecutionFailed,
          std::string(bytes.substr(std::min(line_end + 1, bytes.size())))};
}

}  // namespace sekisho::agent::task
