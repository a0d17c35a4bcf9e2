// SPDX-License-Identifier: Apache-2.0
#include "rankmap/report.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>
#include <span>
#include <vector>

#include <fmt/format.h>

#include "rankmap/flow_time.h"

namespace sekisho::rankmap {
namespace {

constexpr int kCells = 64;  // of the heat map, each way
constexpr int kBars = 40;
constexpr int kMostPictured = 16384;  // nodes
constexpr size_t kMostSimulated = 100000;  // messages
constexpr double kTogether = 0.02;

class Svg {
 public:
  void Rect(double x, double y, double w, double h, std::string_view fill) {
    fmt::format_to(
        out(), "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n",
        x, y, w, h, fill);
  }
  void Text(double x, double y, std::string_view text, int size = 12) {
    fmt::format_to(out(), "<text x=\"{:.1f}\" y=\"{:.1f}\" font-size=\"{}\">{}</text>\n", x, y,
                   size, text);
  }
  void Line(std::string_view points, std::string_view colour) {
    fmt::format_to(out(), "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\"/>\n", points, colour);
  }
  std::string text;

 private:
  std::back_insert_iterator<std::string> out() { return std::back_inserter(text); }
};

std::string Heat(double share) {
  const int level = static_cast<int>(255 * (1 - std::clamp(share, 0.0, 1.0)));
  return fmt::format("#{:02x}{:02x}{:02x}", 255 - (255 - level) / 3, level, level);
}

// Bytes from blocks of ranks to blocks of ranks, on a logarithmic scale.
void DrawMatrix(Svg& svg, const Pattern& pattern, double x, double y, double size) {
  const int cells = std::min(kCells, pattern.ranks());
  std::vector<double> bytes(cells * cells);
  for (const Message& m : pattern.messages()) {
    const auto cell = [&](uint32_t rank) {
      return static_cast<int>(static_cast<int64_t>(rank) * cells / pattern.ranks());
    };
    bytes[cell(m.source) * cells + cell(m.target)] += static_cast<double>(m.bytes);
  }
  const double most = std::log1p(*std::max_element(bytes.begin(), bytes.end()));
  const double step = size / cells;
  svg.Text(x, y - 6, "bytes by source (down) and target (right), logarithmic");
  svg.Rect(x, y, size, size, "#f8f8f8");
  for (int i = 0; i < cells * cells; ++i) {
    if (bytes[i] > 0) {
      svg.Rect(x + i % cells * step, y + i / cells * step, step, step,
               Heat(0.15 + 0.85 * std::log1p(bytes[i]) / most));
    }
  }
}

// How many links carry how much, both placements on the same scale.
void DrawHistogram(Svg& svg, const std::vector<int64_t>& loads, int64_t most, double x, double y,
                   double width, double height, std::string_view title, std::string_view colour) {
  std::vector<int> bars(kBars);
  for (const int64_t load : loads) {
    ++bars[std::min<int64_t>(load * kBars / std::max<int64_t>(most, 1), kBars - 1)];
  }
  const int highest = *std::max_element(bars.begin(), bars.end());
  svg.Text(x, y - 6, title);
  svg.Rect(x, y, width, height, "#f8f8f8");
  for (int i = 0; i < kBars; ++i) {
    const double h = highest == 0 ? 0 : height * bars[i] / highest;
    svg.Rect(x + i * width / kBars, y + height - h, width / kBars - 1, h, colour);
  }
  svg.Text(x, y + height + 14, "0");
  svg.Text(x + width - 90, y + height + 14, fmt::format("{} bytes", most));
}

// How much waits at the routers while all messages are on their way.
struct Backlog {
  double at = 0;  // seconds
  double most = 0, mean = 0;  // bytes at the fullest router, and on average
};

std::vector<Backlog> Backlogs(const Pattern& pattern, const Network& network, const Placement& placement) {
  const size_t links_of_router = network.grid().dims.size() * 2;
  std::vector<Backlog> backlogs;
  FlowOptions options;
  options.together = kTogether;
  options.observe = [&](double now, std::span<const double> waiting) {
    Backlog backlog{now};
    for (size_t first = 0; first < waiting.size(); first += links_of_router) {
      const double bytes = std::accumulate(&waiting[first], &waiting[first] + links_of_router, 0.0);
      backlog.most = std::max(backlog.most, bytes);
      backlog.mean += bytes / network.nodes();
    }
    backlogs.push_back(backlog);
  };
  const double end = TimeAtOnce(pattern, network, placement, options);
  backlogs.push_back({end, 0, 0});
  return backlogs;
}

// Both placements on the same scales, as figures 9 and 10 of paper 002.
void DrawBacklogs(Svg& svg, const std::vector<Backlog>& backlogs, double end, double most, double x, double y,
                  double width, double height, std::string_view title) {
  svg.Text(x, y - 6, title);
  svg.Rect(x, y, width, height, "#f8f8f8");
  const auto curve = [&](double Backlog::*value, std::string_view colour) {
    std::string points;
    for (const Backlog& b : backlogs) {
      fmt::format_to(std::back_inserter(points), "{:.1f},{:.1f} ", x + width * b.at / end,
                     y + height * (1 - b.*value / most));
    }
    svg.Line(points, colour);
  };
  curve(&Backlog::most, "#b05050");
  curve(&Backlog::mean, "#5070b0");
  svg.Text(x, y + height + 14, fmt::format("ends after {:.3f} ms", 1e3 * backlogs.back().at));
  svg.Text(x + width - 60, y + height + 14, fmt::format("{:.3f} ms", 1e3 * end));
}

void DrawRouters(Svg& svg, const Pattern& pattern, const Network& network, const Placement& before,
                 const Placement& after, double y) {
  const std::vector<Backlog> first = Backlogs(pattern, network, before);
  const std::vector<Backlog> second = Backlogs(pattern, network, after);
  const double end = std::max(first.back().at, second.back().at);
  double most = 0;
  for (const auto* backlogs : {&first, &second}) {
    for (const Backlog& b : *backlogs) {
      most = std::max(most, b.most);
    }
  }
  if (end <= 0 || most <= 0) {
    return;  // nothing waits anywhere
  }
  DrawBacklogs(svg, first, end, most, 20, y, 430, 160,
               fmt::format("bytes waiting at routers, before: fullest (red; top is {:.3g}), mean (blue)", most));
  DrawBacklogs(svg, second, end, most, 490, y, 430, 160, "after");
}

// The network slice by slice; colour is the rank's number.
void DrawPlaces(Svg& svg, const Pattern& pattern, const Network& network,
                const Placement& placement, double x, double y, double size) {
  const bool is_grid = network.kind() == Network::Kind::kGrid;
  const int columns =
      is_grid ? network.grid().dims[0] : static_cast<int>(std::ceil(std::sqrt(network.nodes())));
  const int rows = is_grid && network.grid().dims.size() > 1
                       ? network.grid().dims[1]
                       : (network.nodes() + columns - 1) / columns;
  const int slices = (network.nodes() + columns * rows - 1) / (columns * rows);
  const int across = static_cast<int>(std::ceil(std::sqrt(slices)));
  const double step = size / (across * (std::max(columns, rows) + 1));
  svg.Text(x, y - 6, "nodes, slice by slice; the colour is the number of the rank");
  for (int node = 0; node < network.nodes(); ++node) {
    const uint32_t rank = placement.rank_in(node * network.capacity());
    const int slice = node / (columns * rows);
    const double left = x + (slice % across) * step * (columns + 1) + node % columns * step;
    const double top = y + (slice / across) * step * (rows + 1) + node / columns % rows * step;
    const bool is_empty = rank >= static_cast<uint32_t>(pattern.ranks());
    svg.Rect(left, top, step, step,
             is_empty ? "#dddddd" : fmt::format("hsl({},70%,55%)", 300 * rank / pattern.ranks()));
  }
}

}  // namespace

std::string RenderSvg(const Pattern& pattern, const Network& network, const Placement& before,
                      const Placement& after) {
  Svg svg;
  svg.text =
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 960 1120\" "
      "font-family=\"sans-serif\">\n";
  DrawMatrix(svg, pattern, 20, 40, 400);
  if (network.links() > 0) {
    const auto loads_before = LinkBytes(pattern, network, before);
    const auto loads_after = LinkBytes(pattern, network, after);
    const int64_t most = std::max(*std::max_element(loads_before.begin(), loads_before.end()),
                                  *std::max_element(loads_after.begin(), loads_after.end()));
    DrawHistogram(svg, loads_before, most, 480, 40, 440, 160, "links by load, before", "#b05050");
    DrawHistogram(svg, loads_after, most, 480, 260, 440, 160, "links by load, after", "#5070b0");
  }
  if (network.kind() == Network::Kind::kGrid && pattern.messages().size() <= kMostSimulated) {
    DrawRouters(svg, pattern, network, before, after, 920);
  }
  if (network.nodes() <= kMostPictured) {
    DrawPlaces(svg, pattern, network, before, 20, 490, 380);
    DrawPlaces(svg, pattern, network, after, 480, 490, 380);
  }
  return svg.text + "</svg>\n";
}

std::string RenderHtml(const Pattern& pattern, const Network& network, const Placement& before,
                       const Placement& after) {
  const Values a = Evaluate(pattern, network, before);
  const Values b = Evaluate(pattern, network, after);
  std::string rows;
  const auto row = [&](std::string_view name, auto x, auto y) {
    fmt::format_to(std::back_inserter(rows), "<tr><td>{}</td><td>{}</td><td>{}</td></tr>\n", name,
                   x, y);
  };
  row("hop_bytes", a.hop_bytes, b.hop_bytes);
  row("avg_hops", a.avg_hops, b.avg_hops);
  row("hops_sum", a.hops_sum, b.hops_sum);
  row("max_link", a.max_link, b.max_link);
  row("rmatt_eval", a.rmatt_eval(), b.rmatt_eval());
  row("step_sum", a.step_sum, b.step_sum);
  return fmt::format(
      "<!doctype html>\n<meta charset=\"utf-8\"><title>Placement of {} ranks</title>\n"
      "<style>body{{font-family:sans-serif;max-width:60em;margin:2em auto}}"
      "td,th{{padding:.2em 1em;text-align:right}}</style>\n"
      "<h1>{} ranks on {} "
      "nodes</h1>\n<table><tr><th></th><th>before</th><th>after</th></tr>\n{}</table>\n{}",
      pattern.ranks(), pattern.ranks(), network.nodes(), rows,
      RenderSvg(pattern, network, before, after));
}

}  // namespace sekisho::rankmap
