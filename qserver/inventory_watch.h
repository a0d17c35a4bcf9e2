// SPDX-License-Identifier: Apache-2.0
// The site's inventory as the allocator last said it: told when it was read anew, and kept while the
// allocator is away.
#pragma once

#include <functional>
#include <string>

#include "common/loop.h"
#include "proto/allocation.grpc.pb.h"

namespace sekisho::qserver {

class InventoryWatch {
 public:
  // `target`: as AllocatorLink's.  `on_change` is called on the loop.
  InventoryWatch(Loop& loop, const std::string& target, std::function<void()> on_change);
  InventoryWatch(const InventoryWatch&) = delete;
  InventoryWatch& operator=(const InventoryWatch&) = delete;

  awaitable<void> Run();  // for ever

  const proto::InventoryReply& inventory() const { return inventory_; }
  bool is_current() const { return is_current_; }  // the allocator is there

 private:
  Loop& loop_;
  const std::function<void()> on_change_;
  std::unique_ptr<proto::Allocator::Stub> stub_;
  proto::InventoryReply inventory_;
  bool is_current_ = false;
};

}  // namespace sekisho::qserver
