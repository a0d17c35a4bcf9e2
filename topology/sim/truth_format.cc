// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/truth_format.h"

#include <charconv>
#include <map>
#include <sstream>

#include <fmt/format.h>

#include "topology/errors.h"

namespace sekisho::topology::sim {

std::string PrintTruth(const Truth& truth) {
  const auto name = [&](int v) {
    return v < truth.host_count ? truth.names[v] : fmt::format("x{}", v - truth.host_count);
  };
  std::string text;
  for (const TruthLink& link : truth.links) {
    text += fmt::format("{} {} {:.3f} {:.3f} {:g}\n", name(link.u), name(link.v), link.uv_us,
                        link.vu_us, link.mbps);
  }
  return text;
}

absl::StatusOr<Truth> ParseTruth(std::string_view text, std::string_view source,
                                 const HostList& hosts) {
  struct Line {
    std::string u, v;
    double uv_us, vu_us, mbps;
  };
  std::vector<Line> lines;
  std::map<std::string, int> degree;
  std::istringstream stream{std::string(text)};
  std::string raw;
  for (size_t number = 1; std::getline(stream, raw); ++number) {
    std::istringstream words(raw);
    Line line;
    if (raw.empty() || raw[0] == '#') {
      continue;
    }
    std::string rest;
    if (!(words >> line.u >> line.v >> line.uv_us >> line.vu_us >> line.mbps) || words >> rest ||
        !(line.uv_us >= 0 && line.uv_us < 1e9) || !(line.vu_us >= 0 && line.vu_us < 1e9) ||
        !(line.mbps > 0) || line.u == line.v) {
      return errors::BadLine(source, number, "u v latency_uv_us latency_vu_us mbps");
    }
    ++degree[line.u];
    ++degree[line.v];
    lines.push_back(line);
  }
  Truth truth{.family = std::string(source)};
  std::map<std::string, int> number;
  const auto add = [&](const std::string& name, int cluster) {
    if (number.emplace(name, static_cast<int>(truth.names.size())).second) {
      truth.names.push_back(name);
      truth.cluster_of.push_back(cluster);
    }
  };
  for (size_t i = 0; i < hosts.names.size(); ++i) {
    if (!degree.contains(hosts.names[i])) {
      return errors::BadFile(source, fmt::format("host {} has no link", hosts.names[i]));
    }
    add(hosts.names[i], hosts.cluster_of.empty() ? 0 : hosts.cluster_of[i]);
  }
  for (const auto& [name, count] : degree) {
    if (hosts.names.empty() && count == 1) {
      add(name, 0);
    }
  }
  truth.host_count = truth.vertex_count = static_cast<int>(truth.names.size());
  for (const auto& [name, count] : degree) {
    if (number.emplace(name, truth.vertex_count).second) {
      ++truth.vertex_count;
    }
  }
  for (const Line& line : lines) {
    truth.links.push_back(
        {number.at(line.u), number.at(line.v), line.uv_us, line.vu_us, line.mbps});
  }
  truth.is_busy.assign(truth.host_count, false);
  truth.is_dead.assign(truth.host_count, false);
  if (truth.host_count == 0 || truth.links.size() + 1 != degree.size() ||
      HangUp(TreeOf(truth), truth.links[0].u).order.size() != degree.size()) {
    return errors::BadFile(source, "the lines are not one tree");
  }
  return truth;
}

}  // namespace sekisho::topology::sim
