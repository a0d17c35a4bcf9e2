// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <map>
#include <string_view>

#include "tests/bench/topology/tables.h"
#include "topology/sim/families.h"
#include "topology/sim/trial.h"

namespace sekisho::bench {
namespace {

using topology::sim::Trial;

constexpr int kFullMatrixHosts = 1100;  // the comparison is cubic, and there is none above

struct Row {
  std::vector<double> accuracy, same, quartets, behind, rf, extra, seconds, measurements, pings,
      share, local, wide, lost, cpu, rtt_median, rtt_p99;
};

std::string Spread(std::vector<double> values, const char* format) {
  if (values.empty()) {
    return "-";
  }
  std::sort(values.begin(), values.end());
  char text[96];
  const std::string three = std::string(format) + "/" + format + "/" + format;
  std::snprintf(text, sizeof text, three.c_str(), values.front(), values[values.size() / 2],
                values.back());
  return text;
}

double Mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) {
    sum += value;
  }
  return values.empty() ? 0 : sum / static_cast<double>(values.size());
}

double Most(const std::vector<double>& values) {
  return values.empty() ? 0 : *std::max_element(values.begin(), values.end());
}

double Least(const std::vector<double>& values) {
  return values.empty() ? 1 : *std::min_element(values.begin(), values.end());
}

// What a family must reach; the names of the goals that it misses.
std::string Missed(std::string_view family, bool has_hints, const Row& row) {
  std::string missed;
  const auto need = [&missed](bool is_reached, const char* name) {
    if (!is_reached) {
      missed += missed.empty() ? name : std::string(", ") + name;
    }
  };
  const bool is_busy = family.find("busy") != std::string_view::npos;
  need(Most(row.lost) == 0, "hosts lost");
  need(Most(row.local) <= 1 && Most(row.wide) <= 4, "at once");
  if (!row.behind.empty()) {
    need(Mean(row.behind) <= (is_busy ? 0.03 : 0.01), "quartets");
  }
  if (family.starts_with("single64")) {
    need(Mean(row.accuracy) >= 0.99 && Least(row.accuracy) >= 0.97, "accuracy");
    need(Most(row.seconds) <= 0.5, "time");
  }
  if (family.starts_with("grid256")) {
    need(is_busy || (Mean(row.accuracy) >= 0.98 && Mean(row.same) >= 0.98), "accuracy");
    need(Most(row.seconds) <= (has_hints ? 1.3 : 2), "time");
    need(Most(row.share) <= (has_hints ? 0.004 : 0.012), "pairs between");
    need(Most(row.rtt_median) <= 1 && Most(row.rtt_p99) <= 5, "RTT matrix");
    need(Most(row.seconds) <= 1.5, "time of the matrix");
  }
  if (family.find("256") != std::string_view::npos) {
    need(Most(row.pings) <= 350, "pings");
  }
  if (family.starts_with("star48") || family.starts_with("odd-star") || family == "odd-same") {
    need(Most(row.extra) == 0, "switch invented");
  }
  if (family == "flat1024" || family.ends_with("4096")) {
    need(Most(row.seconds) <= (family == "flat1024" ? 5 : 15), "time");
    need(Mean(row.same) >= 0.98, "accuracy inside sites");
    need(Most(row.measurements) <= 40, "measurements");
  }
  return missed;
}

void Add(Row& row, const Trial& trial, int hosts) {
  row.accuracy.push_back(trial.score.accuracy);
  row.same.push_back(trial.score.accuracy_same_cluster);
  row.quartets.push_back(trial.score.quartets);
  row.rf.push_back(trial.score.robinson_foulds);
  row.extra.push_back(trial.score.quartets_extra);
  row.seconds.push_back(trial.totals.makespan_us / 1e6);
  row.measurements.push_back(static_cast<double>(trial.totals.measurements) / hosts);
  row.pings.push_back(static_cast<double>(trial.totals.pings) / hosts);
  row.share.push_back(trial.between_share);
  row.local.push_back(trial.most_local);
  row.wide.push_back(trial.most_wide);
  row.lost.push_back(trial.score.hosts_lost);
  row.rtt_median.push_back(100 * trial.score.rtt_error_median);
  row.rtt_p99.push_back(100 * trial.score.rtt_error_p99);
}

bool Family(std::string_view family, bool has_hints, const Options& options) {
  Row row;
  for (int i = 0; i < options.seeds; ++i) {
    const uint64_t seed = options.first_seed + static_cast<uint64_t>(i);
    const auto truth = topology::sim::MakeFamily(family, seed);
    if (!truth.ok()) {
      std::printf("%s\n", std::string(truth.status().message()).c_str());
      return false;
    }
    const auto begin = std::chrono::steady_clock::now();
    const auto trial = topology::sim::RunTrial(*truth, options.method, has_hints, seed);
    if (!trial.ok()) {
      std::printf("%s\n", std::string(trial.status().message()).c_str());
      return false;
    }
    row.cpu.push_back(
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
    Add(row, *trial, truth->host_count);
    if (truth->host_count <= kFullMatrixHosts && !has_hints) {
      const Trial full = topology::sim::RunFullMatrix(*truth, seed, 50000);
      row.behind.push_back(full.score.quartets - trial->score.quartets);
    }
    if (options.is_each) {
      std::printf(
          "  %s%s %llu: hosts %d accuracy %.4f same %.4f quartets %.4f wrong %.4f missed %.4f "
          "extra "
          "%.4f behind %.4f RF %d s %.2f at once %d/%d lost %d p99 %.2f\n",
          std::string(family).c_str(), has_hints ? " hints" : "",
          static_cast<unsigned long long>(seed), truth->host_count, trial->score.accuracy,
          trial->score.accuracy_same_cluster, trial->score.quartets, trial->score.quartets_wrong,
          trial->score.quartets_missed, trial->score.quartets_extra,
          row.behind.empty() ? 0 : row.behind.back(), trial->score.robinson_foulds,
          trial->totals.makespan_us / 1e6, trial->most_local, trial->most_wide,
          trial->score.hosts_lost, 100 * trial->score.rtt_error_p99);
    }
  }
  const std::string missed = Missed(family, has_hints, row);
  std::printf(
      "%-12s%s accuracy %s (mean %.4f) same site %s quartets %s behind matrix %s "
      "(mean %.4f) RF %s | s %s | meas/host %s pings/host %s between %% %s | RTT error %% median "
      "%s "
      "p99 %s | at once %.0f/%.0f lost %.0f | cpu s %s | %s\n",
      std::string(family).c_str(), has_hints ? " hints" : "      ",
      Spread(row.accuracy, "%.4f").c_str(), Mean(row.accuracy), Spread(row.same, "%.4f").c_str(),
      Spread(row.quartets, "%.4f").c_str(), Spread(row.behind, "%.4f").c_str(), Mean(row.behind),
      Spread(row.rf, "%.0f").c_str(), Spread(row.seconds, "%.2f").c_str(),
      Spread(row.measurements, "%.1f").c_str(), Spread(row.pings, "%.0f").c_str(),
      Spread(
          [&] {
            std::vector<double> percent = row.share;
            for (double& value : percent) {
              value *= 100;
            }
            return percent;
          }(),
          "%.2f")
          .c_str(),
      Spread(row.rtt_median, "%.2f").c_str(), Spread(row.rtt_p99, "%.2f").c_str(), Most(row.local),
      Most(row.wide), Most(row.lost), Spread(row.cpu, "%.1f").c_str(),
      missed.empty() ? "all goals" : ("MISSED: " + missed).c_str());
  std::fflush(stdout);
  return missed.empty();
}

}  // namespace

bool Goals(const Options& options, const std::vector<std::string_view>& all) {
  bool is_good = true;
  std::vector<std::string> families = options.families;
  if (families.empty()) {
    families.assign(all.begin(), all.end());
  }
  std::printf("minimum/median/maximum over %d seeds from %llu on, method %s\n", options.seeds,
              static_cast<unsigned long long>(options.first_seed), options.method.c_str());
  for (const std::string& family : families) {
    is_good = Family(family, false, options) && is_good;
    if (family.starts_with("grid") || family.starts_with("flat") || family.starts_with("big") ||
        family == "odd-uneven") {
      is_good = Family(family, true, options) && is_good;
    }
  }
  return is_good;
}

}  // namespace sekisho::bench
