// SPDX-License-Identifier: Apache-2.0
// A stranger who sends bad packets to a running job.
#include "transport/pm/bench_attack.h"

#include <arpa/inet.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include <algorithm>
#include <iterator>
#include <new>

#include "transport/pm/bench_context.h"
#include "transport/pm/bench_network.h"
#include "transport/pm/udp_offload.h"

namespace sekisho::pm {
namespace {

constexpr std::size_t kKinds = 128;  // of each sort
constexpr std::size_t kInTrain = 8;
constexpr Nanos kNap = kMillisecond / 2;  // a shorter one costs more than what is sent after it

// xorshift: nothing here is secret.
class Noise {
 public:
  std::uint64_t Next() {
    state_ ^= state_ << 13;
    state_ ^= state_ >> 7;
    return state_ ^= state_ << 17;
  }

 private:
  std::uint64_t state_ = 0x9e3779b97f4a7c15;
};

void SleepUntil(Nanos time) {
  const timespec until = {time / kSecond, time % kSecond};
  (void)clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, nullptr);
}

// Bound to any port beside the receiver.
Address OpenBeside(NodeId node, UdpSocket& socket) {
  const AtHostOf host(node);
  sockaddr_in bound{};
  socklen_t size = sizeof bound;
  if (socket.Open(AddressAt(node)) ||
      getsockname(socket.fd(), reinterpret_cast<sockaddr*>(&bound), &size) != 0) {
    Die("cannot open a socket");
  }
  return FromIpv4(bound);
}

}  // namespace

Stranger::Stranger(Context& sender, Context& receiver, Target target) {
  bystander_address_ = OpenBeside(receiver.config().node, bystander_);
  void* shared =
      mmap(nullptr, sizeof *sent_, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) Die("mmap");
  sent_ = new (shared) std::atomic<std::uint64_t>(0);
  Listen(sender, receiver);
  Prepare();
  const Address to = target == Target::kJob ? receiver.own_address() : bystander_address_;
  process_ = std::make_unique<BenchProcess>(kAnyCore, [this, to] { Send(to); });
}

Stranger::~Stranger() { munmap(sent_, sizeof *sent_); }

void Stranger::Go() {
  went_ = Wire::Now();
  sent_before_ = *sent_;
  processor_before_ = process_->processor_seconds();
  process_->Go();
}

void Stranger::Stop(Measured& measured) {
  process_->Stop();
  const double seconds = static_cast<double>(Wire::Now() - went_) / kSecond;
  measured.bad_packets = static_cast<double>(*sent_ - sent_before_) / seconds;
  measured.stranger_processor = (process_->processor_seconds() - processor_before_) / seconds;
}

// Where the receiver's datagrams pass by for a while.
void Stranger::Listen(Context& sender, Context& receiver) {
  const NodeId node = receiver.config().node;
  const std::vector<std::uint8_t> text(8192);
  Datagram room(2048);
  const auto talk = [&] {
    Put(sender, node, text, Waiting::kSpin);
    Message message;
    for (const Nanos limit = Wire::Now() + 10 * kSecond; !sender.Drained(node);) {
      if (Wire::Now() > limit) Die("PM: no answer");
      while (const std::size_t size = bystander_.Receive(room)) {
        (void)bystander_.SendTo(receiver.own_address(), std::span(room).first(size));
        genuine_.emplace_back(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(size));
      }
      receiver.Progress();
      while (receiver.Receive(message)) receiver.Release(message);
      sender.Progress();
    }
  };
  talk();  // the greeting is between themselves
  (void)sender.SetAddress(node, bystander_address_);
  while (genuine_.size() < kKinds) talk();
  (void)sender.SetAddress(node, receiver.own_address());
  talk();
}

void Stranger::Prepare() {
  Noise noise;
  std::uint64_t number = 1ull << 40;  // ahead of all that are sent
  for (std::size_t i = 0; i < kKinds; ++i) {
    const Datagram& genuine = genuine_[i];
    Packet packet;
    if (ParsePacket(genuine, packet) != ParseError::kNone) Die("a genuine packet");
    Train random = {1 + noise.Next() % 160, {}}, changed = {genuine.size(), {}}, again = changed;
    for (std::size_t j = 0; j < kInTrain; ++j) {
      Header header = packet.header;
      header.number = number++;
      const auto at = [j](Train& train) { return train.bytes.data() + j * train.step; };
      again.bytes.insert(again.bytes.end(), genuine.begin(), genuine.end());
      changed.bytes.insert(changed.bytes.end(), genuine.begin(), genuine.end());
      WriteHeader(header, std::span<std::uint8_t, kHeaderSize>(at(changed), kHeaderSize));
      std::generate_n(std::back_inserter(random.bytes), random.step,
                      [&] { return static_cast<std::uint8_t>(noise.Next()); });
      header.control_size = 8;
      if (random.step >= 40 && j % 2 == 0) {  // as far as the tag
        WriteHeader(header, std::span<std::uint8_t, kHeaderSize>(at(random), kHeaderSize));
      }
    }
    trains_.insert(trains_.end(), {random, changed, again});
  }
}

void Stranger::Send(const Address& to) {
  prctl(PR_SET_TIMERSLACK, 1000);
  (void)setpriority(PRIO_PROCESS, 0, -10);  // if allowed: a job slows no stranger down
  const int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  const sockaddr_in address = ToIpv4(to);
  if (fd < 0 || connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    Die("a stranger's socket");
  }
  constexpr Nanos kPeriod = kSecond / kRate * static_cast<Nanos>(kInTrain);
  std::size_t next = 0;
  for (Nanos due = Wire::Now();; due += kPeriod) {
    const Train& train = trains_[next++ % trains_.size()];
    const int step = static_cast<int>(train.step);
    if (setsockopt(fd, SOL_UDP, UDP_SEGMENT, &step, sizeof step) != 0) Die("UDP_SEGMENT");
    if (send(fd, train.bytes.data(), train.bytes.size(), 0) < 0) Die("a stranger's datagrams");
    *sent_ += kInTrain;
    // Who was stopped does not make up for it; else it is ahead by a nap, and then takes it.
    const Nanos now = Wire::Now();
    if (now - due > 5 * kMillisecond) due = now;
    if (due - now >= kNap) SleepUntil(due);
  }
}

std::uint64_t Dropped(const Counters& c) {
  return c.malformed + c.foreign + c.bad_tag + c.replayed + c.too_old + c.bad_cookie +
         c.stale_greeting + c.greeting_deferred + c.no_session + c.bad_frames + c.no_interval;
}

}  // namespace sekisho::pm
