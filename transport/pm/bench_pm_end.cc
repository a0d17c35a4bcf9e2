// SPDX-License-Identifier: Apache-2.0
// The two ends of a measurement over PM.
#include <stdio.h>
#include <string.h>

#include <vector>

#include "transport/pm/bench_ends.h"
#include "transport/pm/bench_pair.h"

namespace sekisho::pm {
namespace {

class PmEnd final : public End {
 public:
  explicit PmEnd(const Traffic& traffic) : End(traffic), text_(traffic.size) {
    contexts_[0] = OpenNode(0);
    contexts_[1] = OpenNode(1);
    for (const NodeId node : {0, 1}) {
      const auto other = static_cast<NodeId>(1 - node);
      (void)contexts_[node]->SetAddress(other, contexts_[other]->own_address());
      contexts_[node]->set_waiting(traffic.waiting);
    }
    Fork();
  }

 private:
  std::unique_ptr<Context> OpenNode(NodeId node) {
    Config config = BenchConfig(node);
    config.channels = 1;
    config.payload_tag = traffic_.payload_tag;
    config.datagram_max = 1472;
    Address own;
    std::unique_ptr<Context> context;
    if (ParseAddress("127.0.0.1:0", own) ||
        Context::Open(config, own, nullptr, -1, context, {.offload = traffic_.offload})) {
      Die("cannot open a context");
    }
    return context;
  }

  void Serve() override {
    Context& own = *contexts_[1];
    Message message;
    for (;;) {
      while (own.Receive(message)) {
        board_->arrived += message.bytes.size();
        if (traffic_.period > 0) NoteDelay(message.bytes.first.data());
        own.Release(message);
        if (traffic_.round_trip) Put(own, 0);
      }
      (void)own.Wait(kNever);
    }
  }

  void Put(Context& context, NodeId to) {
    while (const auto error = context.Send(to, 0, text_)) {
      if (error != Error::kWouldBlock) Die("PM: the peer is gone");
      context.Progress();
      if (context.Room(to, 0, text_.size())) WaitForPeer(context);
    }
  }

  void WaitForPeer(Context& context) {
    if (traffic_.waiting == Waiting::kSpin) return context.Progress();
    context.Sleep(Wire::Now() + kMillisecond);
  }

  void SendStamped(Nanos stamp) override {
    memcpy(text_.data(), &stamp, sizeof stamp);
    Put(*contexts_[0], 1);
  }

  void Progress() override { contexts_[0]->Progress(); }

  void RoundTrip() override {
    Put(*contexts_[0], 1);
    Message message;
    while (!contexts_[0]->Receive(message)) (void)contexts_[0]->Wait(Wire::Now() + kSecond);
    contexts_[0]->Release(message);
  }

  void SendSome() override {
    for (int i = 0; i < 16; ++i) Put(*contexts_[0], 1);
  }

  void Explain() override {
    const WireCounters& wire = contexts_[0]->wire_counters();
    printf("#   sent by %lu calls, asked for more by %lu\n", wire.send_calls, wire.receive_calls);
    for (const auto& context : contexts_) {
      const Counters& c = context->counters();
      printf(
          "#   node %u: %lu datagrams out, %lu of them only acks; sent again %lu: %lu by a gap, "
          "%lu "
          "probes, %lu time-outs; in vain %lu\n",
          context->config().node, c.datagrams_out, c.acks_only, c.retransmitted, c.lost_by_gap,
          c.probes, c.timeouts, c.spurious);
    }
  }

  void Drain() override {
    const Nanos limit = Wire::Now() + 10 * kSecond;
    while (!contexts_[0]->Drained(1) && Wire::Now() < limit) WaitForPeer(*contexts_[0]);
  }

  std::vector<std::uint8_t> text_;
  std::unique_ptr<Context> contexts_[2];
};

}  // namespace

std::unique_ptr<Measurement> OpenPmEnd(const Traffic& traffic) {
  return std::make_unique<PmEnd>(traffic);
}

}  // namespace sekisho::pm
