// SPDX-License-Identifier: Apache-2.0
#include "allocator/service.h"

#include "allocator/plan.h"

namespace sekisho::allocator {

grpc::ServerUnaryReactor* Service::Decide(grpc::CallbackServerContext* context,
                                          const proto::DecideRequest* request,
                                          proto::DecideReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleDecide(*request, *reply); });
}

awaitable<absl::Status> Service::HandleDecide(const proto::DecideRequest& request,
                                              proto::DecideReply& reply) {
  if (policy_.keeps_jobs_near) {
    if (std::optional<topology::NamedTree> network = tree_file_.Changed()) {
      network_ = *std::move(network);
      nearness_ = FindNearness(inventory_, network_);
    }
  }
  reply = allocator::Decide(inventory_, policy_, request, nearness_);
  ++questions_;
  decisions_ += uint64_t(reply.decision_size());
  co_return absl::OkStatus();
}

grpc::ServerUnaryReactor* Service::Inventory(grpc::CallbackServerContext* context,
                                             const proto::InventoryRequest*,
                                             proto::InventoryReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleInventory(*reply); });
}

awaitable<absl::Status> Service::HandleInventory(proto::InventoryReply& reply) {
  reply = Describe();
  co_return absl::OkStatus();
}

grpc::ServerWriteReactor<proto::InventoryReply>* Service::WatchInventory(grpc::CallbackServerContext*,
                                                                         const proto::InventoryRequest*) {
  return rpc::Stream<proto::InventoryReply>(loop_,
                                            [this](auto& writer) { return HandleWatchInventory(writer); });
}

awaitable<absl::Status> Service::HandleWatchInventory(rpc::Writer<proto::InventoryReply>& writer) {
  for (;;) {
    const uint64_t told = generation_;
    const bool is_there = co_await writer.Write(Describe());
    if (!is_there) {
      co_return absl::CancelledError("the queue server has gone");
    }
    while (generation_ == told) {
      co_await changed_.Wait();
    }
  }
}

proto::InventoryReply Service::Describe() const {
  proto::InventoryReply reply;
  for (const Resource& resource : inventory_.resources) {
    proto::ResourceInfo& info = *reply.add_resource();
    info.set_name(resource.name);
    info.set_is_machine(resource.is_machine);
    info.mutable_queue()->Add(resource.queues.begin(), resource.queues.end());
    info.mutable_tag()->Add(resource.tags.begin(), resource.tags.end());
    for (const std::string& name : resource.nodes) {
      proto::NodeInfo& node = *reply.add_node();
      node.set_name(name);
      node.set_resource(resource.name);
      node.set_processors(resource.processors_per_node);
      node.set_clock_mhz(resource.clock_mhz);
      node.set_architecture(resource.architecture);
      node.set_memory_mb(resource.memory_mb);
      node.set_os(resource.os);
    }
  }
  reply.set_policy(std::string(policy_.name));
  for (const std::string& queue : inventory_.queues()) {
    reply.add_queue(queue);
  }
  return reply;
}

}  // namespace sekisho::allocator
