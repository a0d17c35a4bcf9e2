// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_live.h"

#include <cmath>

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

double SecondsSince(TopologyProbers::Clock::time_point begin) {
  return std::chrono::duration<double>(TopologyProbers::Clock::now() - begin).count();
}

TopologyProbers::Clock::time_point At(TopologyProbers::Clock::time_point begin, double seconds) {
  if (std::isinf(seconds)) {
    return TopologyProbers::Clock::time_point::max();
  }
  return begin + std::chrono::duration_cast<TopologyProbers::Clock::duration>(std::chrono::duration<double>(seconds));
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
    for (const topology::Dispatcher::Order& order : dispatcher.Start(SecondsSince(begin))) {
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
    for (const TopologyProbers::Event& event : probers.Wait(At(begin, dispatcher.NextStart()))) {
      Take(event, dispatcher, method);
    }
  }
  totals.makespan_us = SecondsSince(begin) * 1e6;
  return totals;
}

}  // namespace sekisho::client
