// SPDX-License-Identifier: Apache-2.0
// The agents' streams: docs/protocol/7-nodes.md.
#pragma once

#include <functional>
#include <set>

#include "common/loop.h"
#include "common/rpc_server.h"
#include "proto/nodes.grpc.pb.h"
#include "qserver/conductor.h"

namespace sekisho::qserver {

class NodesService final : public proto::Nodes::CallbackService {
 public:
  // May the peer speak for this node?
  using Judge =
      std::function<absl::Status(const grpc::CallbackServerContext&, const std::string& node)>;

  NodesService(Loop& loop, Conductor& conductor, Judge judge)
      : loop_(loop), conductor_(conductor), judge_(std::move(judge)) {}

  grpc::ServerBidiReactor<proto::AgentMessage, proto::ServerMessage>* Attach(
      grpc::CallbackServerContext* context) override;

 private:
  using Stream = rpc::Duplex<proto::AgentMessage, proto::ServerMessage>;
  awaitable<absl::Status> Serve(grpc::CallbackServerContext& context, Stream& stream);
  awaitable<absl::Status> CheckListed(std::string node);

  Loop& loop_;
  Conductor& conductor_;
  const Judge judge_;
  std::set<std::string> listed_;  // the inventory's nodes, as last heard
};

}  // namespace sekisho::qserver
