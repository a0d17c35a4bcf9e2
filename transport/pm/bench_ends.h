// SPDX-License-Identifier: Apache-2.0
// One end of a measurement, its other end in a process of its own: over PM or over TCP, alike in
// all else.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <memory>

#include "transport/pm/bench_process.h"
#include "transport/pm/context.h"

namespace sekisho::pm {

// Where a stranger sends bad packets meanwhile.
enum class Target : std::uint8_t {
  kNone,
  kJob,        // the socket of the node that receives
  kBystander,  // one that nobody reads: what the stranger and the kernel take, and not the job
};

struct Traffic {
  std::size_t size = 8;
  bool round_trip = true;  // else one way, as fast as it goes
  Waiting waiting = Waiting::kSpin;
  bool payload_tag = true;
  bool has_tags = true;        // else the eight bytes of a tag are zeros
  int server_core = 1;         // ours is 0
  Nanos period = 0;            // not 0: one message every so often, each with the time it left
  bool offload = true;         // of the network
  int peers = 1;               // of the one node: each in its turn, or to all of them and back
  bool first_contact = false;  // see PeersEnd
  // Of each peer, to all of one node, through a bottleneck; 0: as long as the question.
  std::size_t answer = 0;
  Target target = Target::kNone;

  bool operator==(const Traffic&) const = default;
};

struct Measured {
  double value = 0;              // us a round trip, or bytes that arrived a second
  double processor_seconds = 0;  // of both ends, a GiB
  // us that messages of a period were under way, or rounds of answers took
  double median = 0, p99 = 0, p999 = 0, most = 0;
  // Of a stranger: datagrams a second, its processor time a second, and how many were believed.
  double bad_packets = 0, stranger_processor = 0, accepted = 0;
};

class Measurement {
 public:
  Measurement() = default;
  virtual ~Measurement() = default;
  Measurement(const Measurement&) = delete;
  Measurement& operator=(const Measurement&) = delete;
  virtual Measured Run(Nanos time) = 0;
  // What was sent twice, and why, as far as this end knows.
  virtual void Explain() {}
};

class End : public Measurement {
 public:
  ~End() override;
  Measured Run(Nanos time) override;

 protected:
  // What both ends see.
  struct Board {
    static constexpr std::uint32_t kDelays = 1 << 21;
    std::atomic<std::uint64_t> arrived{0};  // bytes, one way
    std::atomic<std::uint32_t> delay_count{0};
    std::array<float, kDelays> delays;  // us
  };

  explicit End(const Traffic& traffic);
  void Fork();
  virtual void Serve() = 0;
  virtual void RoundTrip() = 0;
  virtual void SendSome() = 0;
  // `stamp`, and then bytes up to the message's size.
  virtual void SendStamped(Nanos stamp) = 0;
  virtual void Progress() {}
  void NoteDelay(const void* message);
  // Around what is measured, while the server runs.
  virtual void Begin() {}
  virtual void Finish(Measured& /*measured*/) {}

  const Traffic traffic_;
  Board* board_ = nullptr;
  std::unique_ptr<BenchProcess> server_;

 private:
  void SendPaced(Nanos end);
  void TakeDelays(Measured& measured);
};

std::unique_ptr<Measurement> OpenPmEnd(const Traffic& traffic);
std::unique_ptr<Measurement> OpenTcpEnd(const Traffic& traffic);
// TCP with another congestion control, if the kernel has it.
bool HasBbr();
std::unique_ptr<Measurement> OpenBbrEnd(const Traffic& traffic);

}  // namespace sekisho::pm
