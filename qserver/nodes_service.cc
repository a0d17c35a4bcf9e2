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
  NetworkWatch* network;  // of nodes that are no pilots
  ~Attachment() {
    conductor.Detach(node, generation);
    if (network != nullptr && conductor.nodes().count(node) == 0) {
      network->Detached(node);
    }
  }
};

// Ends the call unless it goes away in time.
class Patience {
 public:
  Patience(Loop& loop, grpc::CallbackServerContext& context, std::chrono::milliseconds limit)
      : timer_(loop, limit) {
    timer_.async_wait([&context, is_over = is_over_](const std::error_code& error) {
      if (!error && !*is_over) {
        context.TryCancel();
      }
    });
  }
  ~Patience() { *is_over_ = true; }
  Patience(const Patience&) = delete;
  Patience& operator=(const Patience&) = delete;

 private:
  const std::shared_ptr<bool> is_over_ = std::make_shared<bool>(false);  // the timer may have fired already
  asio::steady_timer timer_;
};

}  // namespace

grpc::ServerBidiReactor<proto::AgentMessage, proto::ServerMessage>* NodesService::Attach(
    grpc::CallbackServerContext* context) {
  return rpc::Converse<proto::AgentMessage, proto::ServerMessage>(
      loop_, [this, context](auto& stream) { return Serve(*context, stream); });
}

awaitable<absl::Status> NodesService::Serve(grpc::CallbackServerContext& context, Stream& stream) {
  proto::AgentMessage message;
  const bool has_hello = co_await HearHello(context, stream, message);
  if (!has_hello) {
    co_return errors::BadRequest("expected Hello first");
  }
  if (const absl::Status status = co_await JudgeHello(context, *message.mutable_hello()); !status.ok()) {
    spdlog::warn("node refused node={}: {}", Printable(message.hello().node()), Printable(Message(status)));
    co_return status;
  }
  if (stream.is_cancelled()) {  // meanwhile
    co_return absl::CancelledError("the agent has gone");
  }
  const std::string node = message.hello().node();
  const uint64_t generation = conductor_.Attach(
      message.hello(), [&stream](proto::ServerMessage out) { stream.Push(std::move(out)); });
  const Attachment attachment{conductor_, node, generation, message.hello().has_pilot() ? nullptr : network_};
  if (attachment.network != nullptr) {
    attachment.network->Attached(node);
  }
  while (co_await stream.Read(message)) {
    if (attachment.network != nullptr && attachment.network->Handle(node, message)) {
      continue;
    }
    if (!conductor_.OnMessage(node, generation, message)) {
      co_return absl::UnavailableError("attach again");
    }
  }
  co_return absl::OkStatus();
}

// A stream that says nothing ends.
awaitable<bool> NodesService::HearHello(grpc::CallbackServerContext& context, Stream& stream,
                                        proto::AgentMessage& message) {
  const Patience patience(loop_, context, hello_within_);
  const bool has_first = co_await stream.Read(message);
  co_return has_first && message.has_hello();
}

// A pilot's node is named after its job.
awaitable<absl::Status> NodesService::JudgeHello(grpc::CallbackServerContext& context,
                                                 proto::AgentMessage::Hello& hello) {
  if (hello.has_pilot()) {
    if (!judge_pilot_) {
      co_return errors::BadPilot("this site has no batch system");
    }
    CO_ASSIGN_OR_RETURN(*hello.mutable_node(), judge_pilot_(context, hello));
    co_return absl::OkStatus();
  }
  CO_RETURN_IF_ERROR(judge_(context, hello.node()));
  co_return co_await CheckListed(hello.node());
}

// Only the inventory's nodes are sent anything.  While the allocator is silent its last word counts.
awaitable<absl::Status> NodesService::CheckListed(std::string node) {
  const auto inventory = co_await conductor_.allocator().Inventory();
  if (inventory.ok()) {
    CO_RETURN_IF_ERROR(co_await known_.Learn(*inventory));
  }
  co_return known_.Check(node);
}

}  // namespace sekisho::qserver
