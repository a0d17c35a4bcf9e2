// SPDX-License-Identifier: Apache-2.0
// A site to publish.
#pragma once

#include "directory/entries.h"

namespace sekisho::directory {

inline constexpr char kTestBase[] = "GLUE2GroupID=grid,o=glue";

inline Profile TestProfile(const std::string& site = "siteA") {
  Profile profile;
  profile.site = site;
  profile.contact = "a-dmz:2119";
  profile.description = "A site";
  profile.access = {"dn:/O=Lab/*"};
  profile.nodes_reach_out = true;
  profile.protocols = {"relay a-dmz:7514"};
  profile.links = {{"site B", 8.5, 0}};
  return profile;
}

inline proto::SiteState TestState(const std::string& queue = "", const std::string& resource = "mikan") {
  proto::SiteState state;
  state.set_site("siteA");
  state.set_version("0.1.0");
  state.set_has_allocator(true);
  state.set_wall_time_max_s(3600);
  state.add_mpi("mpich");
  state.set_started_ms(1'795'000'000'000);
  proto::ResourceState& nodes = *state.add_resource();
  nodes.set_name(resource);
  nodes.set_architecture("x86_64");
  nodes.set_os("debian12");
  nodes.set_memory_mb(8192);
  nodes.set_clock_mhz(2400);
  nodes.set_processors_per_node(8);
  nodes.set_nodes(2);
  nodes.set_nodes_up(2);
  nodes.set_nodes_used(1);
  nodes.set_processors_up(16);
  nodes.set_processors_free(12);
  nodes.add_tag("ethernet");
  proto::ShareState& share = *state.add_share();
  share.set_service("jobmanager-agent");
  share.set_running(1);
  share.set_slots_used(4);
  if (!queue.empty()) {
    nodes.add_queue(queue);
    proto::ShareState& named = *state.add_share();
    named.set_service("jobmanager-agent-" + queue);
    named.set_queue(queue);
  }
  return state;
}

}  // namespace sekisho::directory
