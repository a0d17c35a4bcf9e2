// SPDX-License-Identifier: Apache-2.0
// One task's record directory, STATE/JOB/TASK: made, read back and removed by the agent.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "agent/task/spec.h"
#include "common/status.h"

namespace sekisho::agent {

class TaskDirectory {
 public:
  // `path` exists.
  explicit TaskDirectory(std::string path);
  ~TaskDirectory();
  TaskDirectory(const TaskDirectory&) = delete;
  TaskDirectory& operator=(const TaskDirectory&) = delete;

  const std::string& path() const { return path_; }
  // Opened when it is needed.
  int fd() const;
  // A task that has ended needs no descriptor while it waits to be forgotten.
  void LetGo() const;

  absl::Status WriteSpec(const task::Spec& spec) const;
  absl::Status WriteEnded(const task::Ended& ended) const;
  // That a record can be written.
  absl::Status CheckRoom() const;
  // A file in `files`, which is the account's.
  absl::Status WriteSmallFile(const task::Spec& spec, const std::string& name,
                              const std::string& content) const;

  // A record that the machine lost with its power is made up from the directory's name, if the task had begun:
  // how it ended is on disk, or that it was cut short.
  std::optional<task::Spec> ReadSpec() const;
  std::optional<task::Running> ReadRunning() const;
  std::optional<task::Ended> ReadEnded() const;
  bool Has(const char* name) const;

  // What is known of a task that has no record of its end.  None: it cannot be told now.
  enum class Attendance { kNotBegun, kAttended, kAbandoned };
  struct Attended {
    Attendance attendance;
    pid_t supervisor = 0;  // of kAttended
  };
  std::optional<Attended> FindAttendance() const;

  // The process that holds the spec's lock, 0 if none does: the task has no supervisor.  None: it cannot be
  // told now, for want of descriptors perhaps.
  std::optional<pid_t> Supervisor() const;

  // Starts one.  It leaves us at once; what we spawned ends within a millisecond.
  absl::Status SpawnSupervisor(const std::string& program) const;

 private:
  std::string path_;
  mutable int fd_ = -1;
};

// STATE/JOB/TASK; both names are checked, so the path cannot leave STATE.
std::optional<std::string> TaskPath(const std::string& state, const std::string& job_id, int task);
absl::Status MakeTaskDirectory(const std::string& state, const std::string& job_id, int task);
// All that look like one.
std::vector<std::string> ListTaskDirectories(const std::string& state);
// Also the job's directory if that was its last task.
void RemoveTaskDirectory(const std::string& path);
// Directories of jobs without a task: an agent was killed before it had made the first, or had removed the last.
void RemoveEmptyJobDirectories(const std::string& state);

}  // namespace sekisho::agent
