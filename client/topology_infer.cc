// SPDX-License-Identifier: Apache-2.0
#include "client/topology_infer.h"

#include <algorithm>
#include <memory>
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap_files.h"
#include "client/topology_oracle.h"
#include "topology/alpha_matrix.h"
#include "topology/errors.h"
#include "topology/fast.h"
#include "topology/methods.h"
#include "topology/run.h"
#include "topology/show.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

nlohmann::json TreeJson(const topology::Tree& tree, const std::vector<std::string>& names) {
  nlohmann::json json;
  json["hosts"] = nlohmann::json::array();
  json["links"] = nlohmann::json::array();
  // A switch is as sure as the least sure link to another.
  std::vector<double> confidence(tree.vertex_count, 1);
  for (const topology::Link& link : tree.links) {
    json["links"].push_back({{"u", names[link.u]},
                             {"v", names[link.v]},
                             {"latency_us", link.rtt_us / 2},
                             {"confidence", link.confidence}});
    for (const int end : {link.u, link.v}) {
      confidence[end] = std::min(confidence[end], link.confidence);
    }
  }
  for (int i = 0; i < tree.host_count; ++i) {
    json["hosts"].push_back(names[i]);
  }
  json["switches"] = nlohmann::json::array();
  for (int i = tree.host_count; i < tree.vertex_count; ++i) {
    json["switches"].push_back({{"name", names[i]}, {"confidence", confidence[i]}});
  }
  return json;
}

absl::StatusOr<topology::HostList> ReadHosts(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return topology::ParseHosts(text, path);
}

// Runs a method against an oracle that must know as many hosts.
absl::StatusOr<topology::RunTotals> RunOnOracle(const std::string& command, int timeout_s,
                                                size_t hosts, topology::Method& method) {
  TopologyOracle oracle(timeout_s);
  RETURN_IF_ERROR(oracle.Start(command));
  ASSIGN_OR_RETURN(const long told, oracle.HostCount());
  if (told != static_cast<long>(hosts)) {
    return topology::errors::HostCount(hosts, told);
  }
  return topology::RunVirtually(method, [&oracle](const topology::Request& request, double start) {
    return oracle.Measure(request, start);
  });
}

}  // namespace

absl::Status InferTopology(const TopologyInferOptions& options, std::ostream& out,
                           std::ostream& log) {
  // Validate.
  ASSIGN_OR_RETURN(const topology::HostList hosts, ReadHosts(options.hosts));
  const int count = static_cast<int>(hosts.names.size());
  topology::MethodOptions method_options{.seed = options.seed, .site_hints = {}};
  if (options.has_site_hints) {
    if (hosts.cluster_of.empty()) {
      return topology::errors::BadFile(options.hosts,
                                       "--site-hints needs the site of every host: NAME SITE");
    }
    method_options.site_hints = hosts.cluster_of;
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<topology::Method> method,
                   topology::MakeMethod(options.method, count, method_options));

  // Measure.
  ASSIGN_OR_RETURN(const topology::RunTotals totals,
                   RunOnOracle(options.oracle, options.timeout_s, hosts.names.size(), *method));
  const topology::Outcome outcome = method->Finish();
  if (count > 1 && outcome.tree.links.empty()) {
    return topology::errors::NothingAnswered();
  }

  // Answer.
  RETURN_IF_ERROR(WriteFile(options.out, topology::PrintTree(outcome.tree, hosts.names)));
  const int sites = outcome.site_of.empty()
                        ? 1
                        : 1 + *std::max_element(outcome.site_of.begin(), outcome.site_of.end());
  const double per_host = std::max(count, 1);
  if (!options.report.empty()) {
    nlohmann::json json = TreeJson(outcome.tree, topology::VertexNames(outcome.tree, hosts.names));
    json["excluded"] = nlohmann::json::array();
    for (const topology::Excluded& excluded : outcome.excluded) {
      json["excluded"].push_back({{"host", hosts.names[excluded.host]}, {"why", excluded.why}});
    }
    json["sites"] = sites;
    json["virtual_seconds"] = totals.makespan_us / 1e6;
    json["measurements"] = totals.measurements;
    json["pings"] = totals.pings;
    RETURN_IF_ERROR(WriteFile(options.report, json.dump(1) + "\n"));
  }
  out << fmt::format(
      "{} hosts, {} site{}, {} switches; {:.3f} s of virtual time, {:.1f} measurements and {:.0f} "
      "pings a host\n",
      count, sites, sites == 1 ? "" : "s", outcome.tree.vertex_count - outcome.tree.host_count,
      totals.makespan_us / 1e6, static_cast<double>(totals.measurements) / per_host,
      static_cast<double>(totals.pings) / per_host);
  for (const topology::Excluded& excluded : outcome.excluded) {
    log << fmt::format("{}: {}\n", hosts.names[excluded.host], excluded.why);
  }
  return absl::OkStatus();
}

absl::Status WriteTopologyMatrix(const TopologyMatrixOptions& options, std::ostream& out) {
  // Validate.
  ASSIGN_OR_RETURN(const topology::HostList hosts, ReadHosts(options.hosts));
  const int count = static_cast<int>(hosts.names.size());
  if (options.method != "tree" && options.method != "alpha") {
    return topology::errors::UnknownMatrixMethod(options.method);
  }

  // Measure.
  topology::RunTotals totals;
  topology::Matrix matrix(count);
  if (options.method == "alpha") {
    topology::AlphaMatrix method(count, options.alpha, options.seed);
    ASSIGN_OR_RETURN(totals,
                     RunOnOracle(options.oracle, options.timeout_s, hosts.names.size(), method));
    matrix = method.matrix();
  } else {
    topology::FastMethod method(count, {.site_hints = {}, .seed = options.seed});
    ASSIGN_OR_RETURN(totals,
                     RunOnOracle(options.oracle, options.timeout_s, hosts.names.size(), method));
    const topology::Tree tree = method.Finish().tree;
    for (int i = 0; i < count; ++i) {
      const topology::Rooted rooted = topology::HangUp(tree, i);
      for (const int vertex : rooted.order) {
        if (vertex < i) {
          const double measured = method.ledger().Rtt(i, vertex);
          matrix.Set(i, vertex, measured >= 0 ? measured : rooted.depth_us[vertex]);
        }
      }
    }
  }

  // Answer.
  std::string text;
  long unknown = 0;
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      if (matrix.At(i, j) >= 0) {
        text += fmt::format("{} {} {:.3f}\n", i, j, matrix.At(i, j));
      } else {
        ++unknown;
      }
    }
  }
  RETURN_IF_ERROR(WriteFile(options.out, text));
  out << fmt::format(
      "{} hosts; {:.3f} s of virtual time, {:.1f} measurements a host; {} pairs unknown\n", count,
      totals.makespan_us / 1e6, static_cast<double>(totals.measurements) / std::max(count, 1),
      unknown);
  return absl::OkStatus();
}

absl::Status ShowTopology(const TopologyShowOptions& options, std::ostream& out) {
  std::vector<std::string> names;
  if (!options.hosts.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(options.hosts));
    ASSIGN_OR_RETURN(topology::HostList hosts, topology::ParseHosts(text, options.hosts));
    names = std::move(hosts.names);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.tree));
  ASSIGN_OR_RETURN(const topology::NamedTree named, topology::ParseTree(text, options.tree, names));
  if (options.is_json) {
    out << TreeJson(named.tree, named.names).dump(1) << '\n';
  } else if (options.is_dot) {
    out << topology::ShowDot(named.tree, named.names);
  } else if (options.is_svg) {
    out << topology::ShowSvg(named.tree, named.names);
  } else {
    out << topology::ShowText(named.tree, named.names);
  }
  return absl::OkStatus();
}

}  // namespace sekisho::client
