// SPDX-License-Identifier: Apache-2.0
#include "qserver/site_state.h"

#include <algorithm>

#include "qserver/engine.h"

namespace sekisho::qserver {
namespace {

void AddNode(const proto::NodeInfo& node, const NodeFacts* agent, int busy, proto::ResourceState& resource) {
  resource.set_nodes(resource.nodes() + 1);
  resource.set_processors_per_node(node.processors());
  resource.set_clock_mhz(node.clock_mhz());
  resource.set_architecture(node.architecture());
  resource.set_os(node.os());
  resource.set_memory_mb(node.memory_mb());
  if (agent == nullptr) {
    return;
  }
  resource.set_nodes_up(resource.nodes_up() + 1);
  resource.set_nodes_used(resource.nodes_used() + (busy > 0));
  resource.set_processors_up(resource.processors_up() + node.processors());
  resource.set_processors_free(resource.processors_free() + std::max(0, node.processors() - busy));
}

// What the inventory leaves open, an agent of the resource has said.
void FillIn(const NodeFacts& agent, proto::ResourceState& resource) {
  if (resource.architecture().empty()) resource.set_architecture(agent.architecture);
  if (resource.os().empty()) resource.set_os(agent.os);
  if (resource.memory_mb() == 0) resource.set_memory_mb(agent.memory_mb);
}

// Rounded, so that a directory is not told of every job that waited a moment longer.
int64_t RoundedSeconds(double milliseconds) {
  const auto seconds = int64_t(milliseconds / 1000);
  for (const int64_t step : {3600, 600, 60, 10}) {
    if (seconds >= 10 * step) {
      return seconds / step * step;
    }
  }
  return seconds;
}

}  // namespace

proto::SiteState MakeSiteState(const SiteFacts& facts, const proto::InventoryReply& inventory,
                               bool has_allocator, const std::map<std::string, NodeFacts>& attached,
                               const std::map<std::string, int>& busy, const Census& census) {
  proto::SiteState state;
  state.set_site(facts.site);
  state.set_version(facts.version);
  state.set_policy(inventory.policy());
  state.set_has_allocator(has_allocator);
  state.set_wall_time_max_s(facts.wall_time_max_s);
  state.mutable_mpi()->Add(facts.mpi.begin(), facts.mpi.end());
  state.set_started_ms(facts.started_ms);

  std::map<std::string, proto::ResourceState*> by_name;
  for (const proto::ResourceInfo& info : inventory.resource()) {
    proto::ResourceState& resource = *state.add_resource();
    by_name[info.name()] = &resource;
    resource.set_name(info.name());
    resource.set_is_machine(info.is_machine());
    *resource.mutable_queue() = info.queue();
    *resource.mutable_tag() = info.tag();
  }
  std::map<std::string, const NodeFacts*> agents;  // by resource: the first that is there
  for (const proto::NodeInfo& node : inventory.node()) {
    const auto resource = by_name.find(node.resource());
    if (resource == by_name.end()) {
      continue;
    }
    const auto agent = attached.find(node.name());
    const auto used = busy.find(node.name());
    AddNode(node, agent == attached.end() ? nullptr : &agent->second, used == busy.end() ? 0 : used->second,
            *resource->second);
    if (agent != attached.end()) {
      agents.try_emplace(node.resource(), &agent->second);
    }
  }
  for (const auto& [name, agent] : agents) {
    FillIn(*agent, *by_name[name]);
  }

  // Every queue has a share, whether or not a job ever came by it; what is left over has none.
  std::map<std::string, proto::ShareState> shares;
  shares["jobmanager-agent"];
  for (const std::string& queue : inventory.queue()) {
    shares["jobmanager-agent-" + queue].set_queue(queue);
  }
  if (facts.has_engine) {
    shares[std::string(kEngineService)].set_has_engine(true);
  }
  for (const auto& [service, counted] : census.shares()) {
    auto found = shares.find(service);
    if (found == shares.end()) {
      if (counted.running + counted.waiting == 0 || !facts.has_engine || !IsEngineService(service)) {
        continue;  // a queue that the site no longer has
      }
      found = shares.try_emplace(service).first;
      found->second.set_has_engine(true);
      found->second.set_queue(service.substr(kEngineService.size() + 1));
    }
    proto::ShareState& share = found->second;
    share.set_running(counted.running);
    share.set_suspended(counted.suspended);
    share.set_waiting(counted.waiting);
    share.set_slots_used(counted.slots_used);
    share.set_slots_requested(counted.slots_requested);
    share.set_average_wait_s(RoundedSeconds(counted.average_wait_ms));
  }
  for (const auto& [id, activity] : census.activities()) {
    if (shares.count(activity.service()) > 0) {
      *state.add_activity() = activity;
    }
  }
  for (auto& [service, share] : shares) {
    share.set_service(service);
    *state.add_share() = std::move(share);
  }
  return state;
}

}  // namespace sekisho::qserver
