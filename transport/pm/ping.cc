// SPDX-License-Identifier: Apache-2.0
// Asks a node for a CHALLENGE, and takes the time.
#include "transport/pm/ping.h"

#include <errno.h>
#include <netinet/in.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#include <algorithm>

#include "transport/pm/errors.h"
#include "transport/pm/udp_offload.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kLastAnswer = kSecond;
constexpr std::size_t kSize = kHeaderSize + kGreetingControlSize + kTagSize;
constexpr int kTries = 8;  // of a size, of a train: some may be lost
constexpr int kTrain = 8;

}  // namespace

std::error_code Pinger::Open(const JobFile& job, NodeId as, NodeId to) {
  if (as >= job.nodes || to >= job.nodes || as == to) return Error::kBadNode;
  Address own = job.addresses[as];
  own.port = 0;
  if (const auto error = socket_.Open(own)) return error;
  job_ = &job;
  as_ = as;
  to_ = to;
  key_ = GreetingKey(job.key, {job.context, as, to, 0, 0});
  answer_key_ = GreetingKey(job.key, {job.context, to, as, 0, 0});
  room_.resize(kDatagramMax);
  return {};
}

// Padded to `size`: nobody reads the padding, and the answer is none the larger.
std::size_t Pinger::Write(std::uint64_t nonce, std::size_t size) {
  const MutableBytes room = room_;
  std::fill(room.begin(), room.begin() + static_cast<std::ptrdiff_t>(size), std::uint8_t{0});
  Greeting greeting;
  greeting.incarnation = UINT64_MAX;  // newer than any start: the node answers, and forgets it
  greeting.nonce = nonce;
  WriteHeader({Kind::kHello, 0, job_->context, as_, to_, 0, kGreetingControlSize},
              room.first<kHeaderSize>());
  WriteGreeting(Kind::kHello, greeting, room.subspan<kHeaderSize, kGreetingControlSize>());
  return Seal(key_, nullptr, nullptr, room, size - kTagSize);
}

bool Pinger::IsAnswer(MutableBytes datagram, std::uint64_t& nonce) const {
  Packet packet;
  Greeting greeting;
  if (ParsePacket(datagram, packet) != ParseError::kNone ||
      packet.header.kind != Kind::kChallenge ||
      !pm::Open(answer_key_, nullptr, nullptr, datagram, packet) ||
      !ParseGreeting(Kind::kChallenge, packet.control, greeting)) {
    return false;
  }
  nonce = greeting.nonce;
  return nonce > 0 && nonce < next_nonce_;
}

// Whether there is something to receive.
bool Pinger::Await(Nanos until) const {
  const Nanos left = std::max<Nanos>(until - Wire::Now(), 0);
  const timespec timeout = {left / kSecond, left % kSecond};
  pollfd waiting = {socket_.fd(), POLLIN, 0};
  return ppoll(&waiting, 1, &timeout, nullptr) > 0;
}

void Pinger::Ping(std::uint32_t count, Nanos interval, PingResult& result) {
  std::vector<Nanos> sent_at(count, 0);
  std::vector<bool> answered(count, false);
  const std::uint64_t first = next_nonce_;
  const Nanos begin = Wire::Now();
  std::uint64_t newest = 0;
  while (result.received < count) {
    const Nanos now = Wire::Now();
    if (result.sent < count && now >= begin + result.sent * interval) {
      const std::size_t size = Write(next_nonce_++, kSize);
      sent_at[result.sent++] = now;
      socket_.SendTo(job_->addresses[to_], Bytes(room_).first(size));
    }
    const Nanos next =
        result.sent < count ? begin + result.sent * interval : sent_at[count - 1] + kLastAnswer;
    if (result.sent == count && now >= next) break;
    if (!Await(next)) continue;
    const std::size_t size = socket_.Receive(room_);
    std::uint64_t nonce;
    if (!IsAnswer(MutableBytes(room_).first(size), nonce) || nonce < first) continue;
    const std::size_t number = nonce - first;
    if (answered[number]) {
      ++result.duplicates;
      continue;
    }
    answered[number] = true;
    ++result.received;
    if (nonce < newest) ++result.reordered;
    newest = std::max(newest, nonce);
    result.times.push_back(Wire::Now() - sent_at[number]);
  }
  std::sort(result.times.begin(), result.times.end());
}

// Whether a datagram of so many bytes is answered.  All tries at once: where none is, the wait is
// long.
bool Pinger::Arrives(std::size_t size, Nanos patience) {
  const std::uint64_t first = next_nonce_;
  for (int tries = 0; tries < kTries; ++tries) {
    const std::size_t padded = Write(next_nonce_++, size);
    if (socket_.SendTo(job_->addresses[to_], Bytes(room_).first(padded))) continue;
    if (errno == EMSGSIZE) return false;
  }
  for (const Nanos until = Wire::Now() + patience; Await(until);) {
    std::uint64_t nonce;
    const std::size_t got = socket_.Receive(room_);
    if (IsAnswer(MutableBytes(room_).first(got), nonce) && nonce >= first) return true;
  }
  return false;
}

// A train in one call, and how its answers come.
void Pinger::SendTrain(Nanos patience, bool may_coalesce, PathResult& result) {
  std::vector<std::uint8_t> train;
  const std::uint64_t first = next_nonce_;
  for (int i = 0; i < kTrain; ++i) {
    const std::size_t size = Write(next_nonce_++, kSize);
    train.insert(train.end(), room_.begin(), room_.begin() + static_cast<std::ptrdiff_t>(size));
  }
  if (!socket_.SendTo(job_->addresses[to_], train)) return;
  for (const Nanos until = Wire::Now() + patience; Await(until);) {
    const std::size_t got = socket_.Receive(room_);
    std::uint64_t nonce;
    if (got < kSize || !IsAnswer(MutableBytes(room_).first(kSize), nonce) || nonce < first) {
      continue;
    }
    result.segmentation = true;
    result.coalescing = result.coalescing || (may_coalesce && got > kSize);
  }
}

void Pinger::TryOffloads(Nanos patience, PathResult& result) {
  const int on = 1, step = kSize, off = 0;
  const bool may_coalesce = setsockopt(socket_.fd(), SOL_UDP, UDP_GRO, &on, sizeof on) == 0;
  if (setsockopt(socket_.fd(), SOL_UDP, UDP_SEGMENT, &step, sizeof step) != 0) return;
  const auto is_done = [&] { return result.segmentation && (result.coalescing || !may_coalesce); };
  for (int i = 0; i < kTries && !is_done(); ++i) SendTrain(patience, may_coalesce, result);
  (void)setsockopt(socket_.fd(), SOL_UDP, UDP_SEGMENT, &off, sizeof off);
}

void Pinger::FindPath(Nanos round_trip, PathResult& result) {
  const bool is_v4 = IsMapped(job_->addresses[to_]);
  const std::size_t headers = is_v4 ? 28 : 48;  // IP's and UDP's
  // As PM itself: no fragments, and the kernel's idea of the path does not count.
  const int probe = is_v4 ? IP_PMTUDISC_PROBE : IPV6_PMTUDISC_PROBE;
  (void)setsockopt(socket_.fd(), is_v4 ? IPPROTO_IP : IPPROTO_IPV6,
                   is_v4 ? IP_MTU_DISCOVER : IPV6_MTU_DISCOVER, &probe, sizeof probe);
  const Nanos patience = std::clamp<Nanos>(4 * round_trip, 20 * kMillisecond, kSecond);
  std::size_t arrives = kSize, most = 65535 - headers;
  while (arrives < most) {
    const std::size_t size = (arrives + most + 1) / 2;
    if (Arrives(size, patience)) {
      arrives = size;
    } else {
      most = size - 1;
    }
  }
  result.mtu = arrives > kSize ? arrives + headers : 0;
  TryOffloads(patience, result);
}

}  // namespace sekisho::pm
