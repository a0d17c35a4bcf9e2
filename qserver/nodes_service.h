// SPDX-License-Identifier: Apache-2.0
// The agents' streams: docs/protocol/7-nodes.md.
#pragma once

#include <chrono>
#include <functional>

#include "common/loop.h"
#include "common/rpc_server.h"
#include "proto/nodes.grpc.pb.h"
#include "qserver/conductor.h"
#include "qserver/known_nodes.h"
#include "qserver/network_watch.h"

namespace sekisho::qserver {

class NodesService final : public proto::Nodes::CallbackService {
 public:
  // May the peer speak for this node?
  using Judge =
      std::function<absl::Status(const grpc::CallbackServerContext&, const std::string& node)>;
  // The name under which a pilot speaks.
  using JudgePilot = std::function<absl::StatusOr<std::string>(
      const grpc::CallbackServerContext&, const proto::AgentMessage::Hello& hello)>;

  NodesService(Loop& loop, Conductor& conductor, KnownNodes& known, Judge judge, JudgePilot judge_pilot = {},
               std::chrono::milliseconds hello_within = std::chrono::seconds(10))
      : loop_(loop),
        conductor_(conductor),
        known_(known),
        judge_(std::move(judge)),
        judge_pilot_(std::move(judge_pilot)),
        hello_within_(hello_within) {}

  // The nodes' network is kept.  Before anything is served.
  void SetNetwork(NetworkWatch& network) { network_ = &network; }

  grpc::ServerBidiReactor<proto::AgentMessage, proto::ServerMessage>* Attach(
      grpc::CallbackServerContext* context) override;

 private:
  using Stream = rpc::Duplex<proto::AgentMessage, proto::ServerMessage>;
  awaitable<absl::Status> Serve(grpc::CallbackServerContext& context, Stream& stream);
  awaitable<bool> HearHello(grpc::CallbackServerContext& context, Stream& stream, proto::AgentMessage& message);
  awaitable<absl::Status> JudgeHello(grpc::CallbackServerContext& context, proto::AgentMessage::Hello& hello);
  awaitable<absl::Status> CheckListed(std::string node);

  Loop& loop_;
  Conductor& conductor_;
  KnownNodes& known_;
  const Judge judge_;
  const JudgePilot judge_pilot_;
  const std::chrono::milliseconds hello_within_;
  NetworkWatch* network_ = nullptr;
};

}  // namespace sekisho::qserver
