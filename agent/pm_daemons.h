// SPDX-License-Identifier: Apache-2.0
// sekisho-pmd for jobs that use PM: one a job, when the first of its tasks asks for it, until the
// job is forgotten.  docs/protocol/7-nodes.md, "PM".
#pragma once

#include <sys/types.h>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "agent/local_door.h"
#include "agent/outbox.h"
#include "agent/tasks.h"
#include "agent/watcher.h"

namespace sekisho::agent {

class PmDaemons {
 public:
  struct Settings {
    std::string program;  // sekisho-pmd
    std::string folder;   // with one of each job, where its daemon listens
    std::string state_directory;
    std::string task_program;
    NodeSettings node;
  };
  // Any running task of the job, or null.
  using FindJob = std::function<const task::Spec*(const std::string& job_id)>;

  PmDaemons(Loop& loop, Watcher& watcher, Settings settings, FindJob find_job);
  PmDaemons(const PmDaemons&) = delete;
  PmDaemons& operator=(const PmDaemons&) = delete;

  // Takes up what an earlier agent has left; a daemon of no job that is held here ends, its folder goes.
  absl::Status Recover(const proto::AgentMessage::Hello& held);
  absl::Status Listen(const std::string& door);
  // Forget of a job; others are nothing to us.
  void Handle(const proto::ServerMessage& message);

 private:
  struct Job {
    int watch = -1;
    std::vector<std::shared_ptr<LocalSocket>> waiting;  // until it listens
  };

  awaitable<void> Serve(std::shared_ptr<LocalSocket> socket, uid_t caller);
  absl::Status Start(const task::Spec& asking);
  void Watch(const std::string& job_id);
  void Tell(const std::string& job_id, const std::string& answer);
  void OnChange();
  void Forget(const std::string& job_id);
  std::string FolderOf(const std::string& job_id) const { return settings_.folder + "/" + job_id; }
  std::string SocketOf(const std::string& job_id) const { return FolderOf(job_id) + "/pmd"; }

  Loop& loop_;
  Settings settings_;
  FindJob find_job_;
  Watcher& watcher_;
  Outbox nobody_;  // the queue server knows nothing of them
  Tasks daemons_;
  LocalAcceptor acceptor_;
  std::map<std::string, Job> jobs_;
  int strangers_ = 0;                  // that have not said their job yet
  std::map<uid_t, int> strangers_of_;  // the same of each account; none is 0
};

}  // namespace sekisho::agent
