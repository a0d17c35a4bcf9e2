// SPDX-License-Identifier: Apache-2.0
// The allocator's RPC face: docs/protocol/6-allocation.md.
#pragma once

#include <memory>
#include <string>

#include "allocator/inventory.h"
#include "allocator/policy.h"
#include "common/loop.h"
#include "proto/allocation.grpc.pb.h"

namespace sekisho::allocator {

class Service final : public proto::Allocator::CallbackService {
 public:
  Service(Loop& loop, allocator::Inventory inventory, Policy policy)
      : loop_(loop), inventory_(std::move(inventory)), policy_(policy) {}

  // From the next question on.
  void SetInventory(allocator::Inventory inventory) { inventory_ = std::move(inventory); }

  grpc::ServerUnaryReactor* Decide(grpc::CallbackServerContext* context,
                                   const proto::DecideRequest* request,
                                   proto::DecideReply* reply) override;
  grpc::ServerUnaryReactor* Inventory(grpc::CallbackServerContext* context,
                                      const proto::InventoryRequest* request,
                                      proto::InventoryReply* reply) override;

 private:
  awaitable<absl::Status> HandleDecide(const proto::DecideRequest& request,
                                       proto::DecideReply& reply);
  awaitable<absl::Status> HandleInventory(proto::InventoryReply& reply);

  Loop& loop_;
  allocator::Inventory inventory_;
  const Policy policy_;
};

}  // namespace sekisho::allocator
