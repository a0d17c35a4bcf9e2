// SPDX-License-Identifier: Apache-2.0
// The allocator's RPC face: docs/protocol/6-allocation.md.
#pragma once

#include <memory>
#include <string>

#include "allocator/inventory.h"
#include "allocator/near.h"
#include "allocator/policy.h"
#include "allocator/tree_file.h"
#include "common/loop.h"
#include "common/rpc_server.h"
#include "proto/allocation.grpc.pb.h"

namespace sekisho::allocator {

class Service final : public proto::Allocator::CallbackService {
 public:
  Service(Loop& loop, allocator::Inventory inventory, Policy policy, const std::string& topology)
      : loop_(loop), inventory_(std::move(inventory)), policy_(policy), tree_file_(topology), changed_(loop) {}

  // From the next question on.
  void SetInventory(allocator::Inventory inventory) {
    inventory_ = std::move(inventory);
    nearness_ = FindNearness(inventory_, network_);
    ++generation_;
    changed_.Notify();
  }

  const allocator::Inventory& inventory() const { return inventory_; }
  uint64_t questions() const { return questions_; }  // answered
  uint64_t decisions() const { return decisions_; }

  grpc::ServerUnaryReactor* Decide(grpc::CallbackServerContext* context,
                                   const proto::DecideRequest* request,
                                   proto::DecideReply* reply) override;
  grpc::ServerUnaryReactor* Inventory(grpc::CallbackServerContext* context,
                                      const proto::InventoryRequest* request,
                                      proto::InventoryReply* reply) override;
  grpc::ServerWriteReactor<proto::InventoryReply>* WatchInventory(
      grpc::CallbackServerContext* context, const proto::InventoryRequest* request) override;

 private:
  awaitable<absl::Status> HandleDecide(const proto::DecideRequest& request,
                                       proto::DecideReply& reply);
  awaitable<absl::Status> HandleInventory(proto::InventoryReply& reply);
  awaitable<absl::Status> HandleWatchInventory(rpc::Writer<proto::InventoryReply>& writer);
  proto::InventoryReply Describe() const;

  Loop& loop_;
  allocator::Inventory inventory_;
  const Policy policy_;
  TreeFile tree_file_;
  topology::NamedTree network_;
  Nearness nearness_;  // of both
  uint64_t questions_ = 0;
  uint64_t decisions_ = 0;
  uint64_t generation_ = 1;  // of the inventory
  Signal changed_;
};

}  // namespace sekisho::allocator
