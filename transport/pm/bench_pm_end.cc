// SPDX-License-Identifier: Apache-2.0
// The two ends of a measurement over PM.
#include <stdio.h>
#include <string.h>

#include <vector>

#include "transport/pm/bench_context.h"
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
    }
    Fork();
  }

 private:
  std::unique_ptr<Context> OpenNode(NodeId node) {
    Config config = BenchConfig(node);
    config.channels = 1;
    config.payload_tag = traffic_.payload_tag;
    config.datagram_max = 1472;
    return OpenBenchContext(config, traffic_.offload, traffic_.waiting);
  }

  void Serve() override {
    Context& own = *contexts_[1];
    Message message;
    for (;;) {
      while (own.Receive(message)) {
        board_->arrived += message.bytes.size();
        if (traffic_.period > 0) NoteDelay(message.bytes.first.data());
        own.Release(message);
        if (traffic_.round_trip) Put(own, 0, text_, traffic_.waiting);
      }
      (void)own.Wait(kNever);
    }
  }

  void SendStamped(Nanos stamp) override {
    memcpy(text_.data(), &stamp, sizeof stamp);
    Put(*contexts_[0], 1, text_, traffic_.waiting);
  }

  void Progress() override { contexts_[0]->Progress(); }

  void RoundTrip() override {
    Put(*contexts_[0], 1, text_, traffic_.waiting);
    Message message;
    while (!contexts_[0]->Receive(message)) (void)contexts_[0]->Wait(Wire::Now() + kSecond);
    contexts_[0]->Release(message);
  }

  void SendSome() override {
    for (int i = 0; i < 16; ++i) Put(*contexts_[0], 1, text_, traffic_.waiting);
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
    while (!contexts_[0]->Drained(1) && Wire::Now() < limit)
      WaitForPeer(*contexts_[0], traffic_.waiting);
  }

  std::vector<std::uint8_t> text_;
  std::unique_ptr<Context> contexts_[2];
};

}  // namespace

std::unique_ptr<Measurement> OpenPmEnd(const Traffic& traffic) {
  return std::make_unique<PmEnd>(traffic);
}

}  // namespace sekisho::pm
