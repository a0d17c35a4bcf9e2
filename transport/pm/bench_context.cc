// SPDX-License-Identifier: Apache-2.0
// Contexts of a measurement.
#include "transport/pm/bench_context.h"

#include "transport/pm/bench_process.h"

namespace sekisho::pm {

std::unique_ptr<Context> OpenBenchContext(const Config& config, bool offload, Waiting waiting) {
  Address own;
  std::unique_ptr<Context> context;
  if (ParseAddress("127.0.0.1:0", own) ||
      Context::Open(config, own, nullptr, -1, context, {.offload = offload})) {
    Die("cannot open a context");
  }
  context->set_waiting(waiting);
  return context;
}

void Put(Context& context, NodeId to, Bytes message, Waiting waiting) {
  while (const auto error = context.Send(to, 0, message)) {
    if (error != Error::kWouldBlock) Die("PM: the peer is gone");
    context.Progress();
    if (context.Room(to, 0, message.size())) WaitForPeer(context, waiting);
  }
}

void WaitForPeer(Context& context, Waiting waiting) {
  if (waiting == Waiting::kSpin) return context.Progress();
  context.Sleep(Wire::Now() + kMillisecond);
}

}  // namespace sekisho::pm
