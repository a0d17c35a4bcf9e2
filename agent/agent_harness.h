// SPDX-License-Identifier: Apache-2.0
// For tests: an agent without its main(), and a queue server that remembers what it is told.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "agent/grouping.h"
#include "agent/launcher_service.h"
#include "agent/launches.h"
#include "agent/outbox.h"
#include "agent/pmi_server.h"
#include "agent/session.h"
#include "agent/tasks.h"
#include "agent/watcher.h"
#include "common/rpc_server.h"

namespace sekisho::agent {

using Key = std::pair<std::string, int>;

class FakeServer final : public proto::Nodes::CallbackService {
 public:
  using Call = rpc::Duplex<proto::AgentMessage, proto::ServerMessage>;

  struct Seen {
    int started = 0;
    int exits = 0;
    std::optional<proto::AgentMessage::Exited> exited;
    std::string output[2];  // as a spool would have it
    uint64_t input_taken = 0;
    int ready = 0;
  };

  explicit FakeServer(Loop& loop) : loop_(loop) {}

  grpc::ServerBidiReactor<proto::AgentMessage, proto::ServerMessage>* Attach(
      grpc::CallbackServerContext* /*context*/) override {
    return rpc::Converse<proto::AgentMessage, proto::ServerMessage>(
        loop_, [this](Call& call) { return Serve(call); });
  }

  void Send(const proto::ServerMessage& message) { call_->Push(message); }
  // Ends the stream at the next message from the agent, as a crash would.
  void DropConnection() {
    is_dropping_ = true;
    dropped_.Notify();
  }
  bool is_attached() const { return call_ != nullptr; }
  // All that the task has written has come.
  bool IsComplete(const Key& key) {
    Seen& task = seen[key];
    return task.exited && task.output[0].size() >= task.exited->stdout_size() &&
           task.output[1].size() >= task.exited->stderr_size();
  }

  std::map<Key, Seen> seen;
  std::vector<proto::AgentMessage::Launch> launches;
  std::vector<proto::RankFence> fences;
  std::optional<proto::AgentMessage::Hello> hello;
  int hellos = 0;         // on streams that stood
  int unheard_exits = 0;  // so many are lost
  std::optional<proto::AgentMessage::Load> load;
  bool is_acknowledging = true;
  bool is_relaunching = true;    // false: as queue servers of before
  std::string account;           // of helpers
  size_t drop_after = SIZE_MAX;  // bytes of output, once

 private:
  awaitable<absl::Status> Serve(Call& call);
  void OnMessage(const proto::AgentMessage& message);
  void OnOutput(const proto::AgentMessage::Output& output);
  void OnExited(const proto::AgentMessage::Exited& exited);
  void OnLaunch(const proto::AgentMessage::Launch& launch);
  void OnLaunchInput(const proto::AgentMessage::LaunchInput& input);

  Loop& loop_;
  Signal dropped_{loop_};
  Call* call_ = nullptr;
  bool is_dropping_ = false;
  std::map<uint64_t, int> helper_of_;  // by launch
  std::map<int, uint64_t> launch_of_;  // by helper
};

// One agent's life; end it to see what the next one makes of what it left.
class Agent {
 public:
  Agent(Loop& loop, const std::string& root, const std::string& server, const CgroupPlace& place,
        const std::string& boot_id, uint64_t output_limit, std::chrono::milliseconds hello_every);
  ~Agent();

  Watcher watcher;
  Outbox outbox;
  std::unique_ptr<Tasks> tasks;
  Launches launches;
  std::unique_ptr<LauncherService> launcher;
  std::unique_ptr<PmiServer> pmi;
  std::unique_ptr<grpc::Server> door;
  std::shared_ptr<Session> session;

 private:
  Loop& loop_;
};

}  // namespace sekisho::agent
