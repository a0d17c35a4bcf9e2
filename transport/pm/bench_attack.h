// SPDX-License-Identifier: Apache-2.0
// A stranger who sends bad packets to a running job.
#pragma once

#include <atomic>
#include <vector>

#include "transport/pm/bench_ends.h"

namespace sekisho::pm {

// Sends 200,000 datagrams a second while it goes: a third of them random, a third genuine but for
// the number, which is new, so that the tag is computed, a third genuine ones once more.
class Stranger {
 public:
  static constexpr int kRate = 200'000;

  // Both nodes are in this process as yet, and nothing is under way.
  Stranger(Context& sender, Context& receiver, Target target);
  ~Stranger();
  Stranger(const Stranger&) = delete;
  Stranger& operator=(const Stranger&) = delete;

  void Go();
  // What it did since.
  void Stop(Measured& measured);

 private:
  using Datagram = std::vector<std::uint8_t>;
  // Datagrams of one size, sent by one call: else the stranger took a core of a small machine.
  struct Train {
    std::size_t step;
    Datagram bytes;
  };

  void Listen(Context& sender, Context& receiver);
  void Prepare();
  void Send(const Address& to);

  std::vector<Datagram> genuine_;
  std::vector<Train> trains_;
  UdpSocket bystander_;
  Address bystander_address_;
  std::atomic<std::uint64_t>* sent_;
  std::unique_ptr<BenchProcess> process_;
  Nanos went_ = 0;
  std::uint64_t sent_before_ = 0;
  double processor_before_ = 0;
};

// Datagrams that were dropped for what was in them.
std::uint64_t Dropped(const Counters& counters);

}  // namespace sekisho::pm
