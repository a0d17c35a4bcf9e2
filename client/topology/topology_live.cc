// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_live.h"

#include "topology/probe/dispatcher.h"

namespace sekisho::client {
namespace {

void Take(const TopologyProbers::Event& event, topology::Dispatcher& dispatcher,
          topology::Method& method) {
  if (!event.answer) {
    dispatcher.Kill(event.host);
    method.Lose(event.host);
  } else if (const topology::Request* request = dispatcher.Find(event.id)) {
    // What is no answer is none.
    dispatcher.Report(event.id,
                      topology::ParseAnswer(*event.answer, *request).value_or(topology::Answer{}));
  }
}

}  // namespace

topology::RunTotals RunLive(topology::Method& method, TopologyProbers& probers, int most_at_once) {
  topology::Dispatcher dispatcher(probers.count(), most_at_once);
  for (int host = 0; host < probers.count(); ++host) {
    if (!probers.Lost(host).empty()) {
      dispatcher.Kill(host);
      method.Lose(host);
    }
  }
  topology::RunTotals totals;
  const auto begin = TopologyProbers::Clock::now();
  for (;;) {
    for (const topology::Request& request : method.Next()) {
      dispatcher.Add(request);
    }
    for (const topology::Dispatcher::Order& order : dispatcher.Start()) {
      probers.Order(
          order.request.from, order.id,
          topology::PrintMeasureOrder(order.id, probers.Ready(order.request.to).at, order.request));
    }
    const auto done = dispatcher.TakeDone();
    for (const auto& [request, answer] : done) {
      ++totals.measurements;
      totals.pings += answer.pings;
      totals.relayed += answer.is_relayed ? 1 : 0;
      method.Report(request, answer);
    }
    if (!done.empty()) {
      continue;
    }
    if (dispatcher.IsIdle()) {
      break;
    }
    for (const TopologyProbers::Event& event : probers.Wait()) {
      Take(event, dispatcher, method);
    }
  }
  totals.makespan_us =
      std::chrono::duration<double, std::micro>(TopologyProbers::Clock::now() - begin).count();
  return totals;
}

}  // namespace sekisho::client
