// SPDX-License-Identifier: Apache-2.0
// Datagrams of strangers at a running session: every one of them is dropped and counted by one
// name, and the job goes on.  PM_ATTACK_RANDOM, PM_ATTACK_MUTATED and PM_ATTACK_REPLAYED choose
// longer runs than those of the test suite, PM_ATTACK_SEED another one.
#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/endpoint.h"
#include "transport/pm/sim/network.h"

namespace sekisho::pm {
namespace {

std::uint64_t Setting(const char* name, std::uint64_t otherwise) {
  const char* value = std::getenv(name);
  return value == nullptr ? otherwise : std::strtoull(value, nullptr, 10);
}

Address AddressOf(NodeId node) {
  Address address;
  address.port = static_cast<std::uint16_t>(1 + node);
  return address;
}

struct Node {
  explicit Node(NodeId id) {
    Config config;
    config.node = id;
    config.key.fill(9);
    config.incarnation = id + 5u;
    memory.resize(Endpoint::MemoryNeeded(config) + 64);
    const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
    EXPECT_FALSE(endpoint.Init(config, MutableBytes(memory).subspan((64 - at % 64) % 64), nullptr,
                               kMillisecond));
    const auto other = static_cast<NodeId>(1 - id);
    EXPECT_FALSE(endpoint.SetAddress(other, AddressOf(other)));
  }

  std::vector<std::uint8_t> memory;
  Endpoint endpoint;
};

// Two nodes that talk, a record of what the first sends, and a stranger who knows all of it.
class Attack : public ::testing::Test {
 protected:
  using Datagram = std::vector<std::uint8_t>;

  Attack() : seed_(Setting("PM_ATTACK_SEED", 1)), random_(seed_) { Talk(); }

  // Messages both ways, until nothing is under way.  Keeps what came first.
  void Talk() {
    const std::uint64_t before = delivered_;
    std::vector<std::uint8_t> text(static_cast<std::size_t>(random_.In(1, 3000)));
    for (int i = 0; i < 8; ++i) {
      EXPECT_FALSE(nodes_[0].endpoint.Send(1, static_cast<ChannelId>(i % 4), text, now_));
      EXPECT_FALSE(nodes_[1].endpoint.Send(0, 0, text, now_));
    }
    for (int i = 0; i < 4000 && !(Quiet() && delivered_ == before + 16); ++i) {
      Carry(0, 1);
      Carry(1, 0);
      now_ += 50 * kMicrosecond;
      for (Node& node : nodes_) {
        if (node.endpoint.NextDeadline() <= now_) node.endpoint.OnTimer(now_);
      }
    }
    ASSERT_EQ(delivered_, before + 16) << "the job does not go on";
  }

  bool Quiet() { return nodes_[0].endpoint.Drained(1) && nodes_[1].endpoint.Drained(0); }

  void Carry(NodeId from, NodeId to) {
    std::array<std::uint8_t, 2048> room;
    Address address;
    while (const std::size_t size = nodes_[from].endpoint.NextDatagram(now_, room, address)) {
      const auto datagram = std::span(room).first(size);
      if (from == 0 && recorded_.size() < 4096) {
        recorded_.emplace_back(datagram.begin(), datagram.end());
      }
      nodes_[to].endpoint.OnDatagram(AddressOf(from), datagram, false, now_);
    }
    Message message;
    while (nodes_[to].endpoint.Receive(message)) {
      ++delivered_;
      EXPECT_FALSE(nodes_[to].endpoint.Release(message.source, message.channel, now_));
    }
  }

  static std::uint64_t Dropped(const Counters& c) {
    return c.malformed + c.foreign + c.bad_tag + c.replayed + c.too_old + c.bad_cookie +
           c.stale_greeting + c.greeting_deferred + c.no_session + c.bad_frames + c.no_interval;
  }

  // How many of `count` datagrams that `make` writes were not dropped.
  template <typename Make>
  std::uint64_t Accepted(std::uint64_t count, Make make) {
    Endpoint& target = nodes_[1].endpoint;
    const Counters before = target.counters();
    const auto begin = std::chrono::steady_clock::now();
    Datagram datagram;
    for (std::uint64_t i = 0; i < count; ++i) {
      make(datagram);
      target.OnDatagram(AddressOf(0), datagram, false, now_);
      if (i % 100'000 != 99'999) continue;
      EXPECT_STREQ(target.Check(), nullptr);
      Talk();
      genuine_ += target.counters().datagrams_in - before.datagrams_in - (i + 1) - genuine_;
    }
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const Counters& after = target.counters();
    std::cout << count << " datagrams in " << took.count() << " s, seed " << seed_ << ": malformed "
              << after.malformed - before.malformed << ", foreign "
              << after.foreign - before.foreign << ", bad tag " << after.bad_tag - before.bad_tag
              << ", replayed " << after.replayed - before.replayed << ", too old "
              << after.too_old - before.too_old << ", no session "
              << after.no_session - before.no_session << "\n";
    EXPECT_EQ(after.sessions, before.sessions);
    EXPECT_STREQ(target.Check(), nullptr);
    Talk();
    return count - (Dropped(after) - Dropped(before));
  }

  std::uint64_t seed_;
  sim::Random random_;
  Nanos now_ = 2 * kMillisecond;
  Node nodes_[2] = {Node(0), Node(1)};
  std::vector<Datagram> recorded_;
  std::uint64_t delivered_ = 0, genuine_ = 0;
};

TEST_F(Attack, OfRandomDatagramsNoneIsAccepted) {
  const std::uint64_t count = Setting("PM_ATTACK_RANDOM", 1'000'000);

  const std::uint64_t accepted = Accepted(count, [this](Datagram& datagram) {
    datagram.resize(random_.Next() % 160);
    for (std::size_t i = 0; i + 8 <= datagram.size(); i += 8) {
      const std::uint64_t word = random_.Next();
      std::copy_n(reinterpret_cast<const std::uint8_t*>(&word), 8, datagram.data() + i);
    }
    // Half of them have a header that leads as far as the tag.
    if (datagram.size() >= 40 && random_.Next() % 2 == 0) {
      WriteHeader(
          {static_cast<Kind>(1 + random_.Next() % 8), static_cast<std::uint8_t>(random_.Next() % 2),
           0, 0, 1, nodes_[0].endpoint.session(1).next_number + random_.Next() % 64,
           static_cast<std::uint16_t>(random_.Next() % 16)},
          std::span(datagram).first<kHeaderSize>());
    }
  });

  EXPECT_EQ(accepted, 0u);
}

TEST_F(Attack, OfMutatedGenuineDatagramsNoneIsAccepted) {
  const std::uint64_t count = Setting("PM_ATTACK_MUTATED", 100'000);

  const std::uint64_t accepted = Accepted(count, [this](Datagram& datagram) {
    do {
      datagram = recorded_[random_.Next() % recorded_.size()];
      switch (random_.Next() % 4) {
        case 0:  // some bits
          for (std::uint64_t i = 1 + random_.Next() % 3; i > 0; --i) {
            datagram[random_.Next() % datagram.size()] ^=
                static_cast<std::uint8_t>(1u << random_.Next() % 8);
          }
          break;
        case 1:  // a number that was not seen yet, and perhaps nothing else
          datagram[8 + random_.Next() % 3] += static_cast<std::uint8_t>(1 + random_.Next() % 255);
          break;
        case 2:  // cut or longer
          datagram.resize(datagram.size() / 2 + random_.Next() % datagram.size());
          break;
        default: {  // a part of another one
          const Datagram& other = recorded_[random_.Next() % recorded_.size()];
          const std::size_t at = random_.Next() % std::min(datagram.size(), other.size());
          std::copy(
              other.begin() + static_cast<std::ptrdiff_t>(at),
              other.begin() + static_cast<std::ptrdiff_t>(std::min(datagram.size(), other.size())),
              datagram.begin() + static_cast<std::ptrdiff_t>(at));
        }
      }
    } while (std::find(recorded_.begin(), recorded_.end(), datagram) != recorded_.end());
  });

  EXPECT_EQ(accepted, 0u);
}

TEST_F(Attack, OfReplayedDatagramsNoneIsAccepted) {
  const std::uint64_t count = Setting("PM_ATTACK_REPLAYED", 100'000);
  std::erase_if(recorded_, [](const Datagram& one) { return (one[0] & 15) != 5; });

  const std::uint64_t accepted = Accepted(
      count, [this](Datagram& out) { out = recorded_[random_.Next() % recorded_.size()]; });

  EXPECT_EQ(accepted, 0u);
}

}  // namespace
}  // namespace sekisho::pm
