// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_infer.h"

#include <algorithm>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_files.h"
#include "client/topology/topology_show.h"
#include "topology/alpha_matrix.h"
#include "topology/confidence.h"
#include "topology/errors.h"
#include "topology/fast.h"
#include "topology/methods.h"
#include "topology/revise.h"
#include "topology/run.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

constexpr size_t kLeastSure = 3;  // switches that infer names

// What was measured of them before they went says too little of where they belong.
std::vector<bool> LostHosts(const TopologySource& source) {
  std::vector<bool> is_lost;
  for (size_t i = 0; i < source.hosts().names.size(); ++i) {
    is_lost.push_back(!source.WhyLost(static_cast<int>(i)).empty());
  }
  return is_lost;
}

// The hosts that something is wrong with, and what, by who knows it best.
std::vector<std::pair<std::string, std::string>> Missing(const TopologySource& source,
                                                         const topology::Outcome& outcome) {
  std::map<int, std::string> why;
  for (const topology::Excluded& excluded : outcome.excluded) {
    why[excluded.host] = excluded.why;
  }
  const std::vector<std::string>& names = source.hosts().names;
  std::vector<std::pair<std::string, std::string>> missing;
  for (size_t i = 0; i < names.size(); ++i) {
    const int host = static_cast<int>(i);
    const std::string lost = source.WhyLost(host);
    if (!lost.empty() || why.contains(host)) {
      missing.emplace_back(names[i], lost.empty() ? why[host] : lost);
    }
  }
  return missing;
}

void Name(const std::vector<std::pair<std::string, std::string>>& missing, std::ostream& log) {
  for (const auto& [host, why] : missing) {
    log << fmt::format("{}: {}\n", host, why);
  }
}

// Starts from a tree of earlier.
absl::StatusOr<std::unique_ptr<topology::ReviseMethod>> StartFrom(
    const std::string& path, const std::vector<std::string>& hosts, uint64_t seed) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  ASSIGN_OR_RETURN(topology::NamedTree named, topology::ParseTree(text, path, hosts));
  std::vector<int> links(named.tree.vertex_count, 0);
  for (const topology::Link& link : named.tree.links) {
    if (link.is_relayed) {
      return topology::errors::BadFile(
          path, "has links of a relay, which cannot be checked: infer it anew");
    }
    for (const int end : {link.u, link.v}) {
      if (++links[end] > 1 && named.tree.IsHost(end)) {
        return topology::errors::BadFile(
            path, fmt::format("{} is a switch there, and a host's name now", named.names[end]));
      }
    }
  }
  return std::make_unique<topology::ReviseMethod>(
      topology::Known{.tree = topology::Simplified(named.tree),
                      .is_here = std::vector<bool>(hosts.size(), true)},
      seed);
}

std::string DescribeLeastSure(const topology::Outcome& outcome,
                              const std::vector<std::string>& names) {
  const topology::Tree& tree = outcome.tree;
  const std::vector<double> confidence = topology::SwitchConfidence(tree, outcome.several_ways);
  std::vector<int> switches;
  for (int i = tree.host_count; i < tree.vertex_count; ++i) {
    switches.push_back(i);
  }
  if (switches.size() < 2) {
    return {};
  }
  std::stable_sort(switches.begin(), switches.end(),
                   [&](int a, int b) { return confidence[a] < confidence[b]; });
  switches.resize(std::min(switches.size(), kLeastSure));
  std::string text = "least sure switches (confidence):";
  for (const int one : switches) {
    text += fmt::format("{} {} {:.2f}", one == switches.front() ? "" : ",", names[one],
                        confidence[one]);
  }
  text += '\n';
  for (const topology::SeveralWays& one : outcome.several_ways) {
    text += fmt::format(
        "{}: not one switch: ways across it differ from pair to pair ({:.0f} standard deviations), "
        "as over a redundant core, which is no tree; judge by quartets\n",
        names[one.vertex], one.deviation);
  }
  return text;
}

std::string Describe(const topology::Revision& revision, const std::vector<std::string>& names) {
  if (revision.is_anew) {
    return "inferred anew: too little of the known tree is true\n";
  }
  std::string text =
      fmt::format("{} placed, {} moved\n", revision.placed.size(), revision.moved.size());
  for (const int host : revision.placed) {
    text += names[host] + ": placed\n";
  }
  for (const int host : revision.moved) {
    text += names[host] + ": is not where it was\n";
  }
  return text;
}

}  // namespace

absl::Status InferTopology(const TopologyInferOptions& options, std::ostream& out,
                           std::ostream& log) {
  // Validate.
  RETURN_IF_ERROR(topology::MakeMethod(options.method, 1, {}).status());
  if (options.source.AreSeveralSites() && (!options.known.empty() || options.method != "fast")) {
    return topology::errors::OneSiteOnly(options.known.empty() ? "--method paper" : "--known");
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TopologySource> source,
                   OpenTopologySource(options.source));
  const topology::HostList& hosts = source->hosts();
  const int count = static_cast<int>(hosts.names.size());
  topology::MethodOptions method_options{.seed = options.seed,
                                         .site_hints = KnownSites(options.source, hosts),
                                         .most_at_once = options.source.oracle.empty() ? options.source.most_at_once : 0};
  if (options.has_site_hints) {
    if (hosts.cluster_of.empty()) {
      return topology::errors::BadFile(options.source.hosts,
                                       "--site-hints needs the site of every host: NAME SITE");
    }
    method_options.site_hints = hosts.cluster_of;
  }
  ASSIGN_OR_RETURN(std::unique_ptr<topology::Method> method,
                   topology::MakeMethod(options.method, count, method_options));
  topology::ReviseMethod* revise = nullptr;
  if (!options.known.empty()) {
    ASSIGN_OR_RETURN(auto from_known, StartFrom(options.known, hosts.names, options.seed));
    revise = from_known.get();
    method = std::move(from_known);
  }

  // Measure.
  ASSIGN_OR_RETURN(const topology::RunTotals totals, source->Run(*method));
  topology::Outcome outcome = method->Finish();
  topology::Tree tree = topology::Without(outcome.tree, LostHosts(*source));
  outcome.several_ways = topology::Renumbered(outcome.several_ways, outcome.tree, tree);
  outcome.tree = std::move(tree);
  const auto missing = Missing(*source, outcome);
  if (count > 1 && outcome.tree.links.empty()) {
    Name(missing, log);
    return topology::errors::NothingAnswered();
  }

  // Answer.
  RETURN_IF_ERROR(WriteFile(options.out, topology::PrintTree(outcome.tree, hosts.names)));
  const int sites = outcome.site_of.empty()
                        ? 1
                        : 1 + *std::max_element(outcome.site_of.begin(), outcome.site_of.end());
  const double per_host = std::max(count, 1);
  const std::vector<std::string> names = topology::VertexNames(outcome.tree, hosts.names);
  if (!options.report.empty()) {
    nlohmann::json json = TreeJson(outcome.tree, names);
    const std::vector<double> confidence =
        topology::SwitchConfidence(outcome.tree, outcome.several_ways);
    for (const topology::SeveralWays& one : outcome.several_ways) {
      nlohmann::json& told = json["switches"][one.vertex - outcome.tree.host_count];
      told["confidence"] = confidence[one.vertex];
      told["several_ways"] = one.deviation;
    }
    json["excluded"] = nlohmann::json::array();
    for (const auto& [host, why] : missing) {
      json["excluded"].push_back({{"host", host}, {"why", why}});
    }
    json["sites"] = sites;
    json[source->IsVirtual() ? "virtual_seconds" : "seconds"] = totals.makespan_us / 1e6;
    json["measurements"] = totals.measurements;
    json["pings"] = totals.pings;
    json["relayed"] = totals.relayed;
    RETURN_IF_ERROR(WriteFile(options.report, json.dump(1) + "\n"));
  }
  out << fmt::format(
      "{} hosts, {} site{}, {} switches; {:.3f} s {}, {:.1f} measurements and {:.0f} pings a "
      "host{}\n",
      count, sites, sites == 1 ? "" : "s", outcome.tree.vertex_count - outcome.tree.host_count,
      totals.makespan_us / 1e6, source->KindOfTime(),
      static_cast<double>(totals.measurements) / per_host,
      static_cast<double>(totals.pings) / per_host,
      totals.relayed > 0 ? fmt::format("; {} measurements through a relay", totals.relayed) : "");
  out << DescribeLeastSure(outcome, names);
  if (revise != nullptr) {
    out << Describe(revise->revision(), hosts.names);
  }
  Name(missing, log);
  return absl::OkStatus();
}

absl::Status KeepTopology(TopologyInferOptions options, const std::function<bool()>& wait,
                          std::ostream& out, std::ostream& log) {
  if (options.source.AreSeveralSites() || options.method != "fast") {
    return topology::errors::OneSiteOnly("--live");
  }
  RETURN_IF_ERROR(InferTopology(options, out, log));
  options.known = options.out;
  options.has_site_hints = false;
  while (wait()) {
    ++options.seed;
    const absl::Status status = InferTopology(options, out, log);
    if (!status.ok()) {
      log << fmt::format("the tree stays as it is: {}\n", std::string(status.message()));
    }
  }
  return absl::OkStatus();
}

absl::Status WriteTopologyMatrix(const TopologyMatrixOptions& options, std::ostream& out,
                                 std::ostream& log) {
  // Validate.
  if (options.method != "tree" && options.method != "alpha") {
    return topology::errors::UnknownMatrixMethod(options.method);
  }
  ASSIGN_OR_RETURN(const std::unique_ptr<TopologySource> source,
                   OpenTopologySource(options.source));
  const int count = static_cast<int>(source->hosts().names.size());

  // Measure.
  topology::RunTotals totals;
  topology::Matrix matrix(count);
  std::set<std::pair<int, int>> relayed;
  topology::Outcome outcome;
  if (options.method == "alpha") {
    topology::AlphaMatrix method(count, options.alpha, options.seed);
    ASSIGN_OR_RETURN(totals, source->Run(method));
    matrix = method.matrix();
  } else {
    topology::FastMethod method(
        count, {.site_hints = KnownSites(options.source, source->hosts()), .seed = options.seed});
    ASSIGN_OR_RETURN(totals, source->Run(method));
    outcome = method.Finish();
    const topology::Tree& tree = outcome.tree;
    for (int i = 0; i < count; ++i) {
      const topology::Rooted rooted = topology::HangUp(tree, i);
      std::vector<bool> is_beyond(tree.vertex_count, false);  // a relay
      for (const int vertex : rooted.order) {
        if (vertex != i) {
          is_beyond[vertex] =
              is_beyond[rooted.parent[vertex]] || tree.links[rooted.parent_link[vertex]].is_relayed;
        }
        if (vertex < i) {
          if (method.ledger().IsRelayed(i, vertex) || is_beyond[vertex]) {
            relayed.insert({vertex, i});
          }
          const double measured = method.ledger().Rtt(i, vertex);
          matrix.Set(i, vertex, measured >= 0 ? measured : rooted.depth_us[vertex]);
        }
      }
    }
  }

  // Answer.
  std::string text;
  long unknown = 0;
  std::vector<bool> is_known(count, count < 2);
  for (int i = 0; i < count; ++i) {
    for (int j = i + 1; j < count; ++j) {
      if (matrix.At(i, j) >= 0) {
        is_known[i] = is_known[j] = true;
        text += fmt::format("{} {} {:.3f}{}\n", i, j, matrix.At(i, j),
                            relayed.contains({i, j}) ? " relayed" : "");
      } else {
        ++unknown;
      }
    }
  }
  for (int i = 0; i < count; ++i) {
    if (!is_known[i]) {
      outcome.excluded.insert(outcome.excluded.begin(), {i, "no answer"});  // unless more is known
    }
  }
  const auto missing = Missing(*source, outcome);
  if (count > 1 && text.empty()) {
    Name(missing, log);
    return topology::errors::NothingAnswered();
  }
  RETURN_IF_ERROR(WriteFile(options.out, text));
  Name(missing, log);
  out << fmt::format("{} hosts; {:.3f} s {}, {:.1f} measurements a host; {} pairs unknown\n", count,
                     totals.makespan_us / 1e6, source->KindOfTime(),
                     static_cast<double>(totals.measurements) / std::max(count, 1), unknown);
  return absl::OkStatus();
}

}  // namespace sekisho::client
