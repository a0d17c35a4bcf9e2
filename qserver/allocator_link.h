// SPDX-License-Identifier: Apache-2.0
// The site's allocator, seen from the queue server.
#pragma once

#include <memory>
#include <string>

#include "common/loop.h"
#include "common/status.h"
#include "proto/allocation.pb.h"

namespace sekisho::qserver {

class AllocatorLink {
 public:
  virtual ~AllocatorLink() = default;
  virtual awaitable<absl::StatusOr<proto::DecideReply>> Decide(proto::DecideRequest request) = 0;
  virtual awaitable<absl::StatusOr<proto::InventoryReply>> Inventory() = 0;

  // By gRPC on a Unix socket, or any other target of gRPC's.
  static std::unique_ptr<AllocatorLink> Dial(Loop& loop, const std::string& target);
};

}  // namespace sekisho::qserver
