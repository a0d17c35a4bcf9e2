// SPDX-License-Identifier: Apache-2.0
#include "agent/held_task.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <csignal>
#include <cstdlib>
#include <ctime>

#include "agent/task/group.h"
#include "agent/task/record.h"
#include "common/log.h"
#include "common/refusal.h"
#include "common/utf8.h"

namespace sekisho::agent {
namespace {

using task::Command;

constexpr size_t kUnkeptInputMost = 1 << 20;  // the queue server sends half of that ahead of a task
constexpr int kSupervisorsMost = 4;           // for one task: each has the time between two checks to begin

proto::TaskKey KeyOf(const task::Spec& spec) {
  proto::TaskKey key;
  key.set_job_id(spec.job_id);
  key.set_task(spec.task);
  return key;
}

int64_t NowMs() {
  timespec time{};
  clock_gettime(CLOCK_REALTIME, &time);
  return static_cast<int64_t>(time.tv_sec) * 1000 + time.tv_nsec / 1000000;
}

// In the environment of what the task has started, and of nobody else: its token; of a job's daemon, which has none,
// its job.
std::string MarkOf(const task::Spec& spec) {
  return spec.launch_token.empty() ? "SEKISHO_JOB_ID=" + spec.job_id : "SEKISHO_LAUNCH_TOKEN=" + spec.launch_token;
}

// Whatever a supervisor that was killed has left.  `mark`: see task::KillSession.
void KillOrphans(const task::Spec& spec, const std::optional<task::Running>& running, const std::string& mark) {
  task::Group group(spec.grouping, spec.cgroup, 0);
  for (int pass = 0; pass < 50; ++pass) {
    if (group.grouping() == task::Grouping::kNone) {
      if (running && running->main > 0) {  // session 0 is the kernel's
        task::KillSession(running->main, spec.uid, mark);
      }
      return;
    }
    group.KillOnce(false);
    if (group.Remove()) {
      return;
    }
    poll(nullptr, 0, 5);
  }
}

}  // namespace

HeldTask::HeldTask(const Parts& parts, const std::string& path, task::Spec spec)
    : parts_(parts),
      directory_(path),
      spec_(std::move(spec)),
      supervisor_(parts.loop),
      output_(directory_, KeyOf(spec_), proto::OutputChunk::STDOUT, spec_.stdout_path.empty(),
              parts.output_limit, parts.outbox),
      error_(directory_, KeyOf(spec_), proto::OutputChunk::STDERR, spec_.stderr_path.empty(),
             parts.output_limit, parts.outbox),
      links_(directory_, spec_, parts.watcher, parts.outbox) {
  watch_ = parts_.watcher.Add(path, [this](std::string_view name) { OnFile(name); });
  if (watch_ < 0) {
    spdlog::error("cannot watch a task's files: raise fs.inotify.max_user_watches job={}",
                  spec_.job_id);
  }
}

HeldTask::~HeldTask() {
  parts_.watcher.Remove(watch_);
  if (syncing_ >= 0) {
    if (is_forgotten_) {  // nothing is left to sync
      syscall(SYS_pidfd_send_signal, syncing_, SIGKILL, nullptr, 0);
    }
    close(syncing_);
  }
}

void HeldTask::Refuse(int gram_code, const std::string& reason) {
  EndWith({.gram_code = gram_code, .reason = reason});
}

void HeldTask::Begin(const std::string& task_program) {
  ++supervisors_;
  if (const absl::Status status = directory_.SpawnSupervisor(task_program); !status.ok()) {
    Refuse(task::kForking, Message(status));
  }
}

void HeldTask::Adopt(const std::string& task_program, const std::string& boot_id) {
  struct stat info {};
  if (fstatat(directory_.fd(), task::kInputFile, &info, 0) == 0) {
    input_size_ = static_cast<uint64_t>(info.st_size);
  }
  running_ = directory_.ReadRunning();
  ReadEnded();
  if (ended_) {
    return;
  }
  if (spec_.boot_id != boot_id) {
    EndWith({.signal = SIGKILL,
             .gram_code = task::kExecutionFailed,
             .reason = "the node was restarted while the task ran"});
  } else {
    Attend(task_program);
  }
}

void HeldTask::Attend(const std::string& task_program) {
  const auto found = directory_.FindAttendance();
  if (!found) {
    spdlog::error("cannot tell whether a task runs, asking again job={}", spec_.job_id);
  } else if (found->attendance == TaskDirectory::Attendance::kAttended) {
    WatchSupervisor(found->supervisor);
  } else if (found->attendance == TaskDirectory::Attendance::kAbandoned) {
    OnSupervisorGone(false);
  } else if (supervisors_ < kSupervisorsMost) {
    Begin(task_program);  // one that is only late finds the task taken, or takes it first
  } else if (const absl::Status status = directory_.CheckRoom(); !status.ok()) {
    Refuse(task::kNoResources, Message(status));  // nor has it found any
  } else {
    Refuse(task::kForking, "its supervisor does not come up");
  }
}

void HeldTask::Check(const std::string& task_program) {
  PumpOutput();  // its file may have been held by a lease
  const auto now = SpooledOutput::Clock::now();
  output_.Free(now);
  error_.Free(now);
  if (!unkept_input_.empty()) {
    KeepInput();
  }
  if (!ended_ && !supervisor_.is_open()) {
    Attend(task_program);
  }
  Rest();
}

void HeldTask::OnFile(std::string_view name) {
  if (name.empty() || name == task::kPidFile) {
    ReadRunning();
  }
  if (name.empty() || name == task::kReadyFile) {
    AnnounceReady();
  }
  if (name.empty() || name == task::kStdoutFile || name == task::kStderrFile) {
    PumpOutput();
  }
  if (name.empty() || name == task::kInputTaken) {
    SendInputTaken();
  }
  if ((name.empty() || name == task::kExitFile) && (spec_.syncs_late || !supervisor_.is_open())) {
    ReadEnded();  // else its supervisor's exit says that the record is safe on disk
  }
  Rest();
}

void HeldTask::ReadRunning() {
  const auto running = directory_.ReadRunning();
  if (!running || running == running_) {
    return;
  }
  running_ = running;
  if (!ended_) {
    WatchSupervisor(running_->supervisor);
  }
  if (running_->main != 0) {
    spdlog::info("task started job={} task={} pid={}", spec_.job_id, spec_.task, running_->main);
    AnnounceStart();
  }
}

void HeldTask::WatchSupervisor(pid_t pid) {
  if (supervisor_.is_open()) {
    return;
  }
  const int fd = static_cast<int>(syscall(SYS_pidfd_open, pid, 0));
  if (fd < 0 && errno != ESRCH) {
    return;  // never taken for its end: Check asks again
  }
  if (const auto holder = directory_.Supervisor(); fd < 0 || holder != pid) {
    if (fd >= 0) {
      close(fd);
    }
    // Gone; the number may be another's already.
    return fd < 0 || holder ? OnSupervisorGone(false) : void();
  }
  supervisor_.assign(fd);
  supervisor_.async_wait(asio::posix::stream_descriptor::wait_read,
                         [this](const std::error_code& error) {
                           if (!error) {
                             OnSupervisorGone(true);
                           }
                         });
  for (const task::Order& order : std::exchange(pending_, {})) {
    Tell(order);
  }
}

// `seen`: just now.  If not, what it has left may be long gone, and its numbers others'.
void HeldTask::OnSupervisorGone(bool seen) {
  if (ReadEnded()) {
    return;
  }
  if (!running_ && !directory_.Has(task::kPidFile)) {  // for want of room it has begun nothing: Check has another try
    std::error_code ignored;
    supervisor_.close(ignored);
    return;
  }
  spdlog::warn("a task's supervisor was killed job={} task={}", spec_.job_id, spec_.task);
  KillOrphans(spec_, running_, seen ? "" : MarkOf(spec_));
  EndWith({.signal = SIGKILL,
           .gram_code = task::kExecutionFailed,
           .reason = "the task's supervisor was killed"});
}

void HeldTask::EndWith(const task::Ended& ended) {
  task::Ended stamped = ended;
  stamped.time_ms = NowMs();
  stamped.reason = ToUtf8(stamped.reason);
  if (const absl::Status status = directory_.WriteEnded(stamped); !status.ok()) {
    spdlog::error("{} job={}", Message(status), spec_.job_id);
    if (!directory_.Has(task::kPidFile)) {  // nothing else says that it is not to begin any more
      unlinkat(directory_.fd(), task::kSpecFile, 0);
    }
    ended_ = stamped;
    AnnounceEnd();
    Rest();
    parts_.on_change(*this);
    return;
  }
  ReadEnded();
}

bool HeldTask::ReadEnded() {
  std::optional<task::Ended> ended = ended_ ? std::nullopt : directory_.ReadEnded();
  if (!ended) {
    return ended_.has_value();
  }
  if (!running_ || running_->main == 0) {
    ReadRunning();  // it may have run for a moment only
    if (ended_) {
      return true;
    }
  }
  LetSync();
  if (parts_.judge_end && !parts_.judge_end(spec_, *ended)) {
    return true;  // until TakeEnd, or Check
  }
  ended_ = std::move(ended);
  spdlog::info("task ended job={} task={} code={} signal={} reason={}", spec_.job_id, spec_.task,
               ended_->code, ended_->signal, Printable(ended_->reason));
  PumpOutput();
  links_.Pump();
  AnnounceEnd();
  Rest();
  parts_.on_change(*this);
  return true;
}

// Its supervisor has said all that it knows.
void HeldTask::LetSync() {
  if (!supervisor_.is_open()) {
    return;
  }
  if (syncing_ >= 0) {
    close(syncing_);
  }
  syncing_ = supervisor_.release();
}

void HeldTask::TakeEnd() {
  if (!supervisor_.is_open()) {
    ReadEnded();
  }
}

void HeldTask::Resume(uint64_t stdout_offset, uint64_t stderr_offset) {
  output_.Resume(stdout_offset);
  error_.Resume(stderr_offset);
  AnnounceReady();
  AnnounceStart();
  if (spec_.has_input && !ended_) {
    SendInputTaken();
  }
  PumpOutput();
  links_.Resume();
  AnnounceEnd();
  Rest();
}

void HeldTask::Recall() {
  output_.Recall();
  error_.Recall();
}

void HeldTask::Announce() {
  const bool has_run = running_ && running_->main != 0;
  if (!has_run && !ended_) {
    AnnounceReady();
  }
  AnnounceStart();
  AnnounceEnd();
  Rest();
}

void HeldTask::AnnounceReady() {
  if (spec_.await_release && directory_.Has(task::kReadyFile)) {
    proto::AgentMessage message;
    *message.mutable_ready()->mutable_task() = KeyOf(spec_);
    parts_.outbox.Push(std::move(message));
  }
}

void HeldTask::AnnounceStart() {
  if (running_ && running_->main != 0) {
    proto::AgentMessage message;
    *message.mutable_started()->mutable_task() = KeyOf(spec_);
    message.mutable_started()->set_time_ms(running_->time_ms);
    parts_.outbox.Push(std::move(message));
  }
}

void HeldTask::AnnounceEnd() {
  if (!ended_) {
    return;
  }
  proto::AgentMessage message;
  proto::AgentMessage::Exited& exited = *message.mutable_exited();
  *exited.mutable_task() = KeyOf(spec_);
  exited.mutable_exit()->set_code(ended_->code);
  exited.mutable_exit()->set_signal(ended_->signal);
  exited.set_time_ms(ended_->time_ms);
  exited.set_gram_code(ended_->gram_code);
  exited.set_reason(ended_->reason);
  announced_ = {output_.size(), error_.size()};
  exited.set_stdout_size(announced_[0]);
  exited.set_stderr_size(announced_[1]);
  exited.set_cpu_ms(ended_->cpu_ms);
  exited.set_max_rss_kb(ended_->max_rss_kb);
  parts_.outbox.Push(std::move(message));
}

void HeldTask::Tell(const task::Order& order) {
  if (ended_) {
    return;
  }
  if (!supervisor_.is_open()) {
    pending_.push_back(order);
    return;
  }
  siginfo_t info{};
  info.si_signo = task::OrderSignal();
  info.si_code = SI_QUEUE;
  info.si_pid = getpid();
  info.si_uid = getuid();
  info.si_value.sival_int = task::PackOrder(order);
  syscall(SYS_pidfd_send_signal, supervisor_.native_handle(), info.si_signo, &info, 0);
}

void HeldTask::TakeInput(uint64_t offset, std::string_view data, bool is_end) {
  const uint64_t has = input_size_ + unkept_input_.size();
  if (!spec_.has_input || ended_ || offset > has || unkept_input_.size() > kUnkeptInputMost) {
    return SendInputTaken();
  }
  const bool was_stuck = !unkept_input_.empty();
  data.remove_prefix(std::min<size_t>(data.size(), has - offset));
  unkept_input_.append(data);
  is_input_whole_ = is_input_whole_ || is_end;
  KeepInput();
  if (!was_stuck && !unkept_input_.empty()) {
    spdlog::error("cannot keep a task's input, trying again: disk full? job={}", spec_.job_id);
  }
}

// What finds no room is not dropped: on this connection the queue server does not send it again.
void HeldTask::KeepInput() {
  if (ended_) {
    unkept_input_.clear();
    return;
  }
  constexpr int kAppend = O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  const bool has_any = !unkept_input_.empty();
  const int fd = has_any ? openat(directory_.fd(), task::kInputFile, kAppend, 0600) : -1;
  ssize_t n = 0;
  size_t kept = 0;
  while (fd >= 0 && kept < unkept_input_.size() &&
         (n = write(fd, unkept_input_.data() + kept, unkept_input_.size() - kept)) > 0) {
    kept += static_cast<size_t>(n);
  }
  if (fd >= 0) {
    close(fd);
  }
  input_size_ += kept;
  unkept_input_.erase(0, kept);
  unkept_input_.shrink_to_fit();
  const bool is_end = is_input_whole_ && unkept_input_.empty();
  Tell({is_end ? Command::kInputEnd : Command::kInput});
  if (is_end) {
    has_input_ended_ = true;
    SendInputTaken();
  }
}

void HeldTask::SendInputTaken() {
  std::string text;
  task::ReadFile(directory_.fd(), task::kInputTaken, text);
  const uint64_t taken = std::strtoull(text.c_str(), nullptr, 10);
  proto::AgentMessage message;
  *message.mutable_input_taken()->mutable_task() = KeyOf(spec_);
  message.mutable_input_taken()->set_offset(
      std::min<uint64_t>(taken, input_size_ + unkept_input_.size()));
  message.mutable_input_taken()->set_end(has_input_ended_);
  parts_.outbox.Push(std::move(message));
  Rest();
}

void HeldTask::OutputTaken(Stream stream, uint64_t offset) {
  SpooledOutput& output = stream == proto::OutputChunk::STDOUT ? output_ : error_;
  output.Taken(offset, SpooledOutput::Clock::now());
  PumpOutput();
  Rest();
}

void HeldTask::PumpOutput() {
  output_.Pump();
  error_.Pump();
  CheckOutputLimit();
  // Somebody cut a file after the task's end: nobody is to wait for what cannot come.
  if (ended_ && (output_.size() < announced_[0] || error_.size() < announced_[1])) {
    AnnounceEnd();
  }
}

void HeldTask::CheckOutputLimit() {
  if (!is_over_limit_ && (output_.is_over_limit() || error_.is_over_limit())) {
    is_over_limit_ = true;
    Tell({Command::kLimit, 0, spec_.grace_ms});
  }
}

}  // namespace sekisho::agent
