// SPDX-License-Identifier: Apache-2.0
#include "qserver/figures.h"

#include "common/job_state.h"

namespace sekisho::qserver {

void AddFigures(Metrics& metrics, const Conductor& conductor, const InventoryWatch& inventory, uint64_t next_event) {
  for (const auto& [service, share] : conductor.queue().census().shares()) {
    metrics.Gauge("jobs", "Jobs that wait or run.", double(share.waiting), {{"service", service}, {"state", "waiting"}});
    metrics.Gauge("jobs", "", double(share.running - share.suspended), {{"service", service}, {"state", "running"}});
    metrics.Gauge("jobs", "", double(share.suspended), {{"service", service}, {"state", "suspended"}});
  }
  for (const auto& [service, share] : conductor.queue().census().shares()) {
    metrics.Gauge("wait_seconds", "How long jobs waited that began lately; newer ones count more.",
                  share.average_wait_ms / 1000, {{"service", service}});
  }
  for (const proto::JobState state : {proto::DONE, proto::FAILED, proto::CANCELLED}) {
    const auto ended = conductor.ended().find(state);
    metrics.Counter("jobs_ended_total", "Jobs that have ended since the start.",
                    ended == conductor.ended().end() ? 0 : double(ended->second), {{"state", StateName(state)}});
  }
  int up = 0;
  int processors = 0;
  int busy = 0;
  for (const auto& [node, count] : conductor.queue().BusyByNode()) {
    busy += count;
  }
  for (const proto::NodeInfo& node : inventory.inventory().node()) {
    processors += node.processors();
    up += int(conductor.nodes().count(node.name()));
  }
  metrics.Gauge("nodes", "Nodes of the inventory.", inventory.inventory().node_size());
  metrics.Gauge("nodes_up", "Nodes whose agents are attached.", up);
  metrics.Gauge("processors", "Processors of the inventory.", processors);
  metrics.Gauge("processors_busy", "Processors that jobs hold.", busy);
  metrics.Gauge("allocator_up", "1: the allocator answers.", inventory.is_current());
  metrics.Gauge("restrictions", "Bans in force.", conductor.restrictions().Show().banned_size(), {{"kind", "ban"}});
  metrics.Gauge("restrictions", "", conductor.restrictions().Show().drained_size(), {{"kind", "drain"}});
  metrics.Gauge("last_event", "The number of the newest event.", double(next_event - 1));
}

}  // namespace sekisho::qserver
