// SPDX-License-Identifier: Apache-2.0
// One node and its many peers: what is measured.
#include "transport/pm/bench_peers.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>

namespace sekisho::pm {

void PeersEnd::RoundTrip() {
  SendSome();
  Await(traffic_.peers);
}

// Nobody looks for what comes back but the library.
void PeersEnd::SendSome() {
  for (int peer = 0; peer < traffic_.peers; ++peer) SendTo(peer);
}

void PeersEnd::SendStamped(Nanos stamp) { memcpy(text_.data(), &stamp, sizeof stamp); }

// The round trip, in us.
float PeersEnd::Exchange(int peer) {
  const Nanos begin = Wire::Now();
  SendStamped(begin);
  SendTo(peer);
  Await(1);
  return static_cast<float>(Wire::Now() - begin) / kMicrosecond;
}

Measured PeersEnd::Run(Nanos time) {
  return traffic_.first_contact ? ToNewPeers() : is_incast() ? ManyToOne(time) : End::Run(time);
}

// All are asked at once for a block; a round is over when all of it is there.
Measured PeersEnd::ManyToOne(Nanos time) {
  constexpr Nanos kForAcknowledgements = 10 * kMillisecond;
  std::vector<double> rounds;
  server_->Go();
  RoundTrip();  // some were stopped for long
  const Nanos begin = Wire::Now();
  Nanos now = begin;
  while (now - begin < time) {
    const Nanos before = now;
    RoundTrip();
    now = Wire::Now();
    rounds.push_back(static_cast<double>(now - before) / kMicrosecond);
  }
  while (Wire::Now() - now < kForAcknowledgements) Progress();
  server_->Stop();
  std::sort(rounds.begin(), rounds.end());
  const auto at = [&rounds](double part) {
    const auto rank =
        static_cast<std::size_t>(std::ceil(part * static_cast<double>(rounds.size())));
    return rounds[rank - 1];
  };
  const auto bytes = static_cast<double>(rounds.size() * answer_size()) * traffic_.peers;
  Measured measured;
  measured.value = bytes * kSecond / static_cast<double>(now - begin);
  measured.median = at(0.5);
  measured.p99 = at(0.99);
  measured.most = rounds.back();
  return measured;
}

// First contact: until the first message is delivered, in round trips of those that follow.
Measured PeersEnd::ToNewPeers() {
  constexpr int kSettling = 4, kMeasured = 16;
  const auto middle = [](std::vector<float>& values) {
    std::nth_element(values.begin(), values.begin() + values.size() / 2, values.end());
    return values[values.size() / 2];
  };
  std::vector<float> first, later;
  server_->Go();
  for (int peer = 0; peer < traffic_.peers; ++peer) {
    Exchange(peer);
    first.push_back(board_->delays[board_->delay_count.load() - 1]);
    for (int i = 0; i < kSettling; ++i) Exchange(peer);
    for (int i = 0; i < kMeasured; ++i) later.push_back(Exchange(peer));
  }
  server_->Stop();
  return {middle(first) / middle(later), 0};
}

namespace {

template <std::unique_ptr<Measurement> (*kOpen)(const Traffic&)>
class Anew final : public Measurement {
 public:
  explicit Anew(const Traffic& traffic) : traffic_(traffic) {}
  Measured Run(Nanos time) override { return kOpen(traffic_)->Run(time); }

 private:
  const Traffic traffic_;
};

}  // namespace

std::unique_ptr<Measurement> OpenNewPmPeers(const Traffic& traffic) {
  return std::make_unique<Anew<OpenPmPeers>>(traffic);
}

std::unique_ptr<Measurement> OpenNewTcpPeers(const Traffic& traffic) {
  return std::make_unique<Anew<OpenTcpPeers>>(traffic);
}

Readable::Readable() : fd_(epoll_create1(EPOLL_CLOEXEC)) {
  if (fd_ < 0) Die("epoll_create1");
}

Readable::~Readable() { close(fd_); }

void Readable::Add(int fd, std::uint32_t tag) {
  epoll_event event = {EPOLLIN, {.u32 = tag}};
  if (epoll_ctl(fd_, EPOLL_CTL_ADD, fd, &event) != 0) Die("epoll_ctl");
}

std::span<const epoll_event> Readable::Wait(Nanos until) {
  const Nanos left = until == kNever ? 0 : std::max<Nanos>(until - Wire::Now(), 0);
  const timespec time = {left / kSecond, left % kSecond};
  const int count = epoll_pwait2(fd_, events_.data(), static_cast<int>(events_.size()),
                                 until == kNever ? nullptr : &time, nullptr);
  if (count < 0 && errno != EINTR) Die("epoll_pwait2");  // we are stopped now and then
  return std::span(events_).first(static_cast<std::size_t>(std::max(count, 0)));
}

}  // namespace sekisho::pm
