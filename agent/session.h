// SPDX-License-Identifier: Apache-2.0
// The agent's one connection: dialled, kept, dialled again.  docs/protocol/7-nodes.md.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <optional>

#include <grpcpp/channel.h>

#include "agent/host_facts.h"
#include "agent/launches.h"
#include "agent/outbox.h"
#include "agent/tasks.h"
#include "common/loop.h"
#include "common/rpc_client.h"
#include "proto/nodes.grpc.pb.h"

namespace sekisho::agent {

class Session {
 public:
  struct Settings {
    std::string node;
    HostFacts facts;
    std::function<std::string()> why;  // what the last handshake says of a failed connection
    std::optional<proto::AgentMessage::Pilot> pilot;
    std::function<void()> on_attached;  // after Welcome
    std::function<void(const proto::ServerMessage&)> on_message;  // after it was handled
    std::function<void(const absl::Status&)> on_lost;             // the stream has ended
    std::chrono::milliseconds first_delay{100};
    std::chrono::milliseconds longest_delay{5000};
    std::chrono::milliseconds hello_every{30'000};  // on a stream that stands
  };

  Session(Loop& loop, std::shared_ptr<grpc::Channel> channel, Outbox& outbox, Tasks& tasks,
          Launches& launches, Settings settings);
  ~Session();
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;

  // Until Stop().
  awaitable<void> Run();
  void Stop();

  // Sends the load every ten seconds, and a second after it has changed.
  awaitable<void> ReportLoad();
  void LoadChanged() { load_changed_.Notify(); }

  // Says now and then, on the stream that stands, what this node holds and how far that is.
  awaitable<void> RepeatHello();

 private:
  using Call = rpc::ClientDuplex<proto::AgentMessage, proto::ServerMessage>;

  awaitable<absl::Status> Attend();
  rpc::CallOptions Introduction() const;
  proto::AgentMessage Hello() const;

  Loop& loop_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<proto::Nodes::Stub> stub_;
  Outbox& outbox_;
  Tasks& tasks_;
  Launches& launches_;
  Settings settings_;
  Signal load_changed_;
  Signal stopping_;
  Signal hello_due_;
  std::shared_ptr<Call> call_;
  bool is_stopped_ = false;
  bool was_attached_ = false;  // during the last Attend()
};

}  // namespace sekisho::agent
