// SPDX-License-Identifier: Apache-2.0
// The agent's door for MPI ranks: a Unix socket on which a task, known by its token, speaks PMI-1.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <asio/local/stream_protocol.hpp>

#include "agent/outbox.h"
#include "agent/pmi_journal.h"
#include "agent/pmi_ranks.h"
#include "agent/task/spec.h"
#include "common/loop.h"
#include "common/status.h"

namespace sekisho::agent {

class PmiServer {
 public:
  // Tasks::FindByToken.
  using FindTask =
      std::function<const task::Spec*(const std::string& job_id, const std::string& token)>;

  // Tasks::Kill: of a rank that called MPI_Abort.
  using KillTask = std::function<void(const std::string& job_id, int task)>;

  // Tasks::TakeEnd: Judge may know now.
  using TakeEnd = std::function<void(const std::string& job_id, int task)>;

  PmiServer(Loop& loop, Outbox& outbox, FindTask find_task, KillTask kill_task, TakeEnd take_end);
  ~PmiServer();
  PmiServer(const PmiServer&) = delete;
  PmiServer& operator=(const PmiServer&) = delete;

  // Before tasks of an earlier agent are taken up: what ranks say is kept there from now on, for the agent after this one.
  absl::Status KeepIn(const std::string& directory);
  // Once they are.  `find_running`: Tasks::FindRunning.
  void Recover(const std::function<const task::Spec*(const std::string& job_id)>& find_running);
  absl::Status Listen(const std::string& path);

  // After a Welcome: what the server may have missed.
  void OnWelcome();
  // Release, RankFence, Forget; others are nothing to us.
  void Handle(const proto::ServerMessage& message);
  // What a rank's end means: MPI_Abort's code counts, and who ends inside MPI has failed.  False: how it left MPI is
  // not known yet; TakeEnd is called once it is.
  bool Judge(const task::Spec& spec, task::Ended& ended);

 private:
  struct Connection;
  struct Job {
    PmiJournal journal;
    std::vector<PmiEntry> before;  // what an earlier agent had come to know of the ranks
    proto::ServerMessage::Release release;
    std::unique_ptr<PmiRanks> ranks;  // once the first of them has come
    std::map<int, std::weak_ptr<Connection>> by_rank;
    std::map<int, int> tasks;  // by rank
    std::map<int, std::chrono::steady_clock::time_point> leaving;  // by rank: when its end was first asked about
  };

  // The task that calls; null if it is none of ours.
  awaitable<const task::Spec*> Greet(std::shared_ptr<Connection> connection);
  // With what the journal says.
  Job& Open(const std::string& job_id);
  // Or known to the agent before us.  Not once it is forgotten, though its last tasks may still be ending.
  bool IsKnown(const std::string& job_id) const;
  // Null if it is not released as far as we were told.
  Job* JobOf(const task::Spec& spec);
  static void Keep(const std::string& job_id, Job& job, const PmiEntry& entry);
  // As parts of the world were dropped, if any were.
  static int RankOf(const Job& job, const task::Spec& spec);
  awaitable<void> Serve(std::shared_ptr<Connection> connection);
  static awaitable<void> LetGo(std::shared_ptr<Connection> connection);
  void Apply(const std::string& job_id, Job& job, PmiRanks::Effects effects);
  void SayFence(const std::string& job_id, const std::optional<proto::Fence>& fence);
  void TakeEnds(const std::string& job_id);

  Loop& loop_;
  Outbox& outbox_;
  std::string directory_;  // of the journals; "": nothing is kept
  FindTask find_task_;
  KillTask kill_task_;
  TakeEnd take_end_;
  asio::local::stream_protocol::acceptor acceptor_;
  std::map<std::string, Job> jobs_;
  int strangers_ = 0;  // connections that have not said whose they are
};

}  // namespace sekisho::agent
