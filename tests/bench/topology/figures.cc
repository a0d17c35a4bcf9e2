// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>

#include "tests/bench/topology/tables.h"
#include "topology/alpha_matrix.h"
#include "topology/run.h"
#include "topology/sim/families.h"
#include "topology/sim/network.h"
#include "topology/sim/trial.h"
#include "topology/slots.h"

namespace sekisho::bench {
namespace {

using topology::Reach;
using topology::Request;
using topology::sim::Trial;
using topology::sim::Truth;

double At(std::vector<double> values, double quantile) {
  std::sort(values.begin(), values.end());
  const double rank = quantile * static_cast<double>(values.size() - 1);
  return values.empty() ? 0 : values[static_cast<size_t>(std::lround(rank))];
}

Series Distribution(const std::string& name, std::vector<double> values) {
  std::sort(values.begin(), values.end());
  Series series{name, {}};
  for (size_t i = 0; i < values.size(); ++i) {
    series.points.emplace_back(
        100 * values[i], 100.0 * static_cast<double>(i + 1) / static_cast<double>(values.size()));
  }
  return series;
}

// What the others are compared with: every pair is measured, as the paper's method does it or with
// so few pings as `fast` sends; a host is in one measurement inside its site and four outside.
class AllPairs final : public topology::Method {
 public:
  AllPairs(const Truth& truth, int sets, int most)
      : truth_(truth),
        slots_(truth.host_count),
        local_(truth.host_count, Reach::kLocal),
        wide_(truth.host_count, Reach::kWide) {
    for (int a = 0; a < truth.host_count; ++a) {
      for (int b = 0; b < a; ++b) {
        const Request request{.from = b, .to = a, .sets = sets, .stop = 10, .most = most};
        (IsWide(request) ? wide_ : local_).Add(request);
      }
    }
  }
  std::vector<Request> Next() override {
    std::vector<Request> started;
    local_.Start(slots_, started);
    wide_.Start(slots_, started);
    return started;
  }
  void Report(const Request& request, const topology::Answer&) override {
    slots_.Release(request, IsWide(request) ? Reach::kWide : Reach::kLocal);
    for (const int host : {request.from, request.to}) {
      (IsWide(request) ? wide_ : local_).Touch(host);
    }
  }
  topology::Outcome Finish() override { return {}; }

 private:
  bool IsWide(const Request& request) const {
    return truth_.cluster_of[request.from] != truth_.cluster_of[request.to];
  }

  const Truth& truth_;
  topology::Slots slots_;
  topology::PairQueue local_;
  topology::PairQueue wide_;
};

double SecondsForAllPairs(const Truth& truth, uint64_t seed, int sets, int most) {
  topology::sim::Network network(truth, seed);
  AllPairs method(truth, sets, most);
  const auto totals = topology::RunVirtually(method, [&](const Request& request, double) {
    return absl::StatusOr<topology::Answer>(network.Measure(request));
  });
  return totals->makespan_us / 1e6;
}

}  // namespace

void WritePlot(const std::string& path, const std::string& title, const std::string& x_label,
               const std::string& y_label, const std::vector<Series>& series, bool is_log) {
  const char* colours[] = {"#1b6ca8", "#c8553d", "#2a7f62", "#8e5ea2", "#b8860b",
                           "#555555", "#d1495b", "#00798c", "#7a5c3e"};
  double x_most = 1e-9;
  double y_most = 1e-9;
  double y_least = std::numeric_limits<double>::max();
  for (const Series& one : series) {
    for (const auto& [x, y] : one.points) {
      x_most = std::max(x_most, x);
      y_most = std::max(y_most, y);
      y_least = std::min(y_least, y);
    }
  }
  std::FILE* file = std::fopen(path.c_str(), "w");
  if (file == nullptr) {
    std::printf("%s: cannot be written\n", path.c_str());
    return;
  }
  const auto at_x = [&](double x) { return 60 + 480 * x / x_most; };
  const auto share_of = [&](double y) {
    return is_log ? std::log(y / y_least) / std::log(y_most / y_least) : y / y_most;
  };
  const auto at_y = [&](double y) { return 320 - 270 * share_of(y); };
  std::fprintf(file,
               "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"720\" height=\"370\" "
               "font-family=\"sans-serif\" font-size=\"12\">\n"
               "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
               "<text x=\"300\" y=\"24\" text-anchor=\"middle\" font-size=\"14\">%s</text>\n"
               "<text x=\"300\" y=\"360\" text-anchor=\"middle\">%s</text>\n"
               "<text x=\"16\" y=\"185\" text-anchor=\"middle\" transform=\"rotate(-90 16 185)\">%s"
               "</text>\n<path d=\"M60 50V320H540\" fill=\"none\" stroke=\"#333\"/>\n",
               title.c_str(), x_label.c_str(), y_label.c_str());
  for (int i = 0; i <= 4; ++i) {
    std::fprintf(file,
                 "<text x=\"%.0f\" y=\"336\" text-anchor=\"middle\">%.3g</text>\n"
                 "<text x=\"54\" y=\"%.0f\" text-anchor=\"end\">%.3g</text>\n",
                 at_x(x_most * i / 4), x_most * i / 4, 320 - 270.0 * i / 4 + 4,
                 is_log ? y_least * std::pow(y_most / y_least, i / 4.0) : y_most * i / 4);
  }
  for (size_t i = 0; i < series.size(); ++i) {
    const char* colour = colours[i % 9];
    std::fprintf(file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\" points=\"",
                 colour);
    for (const auto& [x, y] : series[i].points) {
      std::fprintf(file, "%.1f,%.1f ", at_x(x), at_y(y));
    }
    std::fprintf(file, "\"/>\n<text x=\"550\" y=\"%zu\" fill=\"%s\">%s</text>\n", 66 + 18 * i,
                 colour, series[i].name.c_str());
  }
  std::fprintf(file, "</svg>\n");
  std::fclose(file);
  std::printf("wrote %s\n", path.c_str());
}

// How often "do A-B and C-D share a link?" is answered wrongly, over many runs.
void ErrorDistributions(const Options& options) {
  std::vector<Series> negative;
  std::vector<Series> positive;
  std::printf("\nfigure 8: wrong answers, %% of all, median / 90 %% / worst of %d runs\n",
              options.seeds);
  for (const char* family : {"single64", "grid256"}) {
    for (const char* method : {"paper", "fast"}) {
      std::vector<double> fn;
      std::vector<double> fp;
      for (int i = 0; i < options.seeds; ++i) {
        const uint64_t seed = options.first_seed + static_cast<uint64_t>(i);
        // One network, many runs, as in the paper.
        const Truth truth = *topology::sim::MakeFamily(family, options.first_seed);
        const auto trial = topology::sim::RunTrial(truth, method, false, seed);
        fn.push_back(trial->score.false_negative);
        fp.push_back(trial->score.false_positive);
      }
      std::printf(
          "%-9s %-6s false negatives %6.2f %6.2f %6.2f   false positives %6.2f %6.2f %6.2f\n",
          family, method, 100 * At(fn, 0.5), 100 * At(fn, 0.9), 100 * At(fn, 1), 100 * At(fp, 0.5),
          100 * At(fp, 0.9), 100 * At(fp, 1));
      std::fflush(stdout);
      negative.push_back(Distribution(std::string(family) + " " + method, fn));
      positive.push_back(Distribution(std::string(family) + " " + method, fp));
    }
  }
  WritePlot(options.directory + "/figure8-false-negatives.svg", "False negatives",
            "wrong answers [%]", "runs [%]", negative);
  WritePlot(options.directory + "/figure8-false-positives.svg", "False positives",
            "wrong answers [%]", "runs [%]", positive);
}

// Time against hosts for 1, 2 and 4 sites, and which share of all pairs was measured; and what it
// takes to measure them all.
void TimesAndPairs(const Options& options) {
  std::printf("\nfigures 9 and 10: median of %d runs\n", std::min(options.seeds, 5));
  std::vector<Series> times;
  std::vector<Series> shares;
  for (const char* method : {"paper", "fast"}) {
    for (const int sites : {1, 2, 4}) {
      Series time{std::to_string(sites) + " sites, " + method, {}};
      Series within{std::to_string(sites) + " sites, " + method + ", within", {}};
      Series between{std::to_string(sites) + " sites, " + method + ", between", {}};
      for (const int hosts : {32, 64, 128, 192, 256}) {
        std::vector<double> seconds;
        std::vector<double> inside;
        std::vector<double> outside;
        for (int i = 0; i < std::min(options.seeds, 5); ++i) {
          const uint64_t seed = options.first_seed + static_cast<uint64_t>(i);
          const Truth truth = topology::sim::MakeGrid(hosts, sites, seed);
          const auto trial = topology::sim::RunTrial(truth, method, false, seed, 1000);
          seconds.push_back(trial->totals.makespan_us / 1e6);
          inside.push_back(100 * trial->within_share);
          outside.push_back(100 * trial->between_share);
        }
        time.points.emplace_back(hosts, At(seconds, 0.5));
        within.points.emplace_back(hosts, At(inside, 0.5));
        between.points.emplace_back(hosts, At(outside, 0.5));
        std::printf(
            "%-6s %d sites %3d hosts: %8.2f s, pairs within sites %5.1f %%, between %5.2f %%\n",
            method, sites, hosts, At(seconds, 0.5), At(inside, 0.5), At(outside, 0.5));
        std::fflush(stdout);
      }
      times.push_back(time);
      shares.push_back(within);
      if (sites > 1) {
        shares.push_back(between);
      }
    }
  }
  for (const int sites : {1, 2, 4}) {
    Series time{std::to_string(sites) + " sites, all pairs", {}};
    for (const int hosts : {32, 64, 128, 192, 256}) {
      std::vector<double> seconds;
      std::vector<double> few_pings;
      for (int i = 0; i < std::min(options.seeds, 5); ++i) {
        const uint64_t seed = options.first_seed + static_cast<uint64_t>(i);
        const Truth truth = topology::sim::MakeGrid(hosts, sites, seed);
        seconds.push_back(SecondsForAllPairs(truth, seed, 3, 30));
        few_pings.push_back(SecondsForAllPairs(truth, seed, 1, 4));
      }
      time.points.emplace_back(hosts, At(seconds, 0.5));
      std::printf(
          "all    %d sites %3d hosts: %8.2f s (3 sets of up to 30 pings), %.2f s (4 pings)\n",
          sites, hosts, At(seconds, 0.5), At(few_pings, 0.5));
      std::fflush(stdout);
    }
    times.push_back(time);
  }
  WritePlot(options.directory + "/figure9-time.svg", "Inference time", "hosts",
            "seconds (virtual), logarithmic", times, true);
  WritePlot(options.directory + "/figure10-pairs.svg", "Pairs measured", "hosts", "% of all pairs",
            shares);
}

void AlphaSweep(const Options& options) {
  std::printf("\nmatrix by the alpha rule, grid256, median of %d runs\n",
              std::min(options.seeds, 5));
  Series time{"time", {}};
  for (const double alpha : {1.5, 2.0, 3.0, 5.0, 8.0, 12.0, 20.0, 1000.0}) {
    std::vector<double> seconds;
    std::vector<double> measured;
    std::vector<double> median;
    std::vector<double> p99;
    for (int i = 0; i < std::min(options.seeds, 5); ++i) {
      const uint64_t seed = options.first_seed + static_cast<uint64_t>(i);
      const Truth truth = *topology::sim::MakeFamily("grid256", seed);
      topology::sim::Network network(truth, seed);
      topology::AlphaMatrix method(truth.host_count, alpha, seed);
      const auto totals =
          topology::RunVirtually(method, [&](const topology::Request& request, double) {
            return absl::StatusOr<topology::Answer>(network.Measure(request));
          });
      std::vector<double> errors;
      for (int a = 0; a < truth.host_count; ++a) {
        for (int b = 0; b < a; ++b) {
          const double rtt = network.PathRtt(a, b);
          errors.push_back(std::abs(method.matrix().At(a, b) - rtt) / rtt);
        }
      }
      seconds.push_back(totals->makespan_us / 1e6);
      measured.push_back(static_cast<double>(method.measured()) / truth.host_count);
      median.push_back(100 * At(errors, 0.5));
      p99.push_back(100 * At(errors, 0.99));
    }
    std::printf(
        "alpha %6.1f: %6.2f s, %5.1f measurements a host, error median %.2f %%, p99 %.2f %%\n",
        alpha, At(seconds, 0.5), At(measured, 0.5), At(median, 0.5), At(p99, 0.5));
    std::fflush(stdout);
    if (alpha < 100) {
      time.points.emplace_back(alpha, At(seconds, 0.5));
    }
  }
  WritePlot(options.directory + "/alpha-sweep.svg", "Time of the matrix", "alpha",
            "seconds (virtual)", {time});
}

}  // namespace sekisho::bench
