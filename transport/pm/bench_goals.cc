// SPDX-License-Identifier: Apache-2.0
// The goals of PM that one machine can judge, in one run: PM and TCP in turns, in each round,
// waiting alike, on a loopback of our own with an MTU of 1500.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

#include "transport/pm/bench.h"
#include "transport/pm/bench_ends.h"

namespace sekisho::pm {
namespace {

constexpr Traffic kTiny = {.size = 8};
constexpr Traffic kTinyAsleep = {.size = 8, .waiting = Waiting::kSleep};
constexpr Traffic kTinyOnOneCore = {.size = 8, .waiting = Waiting::kAdaptive, .server_core = 0};
constexpr Traffic kPage = {.size = 8192};
constexpr Traffic kPing = {.size = 64};

constexpr Traffic kPaced = {
    .size = 1024, .round_trip = false, .waiting = Waiting::kSleep, .period = 50 * kMicrosecond};

constexpr Traffic OneWay(std::size_t size, bool payload_tag = true) {
  return {
      .size = size, .round_trip = false, .waiting = Waiting::kSleep, .payload_tag = payload_tag};
}

// What is judged.
enum class Judge {
  kRatioAtMost,  // PM / TCP
  kRatioAtLeast,
  kAtMost,  // PM alone
  kAtLeast,
};

// Which number of what was measured.
enum class Of { kValue, kProcessor, kP99, kP999, kMost };

double Pick(Of of, const Measured& seen) {
  switch (of) {
    case Of::kProcessor:
      return seen.processor_seconds;
    case Of::kP99:
      return seen.p99;
    case Of::kP999:
      return seen.p999;
    case Of::kMost:
      return seen.most;
    case Of::kValue:
      break;
  }
  return seen.value;
}

struct Goal {
  const char* what;
  const char* unit;
  Traffic traffic;
  double scale;  // of what is measured, to the unit
  Judge judge;
  double must, stretch;  // stretch 0: none
  double loss = 0;       // percent
  Of of = Of::kValue;
  bool against_itself = false;  // PM without the payload's tag instead of TCP
};

constexpr double kMega = 1e-6;

constexpr Goal kGoals[] = {
    {"round trip 8 B, spinning", "us", kTiny, 1, Judge::kRatioAtMost, 1.00, 0.85},
    {"round trip 8 B, sleeping", "us", kTinyAsleep, 1, Judge::kRatioAtMost, 1.00, 0.92},
    {"round trip 8 KiB, spinning", "us", kPage, 1, Judge::kRatioAtMost, 1.05, 0.85},
    {"round trip 8 B, one core, adaptive", "us", kTinyOnOneCore, 1, Judge::kRatioAtMost, 1.05,
     0.85},
    {"bandwidth 64 KiB", "MB/s", OneWay(65536), kMega, Judge::kRatioAtLeast, 0.90, 1.10},
    {"bandwidth 8 KiB", "MB/s", OneWay(8192), kMega, Judge::kRatioAtLeast, 1.3, 2.5},
    {"bandwidth 1 KiB", "MB/s", OneWay(1024), kMega, Judge::kRatioAtLeast, 3, 10},
    {"messages of 64 B", "M/s", OneWay(64), kMega / 64, Judge::kAtLeast, 5, 20},
    {"processor time, 64 KiB", "s/GiB", OneWay(65536), 1, Judge::kAtMost, 0.50, 0.35, 0,
     Of::kProcessor},
    {"payload MAC on, of off, 64 KiB", "MB/s", OneWay(65536), kMega, Judge::kRatioAtLeast, 0.5, 0.6,
     0, Of::kValue, true},
    {"1 KiB every 50 us, p99", "us", kPaced, 1, Judge::kRatioAtMost, 1.5, 1, 0, Of::kP99},
    {"1 KiB every 50 us, p99.9", "us", kPaced, 1, Judge::kRatioAtMost, 2, 1, 0, Of::kP999},
    {"1 KiB every 50 us, longest", "us", kPaced, 1, Judge::kRatioAtMost, 2, 1, 0, Of::kMost},
    {"8 KiB at 0.1 % loss", "MB/s", OneWay(8192), kMega, Judge::kRatioAtLeast, 1, 0, 0.1},
    {"8 KiB at 1 % loss", "MB/s", OneWay(8192), kMega, Judge::kRatioAtLeast, 5, 0, 1},
    {"8 KiB at 5 % loss", "MB/s", OneWay(8192), kMega, Judge::kRatioAtLeast, 40, 0, 5},
    {"mean ping-pong 64 B at 0.1 % loss", "us", kPing, 1, Judge::kAtMost, 65, 58, 0.1},
    {"mean ping-pong 64 B at 1 % loss", "us", kPing, 1, Judge::kAtMost, 80, 70, 1},
    {"mean ping-pong 64 B at 5 % loss", "us", kPing, 1, Judge::kAtMost, 150, 120, 5},
    {"1 KiB every 50 us, p99 at 1 % loss", "us", kPaced, 1, Judge::kAtMost, 300, 120, 1, Of::kP99},
    {"1 KiB every 50 us, p99 at 5 % loss", "us", kPaced, 1, Judge::kAtMost, 1000, 300, 5, Of::kP99},
};

constexpr const char* kElsewhere =
    "not here: offloads off, 64 and 1,000 peers, fairness, incast, stops, kills, "
    "bad\n"
    "# packets (docs/operations/pm.md); alltoall and kernels: tests/bench/pm/bench\n";

double Load() {
  double load = 0;
  (void)getloadavg(&load, 1);
  return load;
}

double Middle(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

const char* Verdict(const Goal& goal, double value) {
  const bool at_most = goal.judge == Judge::kRatioAtMost || goal.judge == Judge::kAtMost;
  const auto meets = [&](double limit) { return at_most ? value <= limit : value >= limit; };
  if (goal.stretch > 0 && meets(goal.stretch)) return "stretch";
  return meets(goal.must) ? "met" : "MISSED";
}

void Print(const Goal& goal, const Settings& settings, const std::vector<double>& pm,
           const std::vector<double>& other) {
  std::vector<double> ratios;
  for (std::size_t i = 0; i < pm.size(); ++i) ratios.push_back(pm[i] / other[i]);
  const bool is_ratio = goal.judge == Judge::kRatioAtMost || goal.judge == Judge::kRatioAtLeast;
  const bool at_most = goal.judge == Judge::kRatioAtMost || goal.judge == Judge::kAtMost;
  const std::vector<double>& judged = is_ratio ? ratios : pm;
  const auto [least, most] = std::minmax_element(judged.begin(), judged.end());
  const double middle = Middle(judged);
  const char* verdict = Verdict(goal, middle);
  if (settings.is_json) {
    printf(
        "{\"what\": \"%s\", \"unit\": \"%s\", \"pm\": %.4g, \"%s\": %.4g, \"judged\": \"%s\", "
        "\"min\": "
        "%.4g, \"median\": %.4g, \"max\": %.4g, \"bound\": \"%s\", \"must\": %g, \"stretch\": %g, "
        "\"verdict\": \"%s\", \"rounds\": %zu, \"load\": %.1f}\n",
        goal.what, goal.unit, Middle(pm), goal.against_itself ? "pm_without" : "tcp", Middle(other),
        is_ratio ? "ratio" : "pm", *least, middle, *most, at_most ? "<=" : ">=", goal.must,
        goal.stretch, verdict, pm.size(), Load());
  } else {
    printf("%-35s %8.4g %8.4g %-5s %8.3g /%8.3g /%8.3g  %s %4g %s%5.3g  %s\n", goal.what,
           Middle(pm), Middle(other), goal.unit, *least, middle, *most,
           at_most ? "<=" : ">=", goal.must, goal.stretch > 0 ? "" : "-", goal.stretch, verdict);
  }
  fflush(stdout);
}

void RunGoal(const Goal& goal, const Settings& settings) {
  Traffic other_traffic = goal.traffic;
  other_traffic.payload_tag = false;
  const auto pm = OpenPmEnd(goal.traffic);
  const auto other = goal.against_itself ? OpenPmEnd(other_traffic) : OpenTcpEnd(goal.traffic);
  std::vector<double> values[2];
  for (int round = -1; round < settings.rounds; ++round) {
    End* const ends[] = {pm.get(), other.get()};
    for (std::size_t i = 0; i < 2; ++i) {
      // First they come to know their path.
      const Measured seen =
          ends[i]->Run(round < 0 ? std::min(settings.time, 100 * kMillisecond) : settings.time);
      if (round < 0) continue;
      values[i].push_back(
          std::max(Pick(goal.of, seen) * goal.scale, 1e-9));  // TCP may be silent for a round
    }
  }
  Print(goal, settings, values[0], values[1]);
  if (settings.explains && !settings.is_json) pm->Explain();
}

}  // namespace

int Goals(const Settings& settings) {
  const bool is_private = EnterPrivateNetwork();
  const bool has_loss = is_private && SetLoss(0);
  if (!settings.is_json) {
    printf(
        "# %s, %ld cores, load %.1f, %d rounds of %.1f s, PM and TCP in turns; the median is "
        "judged\n",
        is_private ? "loopback of our own, MTU 1500" : "THE HOST'S LOOPBACK, not MTU 1500",
        sysconf(_SC_NPROCESSORS_ONLN), Load(), settings.rounds,
        static_cast<double>(settings.time) / kSecond);
    printf("%-35s %8s %8s %-5s %8s /%8s /%8s  %7s %5s  verdict\n", "", "PM", "TCP", "", "min",
           "median", "max", "must", "stretch");
  }
  for (const Goal& goal : kGoals) {
    if (strstr(goal.what, settings.only) == nullptr) continue;
    if (goal.loss > 0 && !has_loss) {
      if (!settings.is_json) printf("%-35s needs nft and a network namespace\n", goal.what);
      continue;
    }
    if (has_loss && !SetLoss(goal.loss)) {
      fprintf(stderr, "sekisho-pm-bench: nft refused a rule that drops %g %%\n", goal.loss);
      return 1;
    }
    RunGoal(goal, settings);
  }
  if (!settings.is_json) printf("# load %.1f; %s", Load(), kElsewhere);
  return 0;
}

}  // namespace sekisho::pm
