// SPDX-License-Identifier: Apache-2.0
// How much gets through: streams of messages in virtual time over links with a rate, losses and
// neighbours.
#include <algorithm>
#include <iostream>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "transport/pm/sim/cluster.h"

namespace sekisho::pm::sim {
namespace {

constexpr std::uint64_t kRate = 100'000'000;  // bytes per second

// The senders, nodes 1 and on, keep their rings to node 0 full, those from `late` on since half of
// `warm`; bytes per second that arrive in `measured`, after `warm`.
double Goodput(Cluster& cluster, std::size_t senders, Nanos warm, Nanos measured,
               std::vector<std::uint64_t>* each = nullptr, std::uint32_t late = UINT32_MAX) {
  const std::vector<std::uint8_t> text(8192, 'x');
  std::vector<std::uint64_t> bytes(senders + 1);
  bool counting = false;
  std::uint32_t begun = 1;
  cluster.on_turn = [&](std::uint32_t node) {
    Message message;
    while (cluster[node].Receive(message)) {
      if (counting) bytes[message.source] += message.bytes.size();
      (void)cluster[node].Release(message.source, message.channel, cluster.now());
    }
    if (node > 0 && node <= begun) {
      while (!cluster[node].Send(0, 0, text, cluster.now())) {
      }
    }
  };
  for (const std::uint32_t end : {late, UINT32_MAX}) {
    for (; begun < end && begun <= senders; ++begun) {
      cluster.on_turn(begun);
      cluster.Pump(begun);
    }
    cluster.Run(warm / 2);
  }
  counting = true;
  cluster.Run(measured);
  std::uint64_t sum = 0;
  for (const std::uint64_t one : bytes) sum += one;
  if (each != nullptr) *each = std::vector(bytes.begin() + 1, bytes.end());
  return static_cast<double>(sum) * kSecond / static_cast<double>(measured);
}

Cluster OneLink(double loss, Nanos delay, std::size_t queue) {
  Cluster cluster(2, [](Config& config) {
    config.channels = 1;
    config.send_ring = config.receive_ring = 4 << 20;
  });
  for (Link& link : cluster.network().links())
    link.delay = delay, link.jitter = 2 * kMicrosecond, link.loss = loss;
  cluster.network().link(1, 0).rate = kRate;
  cluster.network().link(1, 0).queue = queue;
  return cluster;
}

TEST(Flow, AnEmptyLinkIsFilled) {
  for (const Nanos delay : {25 * kMicrosecond, 500 * kMicrosecond, 5 * kMillisecond}) {
    Cluster cluster = OneLink(0, delay, 256 * 1024);
    const double goodput = Goodput(cluster, 1, 200 * kMillisecond, 100 * kMillisecond);
    std::cout << "delay " << delay / kMicrosecond << " us: " << goodput / 1e6
              << " MB/s, retransmitted " << cluster[1].counters().retransmitted << "\n";
    EXPECT_GT(goodput, 0.85 * kRate);
  }
}

TEST(Flow, RandomLossCostsLittleMoreThanWhatIsLost) {
  const double limits[] = {0.85, 0.80, 0.75};
  const double losses[] = {0.001, 0.01, 0.05};
  for (std::size_t i = 0; i < 3; ++i) {
    Cluster cluster = OneLink(losses[i], 100 * kMicrosecond, 256 * 1024);
    const double goodput = Goodput(cluster, 1, 60 * kMillisecond, 100 * kMillisecond);
    std::cout << "loss " << losses[i] << ": " << goodput / 1e6 << " MB/s, time-outs "
              << cluster[1].counters().timeouts << "\n";
    EXPECT_GT(goodput, limits[i] * kRate);
  }
}

// A message and its answer, one at a time: what a lost datagram costs on average.
TEST(Flow, ALostAnswerCostsSomeRoundTripsAndNoTick) {
  const double losses[] = {0, 0.001, 0.01, 0.05};
  const Nanos limits[] = {30, 31, 40, 85};  // us
  for (std::size_t i = 0; i < 4; ++i) {
    Cluster cluster(2, [](Config& config) { config.channels = 1; });
    for (Link& link : cluster.network().links())
      link.delay = 10 * kMicrosecond, link.jitter = 2 * kMicrosecond, link.loss = losses[i];
    const std::vector<std::uint8_t> text(64, 'x');
    std::uint64_t answers = 0;
    cluster.on_turn = [&](std::uint32_t node) {
      Message message;
      while (cluster[node].Receive(message)) {
        (void)cluster[node].Release(message.source, message.channel, cluster.now());
        answers += node == 0 ? 1 : 0;
        (void)cluster[node].Send(static_cast<NodeId>(1 - node), 0, text, cluster.now());
      }
    };
    (void)cluster[0].Send(1, 0, text, cluster.now());
    cluster.Pump(0);
    const Nanos time = kSecond;
    cluster.Run(time);
    const Nanos mean = time / static_cast<Nanos>(std::max<std::uint64_t>(answers, 1));
    const Counters& c = cluster[0].counters();
    std::cout << "loss " << losses[i] << ": " << static_cast<double>(mean) / 1000 << " us, probes "
              << c.probes << ", time-outs " << c.timeouts << ", by gap " << c.lost_by_gap
              << ", spurious " << c.spurious << ", only acks " << c.acks_only << "\n";
    EXPECT_LT(mean, limits[i] * kMicrosecond);
  }
}

TEST(Flow, AShallowQueueIsNotFloodedForEver) {
  Cluster cluster = OneLink(0, 100 * kMicrosecond, 16 * 1024);
  const double goodput = Goodput(cluster, 1, 60 * kMillisecond, 100 * kMillisecond);
  const Counters& counters = cluster[1].counters();
  std::cout << goodput / 1e6 << " MB/s, lost " << counters.lost_by_gap << " of "
            << counters.datagrams_out << "\n";

  EXPECT_GT(goodput, 0.75 * kRate);
  EXPECT_LT(counters.lost_by_gap, counters.datagrams_out / 10);
}

// Jain's index: 1 if all are equal.
double Fairness(const std::vector<std::uint64_t>& each) {
  double sum = 0, squares = 0;
  for (const std::uint64_t one : each) {
    sum += static_cast<double>(one);
    squares += static_cast<double>(one) * static_cast<double>(one);
  }
  return sum * sum / (squares * static_cast<double>(each.size()));
}

TEST(Flow, SendersToOneNodeShareItsPort) {
  constexpr std::size_t kSenders = 8;
  Cluster cluster(kSenders + 1, [](Config& config) { config.channels = 1; });
  cluster.network().port(0) = {kRate, 128 * 1024};
  std::vector<std::uint64_t> each;
  const double goodput = Goodput(cluster, kSenders, 150 * kMillisecond, 200 * kMillisecond, &each);
  const double jain = Fairness(each);
  std::cout << goodput / 1e6 << " MB/s, Jain " << jain << "\n";

  EXPECT_GT(goodput, 0.85 * kRate);
  EXPECT_GT(jain, 0.9);
}

// As if each sent to somebody else through one switch, of 20 MB/s: nobody's grants help.
Cluster OneSwitch(std::size_t senders, std::size_t queue, Nanos delay) {
  Cluster cluster(senders + 1, [](Config& config) {
    config.channels = 1;
    config.incast_budget = 16 << 20;
  });
  cluster.network().port(0) = {20'000'000, queue};
  for (Link& link : cluster.network().links()) link.delay = delay;
  return cluster;
}

// Datagrams that the nodes from 1 on have sent, and lost.
std::pair<std::uint64_t, std::uint64_t> SentAndLost(Cluster& cluster, std::size_t senders) {
  std::uint64_t sent = 0, lost = 0;
  for (std::uint32_t node = 1; node <= senders; ++node) {
    sent += cluster[node].counters().datagrams_out;
    lost += cluster[node].counters().lost_by_gap;
  }
  return {sent, lost};
}

// By what they lose.
TEST(Flow, SendersWhomNobodyGrantsGiveWay) {
  constexpr std::size_t kSenders = 16;
  Cluster cluster = OneSwitch(kSenders, 128 * 1024, 50 * kMicrosecond);
  std::vector<std::uint64_t> each;
  const double goodput = Goodput(cluster, kSenders, kSecond, kSecond, &each);
  const auto [sent, lost] = SentAndLost(cluster, kSenders);
  const auto [least, most] = std::minmax_element(each.begin(), each.end());
  std::cout << goodput / 1e6 << " MB/s, lost " << lost << " of " << sent << ", least " << *least
            << ", most " << *most << "\n";

  EXPECT_GT(goodput, 0.9 * 20'000'000);
  EXPECT_LT(lost, sent / 10);
  EXPECT_GT(*least * 2, *most);
}

// Who comes when the queue is full has never seen the path without one.
TEST(Flow, WhoComesLaterGivesWayToo) {
  constexpr std::size_t kSenders = 16;
  Cluster cluster = OneSwitch(kSenders, 200 * 1000, 500 * kMicrosecond);
  std::vector<std::uint64_t> each;
  const double goodput = Goodput(cluster, kSenders, 4 * kSecond, 2 * kSecond, &each, kSenders / 2);
  const double jain = Fairness(each);
  std::cout << goodput / 1e6 << " MB/s, Jain " << jain << "\n";

  EXPECT_GT(goodput, 0.9 * 20'000'000);
  EXPECT_GT(jain, 0.95);  // each has few packets in flight, and grows slowly
}

// Somebody measures the rate and drops what is more: no queue, only losses.
TEST(Flow, WhatIsDroppedForItsRateIsNotSentForEver) {
  for (const std::size_t senders : {std::size_t{1}, std::size_t{8}}) {
    Cluster cluster = OneSwitch(senders, 64 * 1024, 25 * kMicrosecond);
    cluster.network().port(0).policed = true;
    Goodput(cluster, senders, 4 * kSecond, 0);
    const auto [sent_before, lost_before] = SentAndLost(cluster, senders);
    std::vector<std::uint64_t> each;
    const double goodput = Goodput(cluster, senders, 0, 4 * kSecond, &each);
    const auto [all_sent, all_lost] = SentAndLost(cluster, senders);
    const std::uint64_t sent = all_sent - sent_before, lost = all_lost - lost_before;
    std::cout << senders << " senders: " << goodput / 1e6 << " MB/s, lost " << lost_before << " of "
              << sent_before << ", then " << lost << " of " << sent << ", Jain " << Fairness(each)
              << "\n";

    EXPECT_LT(lost_before, sent_before / 3);  // while it finds out
    EXPECT_GT(goodput, 0.85 * 20'000'000);
    EXPECT_LT(lost, sent / 10);
    EXPECT_GT(Fairness(each), 0.9);
  }
}

TEST(Flow, WhoseRateIsNotMeasuredAnyMoreIsFastAgain) {
  for (const double loss : {0.0, 0.02}) {
    Cluster cluster = OneLink(loss, 100 * kMicrosecond, 256 * 1024);
    cluster.network().port(0) = {.rate = kRate / 5, .queue = 64 * 1024, .policed = true};
    Goodput(cluster, 1, kSecond, 0);
    const auto [sent_before, lost_before] = SentAndLost(cluster, 1);
    const double measured = Goodput(cluster, 1, 0, kSecond);
    const auto [sent, lost] = SentAndLost(cluster, 1);
    cluster.network().port(0) = {};
    const double free = Goodput(cluster, 1, 6 * kSecond, 200 * kMillisecond);
    std::cout << "loss " << loss << ": " << measured / 1e6 << ", then " << free / 1e6 << " MB/s\n";

    EXPECT_LT(lost - lost_before, (sent - sent_before) / 20);  // it had found out
    EXPECT_GT(free, 0.8 * kRate);
  }
}

// Two that were policed, and two that never were, in front of a queue.
TEST(Flow, WhoWasPolicedGetsHisPartOfAQueue) {
  constexpr std::size_t kSenders = 4;
  Cluster cluster = OneSwitch(kSenders, 64 * 1024, 100 * kMicrosecond);
  cluster.network().port(0).policed = true;
  Goodput(cluster, kSenders / 2, 2 * kSecond, 0);
  const auto [sent_before, lost_before] = SentAndLost(cluster, kSenders);
  Goodput(cluster, kSenders / 2, 0, kSecond);
  const auto [sent, lost] = SentAndLost(cluster, kSenders);
  EXPECT_LT(lost - lost_before, (sent - sent_before) / 20);  // they had found out
  cluster.network().port(0) = {10'000'000, 128 * 1024};
  std::vector<std::uint64_t> each;
  const double goodput = Goodput(cluster, kSenders, 4 * kSecond, 2 * kSecond, &each);
  std::cout << goodput / 1e6 << " MB/s, Jain " << Fairness(each) << "\n";

  EXPECT_GT(goodput, 0.85 * 10'000'000);
  EXPECT_GT(Fairness(each), 0.9);
}

// The paper's collapse: blocks of 32 KiB from all at once through a queue of 64 KiB, or a policer
// with a bucket of 64 KiB.
class Incast : public testing::TestWithParam<bool> {};

TEST_P(Incast, DoesNotCollapse) {
  constexpr std::uint32_t kSenders = 16;
  constexpr std::size_t kBlock = 32 * 1024;
  Cluster cluster(kSenders + 1, [](Config& config) {
    config.channels = 1;
    config.incast_budget = 32 * 1024;
  });
  cluster.network().port(0) = {60'000'000, 64 * 1024, GetParam()};
  std::vector<Nanos> rounds;
  const std::vector<std::uint8_t> text(kBlock, 'x');
  for (int round = 0; round < 40; ++round) {
    const Nanos start = cluster.network().now();
    const std::uint64_t before = cluster.delivered(0);
    for (std::uint32_t node = 1; node <= kSenders; ++node) {
      ASSERT_FALSE(cluster[node].Send(0, 0, text, cluster.now()));
      cluster.Pump(node);
    }
    ASSERT_TRUE(
        cluster.Run(10 * kSecond, [&] { return cluster.delivered(0) == before + kSenders; }));
    rounds.push_back(cluster.network().now() - start);
  }
  std::sort(rounds.begin() + 1, rounds.end());
  const Nanos ideal = static_cast<Nanos>(kSenders * kBlock * kSecond / 60'000'000);
  const Nanos median = rounds[20], worst = rounds.back();
  std::uint64_t timeouts = 0;
  for (std::uint32_t node = 1; node <= kSenders; ++node)
    timeouts += cluster[node].counters().timeouts;
  std::cout << "ideal " << ideal / 1000 << " us, first " << rounds[0] / 1000 << ", median "
            << median / 1000 << ", worst " << worst / 1000 << ", dropped "
            << cluster.network().dropped() << ", time-outs " << timeouts << "\n";

  EXPECT_LT(median, 2 * ideal);
  EXPECT_LT(worst, 3 * median);
}

INSTANTIATE_TEST_SUITE_P(Flow, Incast, testing::Bool(),
                         [](const auto& info) { return info.param ? "Policed" : "Queued"; });

}  // namespace
}  // namespace sekisho::pm::sim
