// SPDX-License-Identifier: Apache-2.0
// Contexts of a measurement.
#include "transport/pm/bench_context.h"

#include <stdio.h>

#include "transport/pm/bench_network.h"
#include "transport/pm/bench_process.h"

namespace sekisho::pm {

std::unique_ptr<Context> OpenBenchContext(const Config& config, Waiting waiting) {
  const AtHostOf host(config.node);
  std::unique_ptr<Context> context;
  if (Context::Open(config, AddressAt(config.node), nullptr, -1, context, {})) {
    Die("cannot open a context");
  }
  context->set_waiting(waiting);
  return context;
}

void Put(Context& context, NodeId to, Bytes message, Waiting waiting, bool more) {
  const auto send = [&] {
    return more ? context.SendMore(to, 0, message) : context.Send(to, 0, message);
  };
  while (const auto error = send()) {
    if (error != Error::kWouldBlock) Die("PM: the peer is gone");
    context.Progress();
    if (context.Room(to, 0, message.size())) WaitForPeer(context, waiting);
  }
}

void WaitForPeer(Context& context, Waiting waiting) {
  if (waiting == Waiting::kSpin) return context.Progress();
  context.Sleep(Wire::Now() + kMillisecond);
}

void ExplainContext(Context& context) {
  const WireCounters& wire = context.wire_counters();
  const Counters& c = context.counters();
  printf(
      "#   node %u: %lu datagrams out, %lu of them only acks, %lu messages; sent again %lu: %lu by "
      "a gap, %lu probes, %lu time-outs; in vain %lu\n",
      context.config().node, c.datagrams_out, c.acks_only, c.messages_out, c.retransmitted,
      c.lost_by_gap, c.probes, c.timeouts, c.spurious);
  // Those of a node in another process are not to be seen from here.
  if (wire.send_calls > 0) {
    printf("#   sent by %lu calls, asked for more by %lu\n", wire.send_calls, wire.receive_calls);
  }
}

}  // namespace sekisho::pm
