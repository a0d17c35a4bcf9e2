// SPDX-License-Identifier: Apache-2.0
// One task that this node holds, from Start to Forget: docs/protocol/7-nodes.md, "A task on its
// node". What is true of it is in its directory; this follows the files and speaks to its
// supervisor.
#pragma once

#include <functional>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <asio/posix/stream_descriptor.hpp>

#include "agent/link_records.h"
#include "agent/outbox.h"
#include "agent/spooled_output.h"
#include "agent/task_directory.h"
#include "agent/watcher.h"

namespace sekisho::agent {

class HeldTask {
 public:
  using Stream = proto::OutputChunk::Stream;
  struct Parts {  // all outlive the task
    Loop& loop;
    Watcher& watcher;
    Outbox& outbox;
    uint64_t output_limit = 0;                 // of one spooled stream, in bytes; 0 = none
    std::function<void(HeldTask&)> on_change;  // it runs now, or has ended
    std::function<bool(const task::Spec&, task::Ended&)> judge_end;  // PmiServer::Judge; may be empty
  };

  // The directory holds a spec.
  HeldTask(const Parts& parts, const std::string& path, task::Spec spec);
  ~HeldTask();
  HeldTask(const HeldTask&) = delete;
  HeldTask& operator=(const HeldTask&) = delete;

  // Starts it, or finds out what became of it while no agent was there.
  void Begin(const std::string& task_program);
  void Adopt(const std::string& task_program, const std::string& boot_id);

  // It was never started, and this is why.
  void Refuse(int gram_code, const std::string& reason);

  const task::Spec& spec() const { return spec_; }
  const TaskDirectory& directory() const { return directory_; }
  bool is_running() const { return !ended_; }
  const std::optional<task::Ended>& ended() const { return ended_; }
  bool is_forgotten() const { return is_forgotten_; }
  void Forget() { is_forgotten_ = true; }

  // After a Welcome: says all again, output from where the server's spool ends.
  void Resume(uint64_t stdout_offset, uint64_t stderr_offset);
  void Announce();
  // What was sent on this stream counts as not sent: Resume follows.
  void Recall();

  void Tell(const task::Order& order);
  void TakeInput(uint64_t offset, std::string_view data, bool is_end);
  void OutputTaken(Stream stream, uint64_t offset);
  void PumpOutput();
  // Its process manager knows now what its end means.
  void TakeEnd();

  // Now and then, for what nobody tells us: a supervisor that vanished without a word before we could watch
  // it, or before it had begun, output that could not be opened, input that found no room.
  void Check(const std::string& task_program);

 private:
  void OnFile(std::string_view name);
  void ReadRunning();
  bool ReadEnded();  // false: there is no record of its end
  void Attend(const std::string& task_program);
  void WatchSupervisor(pid_t pid);
  void OnSupervisorGone(bool seen);
  void LetSync();
  void AnnounceReady();
  void AnnounceStart();
  void AnnounceEnd();
  void EndWith(const task::Ended& ended);
  void KeepInput();
  void SendInputTaken();
  void CheckOutputLimit();
  void Rest() {  // until something is asked of it
    if (ended_) directory_.LetGo();
  }

  const Parts& parts_;
  TaskDirectory directory_;
  task::Spec spec_;
  int watch_ = -1;
  asio::posix::stream_descriptor supervisor_;  // pidfd
  int syncing_ = -1;                           // pidfd of one that has written the end, and is to sync it
  std::vector<task::Order> pending_;           // for a supervisor that is not there yet
  std::optional<task::Running> running_;
  std::optional<task::Ended> ended_;
  SpooledOutput output_;
  SpooledOutput error_;
  LinkRecords links_;
  std::array<uint64_t, 2> announced_ = {0, 0};  // sizes of the output, as AnnounceEnd said
  uint64_t input_size_ = 0;       // in the file
  std::string unkept_input_;      // what follows, and finds no room there
  int supervisors_ = 0;           // spawned by us
  bool is_input_whole_ = false;   // its end has come
  bool has_input_ended_ = false;  // ... and was passed on, as this agent knows: the server says it again to a new one
  bool is_forgotten_ = false;
  bool is_over_limit_ = false;
};

}  // namespace sekisho::agent
