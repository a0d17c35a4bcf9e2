// SPDX-License-Identifier: Apache-2.0
// The site's nodes, as the allocator's inventory last said; remembered over a restart, so that nobody is
// taken for one while the allocator is silent, and nodes with tasks are not shut out.
#pragma once

#include <optional>
#include <set>
#include <string>

#include "common/event_store.h"
#include "common/loop.h"
#include "proto/allocation.pb.h"

namespace sekisho::qserver {

class KnownNodes {
 public:
  explicit KnownNodes(EventStore& store) : store_(store) {}
  KnownNodes(const KnownNodes&) = delete;
  KnownNodes& operator=(const KnownNodes&) = delete;

  absl::Status Restore();  // once, before anything is served
  awaitable<absl::Status> Learn(proto::InventoryReply inventory);

  // PermissionDenied: it is none.  Unavailable: the allocator was never heard of.
  absl::Status Check(const std::string& node) const;

 private:
  EventStore& store_;
  std::optional<std::set<std::string>> names_;
};

}  // namespace sekisho::qserver
