// SPDX-License-Identifier: Apache-2.0
// What the directory is told of the site: docs/protocol/16-directory.md.  Pure.
#pragma once

#include <map>
#include <string>
#include <vector>

#include "proto/allocation.pb.h"
#include "proto/site_state.pb.h"
#include "qserver/census.h"

namespace sekisho::qserver {

// What never changes while the daemon runs.
struct SiteFacts {
  std::string site;
  std::string version;
  int64_t wall_time_max_s = 0;
  std::vector<std::string> mpi;
  bool has_engine = false;
  int64_t started_ms = 0;
};

// What an attached agent says of its node.
struct NodeFacts {
  std::string architecture;
  std::string os;
  int64_t memory_mb = 0;
};

proto::SiteState MakeSiteState(const SiteFacts& facts, const proto::InventoryReply& inventory,
                               bool has_allocator, const std::map<std::string, NodeFacts>& attached,
                               const std::map<std::string, int>& busy, const Census& census);

}  // namespace sekisho::qserver
