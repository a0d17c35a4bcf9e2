// SPDX-License-Identifier: Apache-2.0
// How a goal is judged and printed.
#include "transport/pm/bench_goal.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>

namespace sekisho::pm {
namespace {

bool IsRatio(const Goal& goal) {
  return goal.judge == Judge::kRatioAtMost || goal.judge == Judge::kRatioAtLeast;
}

bool IsAtMost(const Goal& goal) {
  return goal.judge == Judge::kRatioAtMost || goal.judge == Judge::kAtMost;
}

double Middle(std::vector<double> values) {
  if (values.empty()) return 0;
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

const char* Verdict(const Goal& goal, double value) {
  const auto meets = [&](double limit) { return IsAtMost(goal) ? value <= limit : value >= limit; };
  if (goal.stretch > 0 && meets(goal.stretch)) return "stretch";
  return meets(goal.must) ? "met" : "MISSED";
}

double MiddleOf(double Measured::*number, const std::vector<Measured>& rounds) {
  std::vector<double> values;
  for (const Measured& seen : rounds) values.push_back(seen.*number);
  return Middle(values);
}

std::vector<double> PickAll(const Goal& goal, const std::vector<Measured>& rounds) {
  std::vector<double> values;
  for (const Measured& seen : rounds) values.push_back(Pick(goal.of, seen) * goal.scale);
  return values;
}

}  // namespace

double Load() {
  double load = 0;
  (void)getloadavg(&load, 1);
  return load;
}

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
    case Of::kP99OfMedian:
      return seen.median > 0 ? seen.p99 / seen.median : 0;
    case Of::kAccepted:
      return seen.accepted;
    case Of::kValue:
      break;
  }
  return seen.value;
}

void PrintHead(const char* network, const Settings& settings) {
  printf(
      "# %s, %ld cores, load %.1f, %d rounds of %.1f s, PM and TCP in turns; the median is "
      "judged\n",
      network, sysconf(_SC_NPROCESSORS_ONLN), Load(), settings.rounds,
      static_cast<double>(settings.time) / kSecond);
  printf("%-35s %8s %8s %-5s %8s /%8s /%8s  %7s %5s  verdict\n", "", "PM", "TCP", "", "min",
         "median", "max", "must", "stretch");
}

void Print(const Goal& goal, const Sides& sides, bool is_json,
           const std::vector<Measured>& pm_rounds, const std::vector<Measured>& other_rounds) {
  constexpr double kSilent = 1e-9;  // TCP may be that for a round
  const std::vector<double> pm = PickAll(goal, pm_rounds), other = PickAll(goal, other_rounds);
  std::vector<double> judged = pm;
  for (std::size_t i = 0; IsRatio(goal) && i < pm.size(); ++i) {
    judged[i] = std::max(pm[i], kSilent) / std::max(other[i], kSilent);
  }
  const auto [least, most] = std::minmax_element(judged.begin(), judged.end());
  const double middle = Middle(judged);
  const bool one_is_too_many = goal.of == Of::kAccepted;
  const char* verdict = Verdict(goal, one_is_too_many ? *most : middle);
  const char* bound = IsAtMost(goal) ? "<=" : ">=";
  const double bad_packets = MiddleOf(&Measured::bad_packets, pm_rounds);
  const double stranger = MiddleOf(&Measured::stranger_processor, pm_rounds);
  if (is_json) {
    printf("{\"what\": \"%s\", \"unit\": \"%s\", \"pm\": %.4g, ", goal.what, goal.unit, Middle(pm));
    if (!other.empty()) printf("\"%s\": %.4g, ", sides.other_name, Middle(other));
    if (bad_packets > 0) {
      printf("\"bad_packets\": %.0f, \"stranger_processor\": %.3g, ", bad_packets, stranger);
    }
    printf(
        "\"judged\": \"%s\", \"min\": %.4g, \"median\": %.4g, \"max\": %.4g, \"bound\": \"%s\", "
        "\"must\": %g, \"stretch\": %g, \"verdict\": \"%s\", \"rounds\": %zu, \"load\": %.1f}\n",
        IsRatio(goal) ? "ratio" : "pm", *least, middle, *most, bound, goal.must, goal.stretch,
        verdict, pm.size(), Load());
  } else {
    printf("%-35s %8.4g ", goal.what, Middle(pm));
    other.empty() ? printf("%8s ", "-") : printf("%8.4g ", Middle(other));
    printf("%-5s %8.3g /%8.3g /%8.3g  %s %4g %s%5.3g  %s\n", goal.unit, *least, middle, *most,
           bound, goal.must, goal.stretch > 0 ? "" : "-", goal.stretch, verdict);
  }
  if (bad_packets > 0 && !is_json && goal.of == Of::kValue) {
    printf("#   a stranger sent %.0f datagrams a second in %.2g s of processor\n", bad_packets,
           stranger);
  }
  fflush(stdout);
}

}  // namespace sekisho::pm
