// SPDX-License-Identifier: Apache-2.0
// Asks a node for a CHALLENGE, and takes the time.
#include "transport/pm/ping.h"

#include <poll.h>
#include <time.h>

#include <algorithm>

#include "transport/pm/errors.h"
#include "transport/pm/wire.h"

namespace sekisho::pm {
namespace {

constexpr Nanos kLastAnswer = kSecond;
constexpr std::size_t kSize = kHeaderSize + kGreetingControlSize + kTagSize;

}  // namespace

std::error_code Ping(const JobFile& job, NodeId as, NodeId to, std::uint32_t count, Nanos interval,
                     PingResult& result) {
  if (as >= job.nodes || to >= job.nodes || as == to) return Error::kBadNode;
  Address own = job.addresses[as];
  own.port = 0;
  UdpSocket socket;
  if (const auto error = socket.Open(own)) return error;
  const SipKey key = GreetingKey(job.key, {job.context, as, to, 0, 0});
  const SipKey answer_key = GreetingKey(job.key, {job.context, to, as, 0, 0});
  std::vector<Nanos> sent_at(count, 0);
  std::vector<bool> answered(count, false);
  const Nanos begin = Wire::Now();
  std::uint64_t newest = 0;
  timespec wall;
  clock_gettime(CLOCK_REALTIME, &wall);
  // Newer than any start: the node answers, and forgets it.
  const auto incarnation = static_cast<std::uint64_t>(wall.tv_sec) * kSecond;
  while (result.received < count) {
    const Nanos now = Wire::Now();
    if (result.sent < count && now >= begin + result.sent * interval) {
      std::array<std::uint8_t, kSize> datagram{};
      Greeting greeting;
      greeting.incarnation = incarnation;
      greeting.nonce = result.sent + 1;
      WriteHeader({Kind::kHello, 0, job.context, as, to, 0, kGreetingControlSize},
                  std::span(datagram).first<kHeaderSize>());
      WriteGreeting(Kind::kHello, greeting,
                    std::span(datagram).subspan<kHeaderSize, kGreetingControlSize>());
      Seal(key, nullptr, nullptr, datagram, kHeaderSize + kGreetingControlSize);
      sent_at[result.sent++] = now;
      socket.SendTo(job.addresses[to], datagram);
    }
    const Nanos next =
        result.sent < count ? begin + result.sent * interval : sent_at[count - 1] + kLastAnswer;
    if (result.sent == count && now >= next) break;
    const Nanos left = std::max<Nanos>(next - now, 0);
    const timespec timeout = {left / kSecond, left % kSecond};
    pollfd waiting = {socket.fd(), POLLIN, 0};
    if (ppoll(&waiting, 1, &timeout, nullptr) <= 0) continue;
    std::array<std::uint8_t, 2048> room;
    const std::size_t size = socket.Receive(room);
    Packet packet;
    Greeting greeting;
    if (ParsePacket(std::span(room).first(size), packet) != ParseError::kNone ||
        packet.header.kind != Kind::kChallenge ||
        !Open(answer_key, nullptr, nullptr, std::span(room).first(size), packet) ||
        !ParseGreeting(Kind::kChallenge, packet.control, greeting) || greeting.nonce == 0 ||
        greeting.nonce > result.sent) {
      continue;
    }
    const std::size_t number = greeting.nonce - 1;
    if (answered[number]) {
      ++result.duplicates;
      continue;
    }
    answered[number] = true;
    ++result.received;
    if (greeting.nonce < newest) ++result.reordered;
    newest = std::max(newest, greeting.nonce);
    result.times.push_back(Wire::Now() - sent_at[number]);
  }
  std::sort(result.times.begin(), result.times.end());
  return {};
}

}  // namespace sekisho::pm
