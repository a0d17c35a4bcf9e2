// SPDX-License-Identifier: Apache-2.0
#include "agent/task/supervisor.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>
#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <ctime>

#include "agent/task/record.h"

namespace sekisho::agent::task {
namespace {

constexpr int kRetryMs = 1000;  // what could not be written
constexpr int64_t kGiveUpMs =
    10000;  // on processes that not even SIGKILL ends (a dead file server)

int64_t Milliseconds(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return static_cast<int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1000000;
}
int64_t NowMs() { return Milliseconds(CLOCK_MONOTONIC); }

int64_t CpuMs(const rusage& usage) {
  return (usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) * 1000 +
         (usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 1000;
}

// Born inside its cgroup where the kernel can do that: moving it there later costs milliseconds.
pid_t ForkInto(int cgroup_fd, bool& is_inside) {
#ifdef __SANITIZE_THREAD__
  cgroup_fd = -1;  // after a bare clone3 libc would wait in setgroups for the sanitizer's own thread
#endif
  clone_args arguments{};
  arguments.exit_signal = SIGCHLD;
  arguments.flags = CLONE_INTO_CGROUP;
  arguments.cgroup = static_cast<__u64>(cgroup_fd);
  is_inside = true;
  pid_t pid =
      cgroup_fd < 0 ? -1 : static_cast<pid_t>(syscall(SYS_clone3, &arguments, sizeof arguments));
  if (pid < 0) {
    is_inside = false;
    pid = fork();
  }
  return pid;
}

std::string Seconds(int64_t ms) {
  std::string text = std::to_string(ms / 1000);
  return ms % 1000 == 0 ? text : text + "." + std::to_string(1000 + ms % 1000).substr(1);
}

}  // namespace

Supervisor::Supervisor(const Spec& spec, int dir_fd)
    : spec_(spec),
      dir_fd_(dir_fd),
      group_(spec.grouping, spec.cgroup, getpid()),
      input_(dir_fd),
      output_(dir_fd, kStdoutFile),
      error_(dir_fd, kStderrFile),
      pmi_(spec) {}

void Supervisor::Run() {
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  if (const Failure failure = Start(); failure.has()) {
    group_.Remove();
    Record({.gram_code = failure.gram_code, .reason = failure.reason});
    return;
  }
  Watch();
  KillRest();
  group_.Remove();
  output_.Take();
  error_.Take();
  Record(Outcome());
}

Failure Supervisor::Start() {
  const auto fail = [](int code, const char* what) {
    return Failure{code, std::string(what) + ": " + std::strerror(errno)};
  };
  // Its start and its end must find room, also when the disk is full by then.
  for (const char* name : {kPidFile, kExitFile}) {
    if (!ReserveFile(dir_fd_, name, kRecordBytesMost)) {
      return fail(kNoResources, "cannot reserve room for the task's records");
    }
  }
  sigset_t signals;
  sigfillset(&signals);
  sigprocmask(SIG_SETMASK, &signals, nullptr);
  signal_fd_ = signalfd(-1, &signals, SFD_CLOEXEC | SFD_NONBLOCK);
  int pipe_ends[2];
  int release_ends[2] = {-1, -1};
  if (signal_fd_ < 0 || pipe2(pipe_ends, O_CLOEXEC) != 0 ||
      (spec_.await_release && pipe2(release_ends, O_CLOEXEC) != 0)) {
    return fail(kNoResources, "cannot make a pipe");
  }
  Streams streams;
  streams.release = release_ends[0];
  if (spec_.has_input && (streams.input = input_.Open(spec_.uid, spec_.gid)) < 0) {
    return fail(kStdinNotFound, "cannot make the standard input's pipe");
  }
  if (!spec_.pmi_socket.empty() && (streams.pmi = pmi_.Open()) < 0) {
    return fail(kNoMpirun, "cannot make a way to its process manager");
  }
  if (spec_.stdout_path.empty() && (streams.output = output_.Open(spec_.uid, spec_.gid)) < 0) {
    return fail(kOpeningStdout, "cannot make the standard output's spool file");
  }
  if (spec_.stderr_path.empty() && (streams.error = error_.Open(spec_.uid, spec_.gid)) < 0) {
    return fail(kOpeningStderr, "cannot make the standard error's spool file");
  }
  group_.Create(spec_.process_limit);

  bool is_inside = false;
  main_ = ForkInto(group_.cgroup_fd(), is_inside);
  if (main_ == 0) {
    if (!is_inside && !group_.Join()) {
      errno = 0;  // its descent from us still keeps it in reach
    }
    close(release_ends[1]);  // else it would wait for itself
    BecomeTask(spec_, streams, pipe_ends[1]);
  }
  if (main_ < 0) {
    return fail(kForking, "cannot fork");
  }
  close(pipe_ends[1]);
  release_pipe_ = release_ends[1];
  for (const int fd : {streams.input, streams.output, streams.error, streams.release, streams.pmi}) {
    if (fd >= 0) {
      close(fd);
    }
  }
  start_pipe_ = pipe_ends[0];
  if (spec_.wall_limit_ms > 0 && !spec_.await_release) {
    deadline_ms_ = NowMs() + spec_.wall_limit_ms;
  }
  return {};
}

void Supervisor::Watch() {
  OnReady(signal_fd_);  // what came before we were, in this order: a task that is to stop gets no input first
  input_.Grown(false);
  while (!main_status_) {
    pollfd fds[5] = {{signal_fd_, POLLIN, 0},
                     {start_pipe_, POLLIN, 0},
                     {input_.wait_fd(), POLLOUT, 0},
                     pmi_.RankReady(),
                     pmi_.AgentReady()};
    poll(fds, 5, PollTimeout());
    if (fds[1].revents != 0) {
      OnStartPipe();
    }
    if (fds[2].revents != 0 || input_.is_behind()) {
      input_.Pump();
    }
    if (fds[0].revents != 0) {
      OnReady(signal_fd_);
    }
    SayHowFar();
    pmi_.Pump(NowMs());  // also what it has said before its end
    OnDeadline();
  }
  if (start_pipe_ >= 0) {
    OnStartPipe();
  }
}

// The child's exec closes the pipe; before that it may have said why there was none.
void Supervisor::OnStartPipe() {
  char buffer[4096];
  const ssize_t n = read(start_pipe_, buffer, sizeof buffer);
  if (n > 0) {
    start_failure_.append(buffer, static_cast<size_t>(n));
    if (spec_.await_release && start_failure_.front() == kReadyMark) {
      start_failure_.erase(0, 1);
      owes_ready_ = true;
      SayHowFar();
    }
    return;
  }
  close(start_pipe_);
  start_pipe_ = -1;
  if (start_failure_.empty() && (!spec_.await_release || is_released_)) {
    owed_start_ = Running{getpid(), main_, Milliseconds(CLOCK_REALTIME)};
    SayHowFar();
  }
}

// A full disk delays that, no more.
void Supervisor::SayHowFar() {
  if (owes_ready_) {
    owes_ready_ = !WriteFile(dir_fd_, kReadyFile, "", Durability::kProcess);
  }
  if (owed_start_ && WriteFile(dir_fd_, kPidFile, EncodeRunning(*owed_start_), Durability::kProcess)) {
    owed_start_.reset();
  }
}

void Supervisor::OnReady(int signal_fd) {
  signalfd_siginfo info;
  while (read(signal_fd, &info, sizeof info) == static_cast<ssize_t>(sizeof info)) {
    OnSignal(info);
  }
}

void Supervisor::OnSignal(const signalfd_siginfo& info) {
  const int signal = static_cast<int>(info.ssi_signo);
  if (signal == SIGCHLD) {
    Reap();
  } else if (signal == OrderSignal()) {
    Obey(UnpackOrder(info.ssi_int));
  } else if (signal == SIGTERM) {
    Terminate(SIGTERM, spec_.grace_ms, Cause::kShutdown);
  }
}

void Supervisor::Obey(const Order& order) {
  switch (order.command) {
    case Command::kKill:
      return Terminate(order.signal, order.grace_ms, Cause::kRequest);
    case Command::kLimit:
      return Terminate(SIGTERM, order.grace_ms, Cause::kOutput);
    case Command::kStop:
      return Stop(kill_at_ms_ == 0);
    case Command::kResume:
      return Stop(false);
    case Command::kInput:
      return input_.Grown(false);
    case Command::kInputEnd:
      return input_.Grown(true);
    case Command::kRelease:
      return Release();
  }
}

// Its wall time begins now.
void Supervisor::Release() {
  if (release_pipe_ < 0) {
    return;
  }
  is_released_ = true;
  [[maybe_unused]] const ssize_t n = write(release_pipe_, "r", 1);
  close(release_pipe_);
  release_pipe_ = -1;
  if (spec_.wall_limit_ms > 0) {
    deadline_ms_ = NowMs() + spec_.wall_limit_ms;
  }
}

int Supervisor::PollTimeout() const {
  const int64_t limit = stopped_ms_ != 0 ? 0 : deadline_ms_;
  const int64_t next = kill_at_ms_ != 0 ? kill_at_ms_ : limit;
  const int64_t now = NowMs();
  const int own = next == 0 ? -1 : static_cast<int>(std::clamp<int64_t>(next - now, 0, 1 << 30));
  const int retry = owes_ready_ || owed_start_ || input_.is_behind() ? kRetryMs : -1;
  int least = -1;
  for (const int wait : {own, retry, pmi_.WaitMs(now)}) {
    least = least < 0 || wait < 0 ? std::max(least, wait) : std::min(least, wait);
  }
  return least;
}

void Supervisor::OnDeadline() {
  const int64_t now = NowMs();
  if (kill_at_ms_ != 0 && now >= kill_at_ms_) {
    group_.KillOnce(true);
    kill_at_ms_ = now + 100;  // again, until it is gone
  } else if (kill_at_ms_ == 0 && deadline_ms_ != 0 && stopped_ms_ == 0 && now >= deadline_ms_) {
    Terminate(SIGTERM, spec_.grace_ms, Cause::kWallTime);
  }
}

// A second request may hasten the end, not put it off.
void Supervisor::Terminate(int signal, int64_t grace_ms, Cause cause) {
  if (cause_ == Cause::kItself) {
    cause_ = cause;
  }
  const int64_t kill_at = NowMs() + std::max<int64_t>(grace_ms, 0);
  kill_at_ms_ = kill_at_ms_ == 0 ? kill_at : std::min(kill_at, kill_at_ms_);
  Stop(false);
  if (release_pipe_ >= 0) {  // it will not be released any more
    close(release_pipe_);
    release_pipe_ = -1;
  }
  if (signal == SIGKILL) {
    kill_at_ms_ = NowMs();
  } else if (signal != 0) {
    group_.SignalAll(signal);
  }
}

// Time that a task is stopped does not count against its wall-time limit.
void Supervisor::Stop(bool is_stop) {
  if (is_stop == (stopped_ms_ != 0)) {
    return;
  }
  if (is_stop) {
    group_.Freeze();
    stopped_ms_ = NowMs();
    return;
  }
  group_.Thaw();
  deadline_ms_ += deadline_ms_ == 0 ? 0 : NowMs() - stopped_ms_;
  stopped_ms_ = 0;
}

// Also takes the orphans that come to us as their subreaper.
void Supervisor::Reap() {
  int status = 0;
  rusage usage{};
  pid_t pid = 0;
  while ((pid = wait4(-1, &status, WNOHANG, &usage)) > 0) {
    if (pid == main_) {
      main_status_ = status;
      main_cpu_ms_ = CpuMs(usage);
    }
  }
  has_children_ = pid == 0;
}

// We are the subreaper of all that the task has started: when no child is left, nothing is.
void Supervisor::KillRest() {
  Reap();
  const int64_t give_up = NowMs() + kGiveUpMs;
  for (int pass = 0; has_children_ && NowMs() < give_up; ++pass) {
    group_.Thaw();
    group_.KillOnce(pass > 0);
    pollfd child{signal_fd_, POLLIN, 0};
    poll(&child, 1, 20);
    signalfd_siginfo info;
    while (read(signal_fd_, &info, sizeof info) > 0) {
    }
    Reap();
  }
}

Ended Supervisor::Outcome() const {
  Ended ended;
  const int status = *main_status_;
  if (const Failure failure = DecodeFailure(start_failure_); failure.has()) {
    ended.gram_code = failure.gram_code;
    ended.reason = failure.reason;
    return ended;
  }
  ended.code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  ended.signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  rusage usage{};
  getrusage(RUSAGE_CHILDREN, &usage);
  ended.cpu_ms = CpuMs(usage);
  ended.max_rss_kb = usage.ru_maxrss;
  const bool is_cpu_limit = spec_.cpu_limit_s > 0 && ended.signal != 0 &&
                            cause_ == Cause::kItself &&
                            (ended.signal == SIGXCPU ||  // the kernel's own count may differ from ours
                             main_cpu_ms_ >= spec_.cpu_limit_s * 1000 - 100);
  if (cause_ == Cause::kWallTime) {
    ended.reason = "wall-time limit of " + Seconds(spec_.wall_limit_ms) + " s reached";
  } else if (cause_ == Cause::kOutput) {
    ended.reason = "its output passed the site's limit";
  } else if (cause_ == Cause::kShutdown) {
    ended.reason = "the node was shut down, or its batch system ended the job";
  } else if (is_cpu_limit) {
    ended.reason = "CPU-time limit of " + std::to_string(spec_.cpu_limit_s) + " s reached";
  }
  ended.gram_code = ended.reason.empty() ? kNoError : kExecutionFailed;
  return ended;
}

// A full disk must not lose the end (room was reserved, but the file system may think otherwise): try until
// it is written.
void Supervisor::Record(const Ended& ended) {
  Ended stamped = ended;
  stamped.time_ms = Milliseconds(CLOCK_REALTIME);
  for (char& c : stamped.reason) {
    c = static_cast<unsigned char>(c) < ' ' || c == 127 ? '?' : c;
  }
  const Durability durability = spec_.syncs_late ? Durability::kProcess : Durability::kMachine;
  while (!WriteFile(dir_fd_, kExitFile, EncodeEnded(stamped), durability) && errno != ENOENT) {
    poll(nullptr, 0, 1000);
  }
  if (spec_.syncs_late) {
    SyncLate();
  }
}

// By then it is on the queue server's disk, and we are no more: who forgets the task ends us.  A sync for each short task
// would take longer than the task.
void Supervisor::SyncLate() const {
  poll(nullptr, 0, kSyncAfterMs);
  while (!SyncFile(dir_fd_, kExitFile) && errno != ENOENT) {
    poll(nullptr, 0, 1000);
  }
}

}  // namespace sekisho::agent::task
