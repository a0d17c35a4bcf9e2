// SPDX-License-Identifier: Apache-2.0
// The goals of PM that one machine can judge, in one run: PM and TCP in turns, in each round,
// waiting alike, on a loopback of our own.
#include <stdio.h>
#include <string.h>

#include <algorithm>
#include <string>
#include <vector>

#include "transport/pm/bench.h"
#include "transport/pm/bench_ends.h"
#include "transport/pm/bench_goal.h"
#include "transport/pm/bench_network.h"
#include "transport/pm/bench_peers.h"

namespace sekisho::pm {
namespace {

constexpr Traffic kTiny = {.size = 8};
constexpr Traffic kTinyAsleep = {.size = 8, .waiting = Waiting::kSleep};
constexpr Traffic kTinyOnOneCore = {.size = 8, .waiting = Waiting::kAdaptive, .server_core = 0};
constexpr Traffic kPage = {.size = 8192};
constexpr Traffic kPing = {.size = 64};

constexpr Traffic kPaced = {
    .size = 1024, .round_trip = false, .waiting = Waiting::kSleep, .period = 50 * kMicrosecond};

constexpr Traffic k64Peers = {
    .size = 64, .round_trip = false, .waiting = Waiting::kSleep, .peers = 64};
constexpr Traffic k255Peers = {.size = 64, .waiting = Waiting::kSleep, .peers = 255};
constexpr Traffic Newcomers(Waiting waiting) {
  return {.size = 64, .waiting = waiting, .peers = 32, .first_contact = true};
}

// A block of each of so many to one.
constexpr Traffic Incast(int senders, std::size_t kib) {
  return {.size = 64,
          .waiting = Waiting::kSleep,
          .offload = false,
          .peers = senders,
          .answer = kib * 1024};
}

constexpr Traffic kThousand = {.size = 64, .peers = 1000};

constexpr Traffic OneWay(std::size_t size) {
  return {.size = size, .round_trip = false, .waiting = Waiting::kSleep};
}

// The network carries nothing longer than its MTU: the sender's kernel cuts, for PM as for TCP, and
// every datagram and segment goes through it alone, and is lost alone.
constexpr Traffic Uncut(std::size_t size) {
  Traffic traffic = OneWay(size);
  traffic.offload = false;
  return traffic;
}

// What the payload is, nobody proves: as with TCP.
constexpr Traffic HeadersOnly(Traffic traffic) {
  traffic.payload_tag = false;
  return traffic;
}

constexpr Traffic Attacked(std::size_t size) {
  Traffic traffic = OneWay(size);
  traffic.target = Target::kJob;
  return traffic;
}

// The other side is PM, too, but for one thing.
template <auto kField, auto kValue>
std::unique_ptr<Measurement> OpenPmWith(const Traffic& other) {
  Traffic traffic = other;
  traffic.*kField = kValue;
  return OpenPmEnd(traffic);
}

constexpr Sides kAgainstTcp = {OpenPmEnd, OpenTcpEnd, "tcp"};
constexpr Sides kAgainstBbr = {OpenPmEnd, OpenBbrEnd, "bbr"};
constexpr Sides kPeers = {OpenPmPeers, OpenTcpPeers, "tcp"};
constexpr Sides kNewPeers = {OpenNewPmPeers, OpenNewTcpPeers, "tcp"};
constexpr Sides kSilentPeers = {OpenSilentPeers, nullptr, nullptr};
constexpr Sides kKnownPeers = {OpenKnownPeers, nullptr, nullptr};
constexpr Sides kTagged = {OpenPmEnd, OpenPmWith<&Traffic::payload_tag, false>, "pm_without"};
constexpr Sides kWithoutTags = {OpenPmEnd, OpenPmWith<&Traffic::has_tags, false>, "pm_without"};
constexpr Sides kBesideAttack = {OpenPmEnd, OpenPmWith<&Traffic::target, Target::kBystander>,
                                 "pm_beside"};
constexpr Sides kWithoutAttack = {OpenPmEnd, OpenPmWith<&Traffic::target, Target::kNone>,
                                  "pm_without"};

constexpr double kMega = 1e-6;

constexpr Goal kGoals[] = {
    {"round trip 8 B, spinning", "us", kTiny, 1, Judge::kRatioAtMost, 1.00, 0.85},
    {"round trip 8 B, sleeping", "us", kTinyAsleep, 1, Judge::kRatioAtMost, 1.00, 0.92},
    {"round trip 8 KiB, spinning", "us", kPage, 1, Judge::kRatioAtMost, 1.05, 0.85},
    {"round trip 8 B, one core, adaptive", "us", kTinyOnOneCore, 1, Judge::kRatioAtMost, 1.05,
     0.85},
    {"bandwidth 64 KiB", "MB/s", OneWay(65536), kMega, Judge::kRatioAtLeast, 0.90, 1.10},
    {"processor time, 64 KiB", "s/GiB", OneWay(65536), 1, Judge::kAtMost, 0.50, 0.35, 0,
     Of::kProcessor},
    {"bandwidth 64 KiB, offloads off", "MB/s", Uncut(65536), kMega, Judge::kRatioAtLeast, 0.90, 1},
    {"bandwidth 8 KiB", "MB/s", OneWay(8192), kMega, Judge::kRatioAtLeast, 1.3, 2.5},
    {"bandwidth 1 KiB", "MB/s", OneWay(1024), kMega, Judge::kRatioAtLeast, 3, 10},
    {"messages of 64 B", "M/s", OneWay(64), kMega / 64, Judge::kAtLeast, 5, 20},
    {"messages of 64 B, 64 peers in turn", "M/s", k64Peers, kMega / 64, Judge::kAtLeast, 1.5, 4, 0,
     Of::kValue, &kPeers},
    {"64 B to 255 peers and back", "us", k255Peers, 1, Judge::kRatioAtMost, 0.75, 0.6, 0,
     Of::kValue, &kPeers},
    {"first message to a new peer", "RTT", Newcomers(Waiting::kSpin), 1, Judge::kAtMost, 2, 1, 0,
     Of::kValue, &kNewPeers},
    {"first message to one, sleeping", "RTT", Newcomers(Waiting::kSleep), 1, Judge::kAtMost, 2, 1,
     0, Of::kValue, &kNewPeers},
    {"incast 16 x 32 KiB, goodput", "MB/s", Incast(16, 32), kMega, Judge::kRatioAtLeast, 0.95, 1.3,
     0, Of::kValue, &kPeers},
    {"incast 16 x 32 KiB, p99 of its median", "x", Incast(16, 32), 1, Judge::kAtMost, 2, 0, 0,
     Of::kP99OfMedian, &kPeers},
    {"incast 16 x 32 KiB, p99", "us", Incast(16, 32), 1, Judge::kRatioAtMost, 0.2, 0.05, 0,
     Of::kP99, &kPeers},
    {"incast 64 x 4 KiB, goodput", "MB/s", Incast(64, 4), kMega, Judge::kRatioAtLeast, 0.95, 1.3, 0,
     Of::kValue, &kPeers},
    {"incast 64 x 4 KiB, p99 of its median", "x", Incast(64, 4), 1, Judge::kAtMost, 2, 0, 0,
     Of::kP99OfMedian, &kPeers},
    {"incast 64 x 4 KiB, p99", "us", Incast(64, 4), 1, Judge::kRatioAtMost, 0.2, 0.05, 0, Of::kP99,
     &kPeers},
    {"incast 64 x 32 KiB, goodput", "MB/s", Incast(64, 32), kMega, Judge::kRatioAtLeast, 0.95, 1.3,
     0, Of::kValue, &kPeers},
    {"incast 64 x 32 KiB, p99 of its median", "x", Incast(64, 32), 1, Judge::kAtMost, 2, 0, 0,
     Of::kP99OfMedian, &kPeers},
    {"incast 64 x 32 KiB, p99", "us", Incast(64, 32), 1, Judge::kRatioAtMost, 0.2, 0.05, 0,
     Of::kP99, &kPeers},
    {"memory of a peer, 1,000 silent", "KiB", kThousand, 1. / 1024, Judge::kAtMost, 1, 0.5, 0,
     Of::kValue, &kSilentPeers},
    {"memory of a peer, after a message", "KiB", kThousand, 1. / 1024, Judge::kAtMost, 1, 0.5, 0,
     Of::kValue, &kKnownPeers},
    {"round trip 8 KiB, header MAC", "us", HeadersOnly(kPage), 1, Judge::kRatioAtMost, 1.05, 0.85},
    {"64 KiB, header MAC", "MB/s", HeadersOnly(OneWay(65536)), kMega, Judge::kRatioAtLeast, 0.90,
     1.10},
    {"processor time, 64 KiB, header MAC", "s/GiB", HeadersOnly(OneWay(65536)), 1, Judge::kAtMost,
     0.50, 0.35, 0, Of::kProcessor},
    {"64 KiB, offloads off, header MAC", "MB/s", HeadersOnly(Uncut(65536)), kMega,
     Judge::kRatioAtLeast, 0.90, 1},
    {"8 KiB, header MAC", "MB/s", HeadersOnly(OneWay(8192)), kMega, Judge::kRatioAtLeast, 1.3, 2.5},
    {"header MAC on, of off, 64 KiB", "MB/s", HeadersOnly(OneWay(65536)), kMega,
     Judge::kRatioAtLeast, 0.95, 0.97, 0, Of::kValue, &kWithoutTags},
    {"payload MAC on, of off, 64 KiB", "MB/s", OneWay(65536), kMega, Judge::kRatioAtLeast, 0.5, 0.6,
     0, Of::kValue, &kTagged},
    {"attack on 64 KiB, of one beside it", "MB/s", Attacked(65536), kMega, Judge::kRatioAtLeast,
     0.9, 0.95, 0, Of::kValue, &kBesideAttack},
    {"attack on 64 KiB, of none", "MB/s", Attacked(65536), kMega, Judge::kRatioAtLeast, 0.9, 0.95,
     0, Of::kValue, &kWithoutAttack},
    {"bad packets accepted", "", Attacked(65536), 1, Judge::kAtMost, 0, 0, 0, Of::kAccepted,
     &kWithoutAttack},
    {"1 KiB every 50 us, p99", "us", kPaced, 1, Judge::kRatioAtMost, 1.5, 1, 0, Of::kP99},
    {"1 KiB every 50 us, p99.9", "us", kPaced, 1, Judge::kRatioAtMost, 2, 1, 0, Of::kP999},
    {"1 KiB every 50 us, longest", "us", kPaced, 1, Judge::kRatioAtMost, 2, 1, 0, Of::kMost},
    {"8 KiB at 0.1 % loss", "MB/s", Uncut(8192), kMega, Judge::kRatioAtLeast, 1, 0, 0.1},
    {"8 KiB at 1 % loss", "MB/s", Uncut(8192), kMega, Judge::kRatioAtLeast, 5, 0, 1},
    {"8 KiB at 5 % loss", "MB/s", Uncut(8192), kMega, Judge::kRatioAtLeast, 40, 0, 5},
    {"8 KiB at 0.1 % loss, of BBR", "MB/s", Uncut(8192), kMega, Judge::kRatioAtLeast, 1, 0, 0.1,
     Of::kValue, &kAgainstBbr},
    {"8 KiB at 1 % loss, of BBR", "MB/s", Uncut(8192), kMega, Judge::kRatioAtLeast, 1, 0, 1,
     Of::kValue, &kAgainstBbr},
    {"8 KiB at 5 % loss, of BBR", "MB/s", Uncut(8192), kMega, Judge::kRatioAtLeast, 1, 0, 5,
     Of::kValue, &kAgainstBbr},
    {"mean ping-pong 64 B at 0.1 % loss", "us", kPing, 1, Judge::kAtMost, 65, 58, 0.1},
    {"mean ping-pong 64 B at 1 % loss", "us", kPing, 1, Judge::kAtMost, 80, 70, 1},
    {"mean ping-pong 64 B at 5 % loss", "us", kPing, 1, Judge::kAtMost, 150, 120, 5},
    {"1 KiB every 50 us, p99 at 1 % loss", "us", kPaced, 1, Judge::kAtMost, 300, 120, 1, Of::kP99},
    {"1 KiB every 50 us, p99 at 5 % loss", "us", kPaced, 1, Judge::kAtMost, 1000, 300, 5, Of::kP99},
};

constexpr const char* kElsewhere =
    "not here: fairness, alltoall, kernels, stops, kills;\n"
    "# all goals in one table: tests/bench/pm/goals\n";

const Sides& SidesOf(const Goal& goal) { return goal.sides != nullptr ? *goal.sides : kAgainstTcp; }

// Several numbers of the same rounds.
bool SameRounds(const Goal& a, const Goal& b) {
  return a.traffic == b.traffic && a.loss == b.loss && &SidesOf(a) == &SidesOf(b);
}

void RunGoals(std::span<const Goal* const> goals, const Settings& settings) {
  const Traffic& traffic = goals[0]->traffic;
  const Sides& sides = SidesOf(*goals[0]);
  constexpr int kIncastTimes = 5;  // a round of answers takes milliseconds
  const Nanos time = traffic.period > 0 && settings.tail_time > 0 ? settings.tail_time
                     : traffic.answer > 0                         ? kIncastTimes * settings.time
                                                                  : settings.time;
  const std::unique_ptr<Measurement> measurements[] = {
      sides.pm(traffic), sides.other != nullptr ? sides.other(traffic) : nullptr};
  std::vector<Measured> rounds[2];
  for (int round = -1; round < settings.rounds; ++round) {
    for (std::size_t i = 0; i < 2; ++i) {
      if (measurements[i] == nullptr) continue;
      // First they come to know their path.
      const Measured seen =
          measurements[i]->Run(round < 0 ? std::min(settings.time, 100 * kMillisecond) : time);
      if (round >= 0) rounds[i].push_back(seen);
    }
  }
  for (const Goal* goal : goals) Print(*goal, sides, settings.is_json, rounds[0], rounds[1]);
  if (traffic.answer > 0 && !settings.is_json) {
    printf("#   the bottleneck dropped %lu packets\n", DroppedAtBottleneck());
  }
  if (settings.explains && !settings.is_json) measurements[0]->Explain();
}

}  // namespace

int Goals(const Settings& settings) {
  const bool is_private =
      EnterPrivateNetwork(settings.has_cable ? Path::kCable : Path::kLoopback, settings.mtu);
  if (settings.has_cable && !is_private) {
    fprintf(
        stderr,
        "sekisho-pm-bench: no two hosts for --veth: it needs root or user namespaces, the kernel's "
        "veth, and the commands ip and nsenter\n");
    return 1;
  }
  const std::string network = !is_private
                                  ? "THE HOST'S LOOPBACK, whatever its MTU is"
                                  : std::string(settings.has_cable ? "two hosts and a cable (veth)"
                                                                   : "loopback of our own") +
                                        ", MTU " + std::to_string(settings.mtu);
  const bool has_loss = is_private && SetLoss(0);
  const bool has_offload = is_private && SetOffload(true);
  const bool has_bottleneck =
      is_private && SetBottleneck(true, settings.mtu) && SetBottleneck(false, settings.mtu);
  if (!settings.is_json) PrintHead(network.c_str(), settings);
  const bool has_bbr = HasBbr();
  std::vector<const Goal*> goals;
  for (const Goal& goal : kGoals) {
    if (strstr(goal.what, settings.only) == nullptr) continue;
    const char* const missing = goal.loss > 0 && !has_loss ? "nft and a network namespace"
                                : goal.traffic.answer > 0 && !has_bottleneck
                                    ? "tc, the kernel's ifb and tbf, and a network namespace"
                                : !goal.traffic.offload && !has_offload ? "a network namespace"
                                : goal.sides == &kAgainstBbr && !has_bbr
                                    ? "the kernel's module tcp_bbr"
                                    : nullptr;
    if (missing == nullptr) {
      goals.push_back(&goal);
    } else if (!settings.is_json) {
      printf("%-35s needs %s\n", goal.what, missing);
    }
  }
  for (std::span<const Goal*> left = goals; !left.empty();) {
    const Goal& first = *left[0];
    const auto same = std::find_if_not(
        left.begin(), left.end(), [&first](const Goal* goal) { return SameRounds(first, *goal); });
    if (has_loss && !SetLoss(first.loss)) {
      fprintf(stderr, "sekisho-pm-bench: nft refused a rule that drops %g %%\n", first.loss);
      return 1;
    }
    if (has_offload) (void)SetOffload(first.traffic.offload);
    const bool is_narrow = first.traffic.answer > 0;
    if (is_narrow && !SetBottleneck(true, settings.mtu)) {
      fprintf(stderr, "sekisho-pm-bench: tc refused a bottleneck\n");
      return 1;
    }
    const auto count = static_cast<std::size_t>(same - left.begin());
    RunGoals(left.first(count), settings);
    if (is_narrow && !SetBottleneck(false, settings.mtu)) {
      fprintf(stderr, "sekisho-pm-bench: tc and ip left the bottleneck behind\n");
      return 1;
    }
    left = left.subspan(count);
  }
  if (!settings.is_json) printf("# load %.1f; %s", Load(), kElsewhere);
  return 0;
}

}  // namespace sekisho::pm
