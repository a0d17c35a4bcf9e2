// SPDX-License-Identifier: Apache-2.0
#include "qserver/nodes_service.h"

#include "common/log.h"
#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

// Also when the stream is cut and its coroutine is torn down.
struct Attachment {
  Conductor& conductor;
  std::string node;
  uint64_t generation;
  ~Attachment() { conductor.Detach(node, generation); }
};

}  // namespace

grpc::ServerBidiReactor<proto::AgentMessage, proto::ServerMessage>* NodesService::Attach(
    grpc::CallbackServerContext* context) {
  return rpc::Converse<proto::AgentMessage, proto::ServerMessage>(
      loop_, [this, context](auto& stream) { return Serve(*context, stream); });
}

awaitable<absl::Status> NodesService::Serve(grpc::CallbackServerContext& context, Stream& stream) {
  proto::AgentMessage message;
  const bool has_first = co_await stream.Read(message);
  if (!has_first || !message.has_hello()) {
    co_return errors::BadRequest("expected Hello first");
  }
  const std::string node = message.hello().node();
  if (const absl::Status status = judge_(context, node); !status.ok()) {
    spdlog::warn("node refused node={}: {}", Printable(node), Printable(Message(status)));
    co_return status;
  }
  const absl::Status listed = co_await CheckListed(node);
  if (!listed.ok()) {
    spdlog::warn("node refused node={}: {}", Printable(node), Printable(Message(listed)));
    co_return listed;
  }
  const uint64_t generation = conductor_.Attach(
      message.hello(), [&stream](proto::ServerMessage out) { stream.Push(std::move(out)); });
  const Attachment attachment{conductor_, node, generation};
  while (co_await stream.Read(message)) {
    if (!conductor_.OnMessage(node, generation, message)) {
      co_return absl::UnavailableError("attach again");
    }
  }
  co_return absl::OkStatus();
}

// Only the inventory's nodes are sent anything.  While the allocator is silent its last word counts.
awaitable<absl::Status> NodesService::CheckListed(std::string node) {
  const auto inventory = co_await conductor_.allocator().Inventory();
  if (inventory.ok()) {
    listed_.clear();
    for (const proto::NodeInfo& known : inventory->node()) {
      listed_.insert(known.name());
    }
  }
  co_return listed_.empty() || listed_.count(node) > 0 ? absl::OkStatus()
                                                       : errors::NotInTheInventory(node);
}

}  // namespace sekisho::qserver
