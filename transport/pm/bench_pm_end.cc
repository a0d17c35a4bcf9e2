// SPDX-License-Identifier: Apache-2.0
// The two ends of a measurement over PM.
#include <poll.h>
#include <stdio.h>
#include <string.h>

#include <vector>

#include "transport/pm/bench_attack.h"
#include "transport/pm/bench_context.h"
#include "transport/pm/bench_ends.h"
#include "transport/pm/bench_pair.h"
#include "transport/pm/bench_tag.h"

namespace sekisho::pm {
namespace {

class PmEnd final : public End {
 public:
  explicit PmEnd(const Traffic& traffic) : End(traffic), text_(traffic.size) {
    const Tagged tagged(traffic.has_tags);
    contexts_[0] = OpenNode(0);
    contexts_[1] = OpenNode(1);
    for (const NodeId node : {0, 1}) {
      const auto other = static_cast<NodeId>(1 - node);
      (void)contexts_[node]->SetAddress(other, contexts_[other]->own_address());
    }
    if (traffic.target != Target::kNone) {
      stranger_ = std::make_unique<Stranger>(*contexts_[0], *contexts_[1], traffic.target);
    }
    Fork();
  }

  Measured Run(Nanos time) override {
    const Tagged tagged(traffic_.has_tags);
    return End::Run(time);
  }

 private:
  std::unique_ptr<Context> OpenNode(NodeId node) {
    Config config = BenchConfig(node);
    config.channels = 1;
    config.payload_tag = traffic_.payload_tag;
    return OpenBenchContext(config, traffic_.waiting);
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
    for (const auto& context : contexts_) ExplainContext(*context);
    if (stranger_ == nullptr) return;
    const Counters& c = contexts_[1]->counters();
    printf("#   dropped: %lu malformed, %lu foreign, %lu bad tags, %lu replayed, %lu too old\n",
           c.malformed, c.foreign, c.bad_tag, c.replayed, c.too_old);
  }

  void Begin() override {
    if (stranger_ != nullptr) stranger_->Go();
  }

  void Finish(Measured& measured) override {
    const Nanos limit = Wire::Now() + 10 * kSecond;
    while (!contexts_[0]->Drained(1) && Wire::Now() < limit) {
      WaitForPeer(*contexts_[0], traffic_.waiting);
    }
    if (stranger_ == nullptr) return;
    stranger_->Stop(measured);
    measured.accepted = Accepted();
  }

  // Bad packets that were believed: while nothing else arrives each of them is to be dropped, and
  // of all that was accepted so far there is no more than was sent.
  double Accepted() {
    const auto accepted = [](const Counters& c) { return c.datagrams_in - Dropped(c); };
    const std::uint64_t& sent = contexts_[0]->counters().datagrams_out;
    for (int i = 0; i < 100; ++i) {
      Settle();
      const std::uint64_t sent_before = sent;
      const std::uint64_t before = accepted(contexts_[1]->counters());
      Measured meanwhile;
      stranger_->Go();
      Pass(20 * kMillisecond);
      stranger_->Stop(meanwhile);
      if (meanwhile.bad_packets == 0) Die("the stranger is gone");
      Settle();
      const std::uint64_t all = accepted(contexts_[1]->counters());
      if (sent != sent_before) continue;  // it acknowledged what the receiver had to repeat
      return static_cast<double>(all - before + (all > sent ? all - sent : 0));
    }
    Die("the sender does not come to rest");
  }

  // Until nothing is sent to the receiver any more, and all that it was sent has been counted.
  void Settle() {
    const Nanos limit = Wire::Now() + 10 * kSecond;
    std::uint64_t sent;
    do {
      if (Wire::Now() > limit) Die("the receiver does not come to rest");
      sent = contexts_[0]->counters().datagrams_out;
      Pass(5 * kMillisecond);
      // Who sleeps has counted all that he read; who was woken, and got no processor yet, has read
      // nothing, and counts as asleep.
    } while (contexts_[0]->counters().datagrams_out != sent || HasInput(contexts_[1]->fd()) ||
             contexts_[1]->head().program_sleeps.load() == 0);
  }

  static bool HasInput(int socket) {
    pollfd waiting = {socket, POLLIN, 0};
    return poll(&waiting, 1, 0) != 0;
  }

  void Pass(Nanos time) {
    for (const Nanos later = Wire::Now() + time; Wire::Now() < later;) contexts_[0]->Sleep(later);
  }

  std::unique_ptr<Stranger> stranger_;
  std::vector<std::uint8_t> text_;
  std::unique_ptr<Context> contexts_[2];
};

}  // namespace

std::unique_ptr<Measurement> OpenPmEnd(const Traffic& traffic) {
  return std::make_unique<PmEnd>(traffic);
}

}  // namespace sekisho::pm
