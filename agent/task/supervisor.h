// SPDX-License-Identifier: Apache-2.0
// One task's life, watched by a process of its own, so that the agent may die and come back.  It
// starts the task, obeys queued signals (spec.h), enforces the wall-time limit, and when the task's
// main process ends it kills what that left behind and records the end durably.
#pragma once

#include <optional>
#include <string>

#include "agent/task/group.h"
#include "agent/task/input_pump.h"
#include "agent/task/pmi_pump.h"
#include "agent/task/spec.h"
#include "agent/task/spool.h"
#include "agent/task/start.h"

struct signalfd_siginfo;

namespace sekisho::agent::task {

class Supervisor {
 public:
  // `dir_fd`: the task's directory.
  Supervisor(const Spec& spec, int dir_fd);

  // Returns when the end is recorded and synced.
  void Run();

 private:
  enum class Cause { kItself, kRequest, kWallTime, kOutput, kShutdown };

  Failure Start();
  void Watch();
  void OnReady(int signal_fd);
  void OnSignal(const signalfd_siginfo& info);
  void Obey(const Order& order);
  void OnStartPipe();
  void SayHowFar();
  void Release();
  void OnDeadline();
  int PollTimeout() const;
  void Terminate(int signal, int64_t grace_ms, Cause cause);
  void Stop(bool is_stop);
  void Reap();
  void KillRest();
  Ended Outcome() const;
  void Record(const Ended& ended);
  void SyncLate() const;

  const Spec& spec_;
  int dir_fd_;
  Group group_;
  InputPump input_;
  Spool output_;
  Spool error_;
  PmiPump pmi_;
  int signal_fd_ = -1;
  bool is_released_ = false;
  int release_pipe_ = -1;  // to a waiting task
  int start_pipe_ = -1;  // says why the task could not start; closed by a successful exec
  std::string start_failure_;
  bool owes_ready_ = false;            // `ready` is to be written
  std::optional<Running> owed_start_;  // ... to `pid`
  pid_t main_ = 0;
  std::optional<int> main_status_;
  int64_t main_cpu_ms_ = 0;
  bool has_children_ = true;
  Cause cause_ = Cause::kItself;
  int64_t deadline_ms_ = 0;  // of the wall-time limit, by the monotonic clock; 0 = none
  int64_t kill_at_ms_ = 0;   // end of grace; 0 = not terminating
  int64_t stopped_ms_ = 0;   // since when; 0 = not stopped
};

}  // namespace sekisho::agent::task
