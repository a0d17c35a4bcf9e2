// SPDX-License-Identifier: Apache-2.0
// All tasks that this node holds, and what the queue server asks of them. docs/protocol/7-nodes.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "agent/accounts.h"
#include "agent/build_spec.h"
#include "agent/held_task.h"
#include "agent/outbox.h"
#include "agent/watcher.h"

namespace sekisho::agent {

class Tasks {
 public:
  struct Settings {
    std::string state_directory;
    std::string task_program;  // sekisho-task
    NodeSettings node;
    uint64_t output_limit = 0;
    std::function<void()> on_change;  // another task runs, or one less
    std::function<bool(const task::Spec&, task::Ended&)> judge_end;  // PmiServer::Judge
  };

  Tasks(Loop& loop, Watcher& watcher, Outbox& outbox, Settings settings);
  Tasks(const Tasks&) = delete;
  Tasks& operator=(const Tasks&) = delete;

  // Takes up what an earlier agent has left.
  absl::Status Recover();

  void FillHello(proto::AgentMessage::Hello& hello) const;
  void OnWelcome(const proto::ServerMessage::Welcome& welcome);
  // How far each is, once more.
  void AnnounceAll();
  // Start, Kill, Stop, Input, OutputTaken, Resume, Forget.
  void Handle(const proto::ServerMessage& message);

  // At once.
  void Kill(const std::string& job_id, int task);
  // HeldTask::TakeEnd.
  void TakeEnd(const std::string& job_id, int task);

  // Now and then: no task may hang because its supervisor died at a bad moment.
  void Check();

  size_t running() const;
  // A running task of the job, or null.
  const task::Spec* FindRunning(const std::string& job_id) const;
  // The running task that was given this token and is wanted still, or null.
  const task::Spec* FindByToken(const std::string& job_id, const std::string& token) const;

 private:
  using Key = std::pair<std::string, int>;

  void Start(const proto::ServerMessage::Start& start);
  void ReplaceFiles(const proto::ServerMessage::Start& start);
  absl::StatusOr<task::Spec> SpecOf(const proto::ServerMessage::Start& start,
                                    const std::string& path);
  HeldTask& Hold(const std::string& path, task::Spec spec);
  void TellJob(const std::string& job_id, const task::Order& order);
  void OutputTaken(const proto::ServerMessage::OutputTaken& taken);
  void Resume(const proto::ServerMessage::Welcome::Resume& resume);
  void PumpIfRoom(bool was_full);
  void Forget(const std::string& job_id, int helper);  // 0: all of the job
  void Drop(const Key& key);
  void OnChange(HeldTask& task);
  HeldTask* Find(const proto::TaskKey& key);

  Loop& loop_;
  Outbox& outbox_;
  Settings settings_;
  Accounts accounts_;
  HeldTask::Parts parts_;
  std::map<Key, std::unique_ptr<HeldTask>> tasks_;
};

}  // namespace sekisho::agent
