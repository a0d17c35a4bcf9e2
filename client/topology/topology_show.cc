// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_show.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_files.h"
#include "topology/confidence.h"
#include "topology/errors.h"
#include "topology/show.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

using LinksOfFile = std::map<std::pair<std::string, std::string>, nlohmann::json>;

// What a JSON file of ours says of links, by the names of their ends.
absl::StatusOr<LinksOfFile> ReadLinks(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object() || !json.contains("links") || !json["links"].is_array()) {
    return topology::errors::BadFile(path, "expected JSON with \"links\", as we print it");
  }
  LinksOfFile links;
  for (const nlohmann::json& link : json["links"]) {
    if (link.is_object() && link.contains("u") && link["u"].is_string() && link.contains("v") &&
        link["v"].is_string()) {
      links[std::minmax(link["u"].get<std::string>(), link["v"].get<std::string>())] = link;
    }
  }
  return links;
}

// The number that the file has for this link, or a null.
nlohmann::json Find(const LinksOfFile& links, const topology::NamedTree& named,
                    const topology::Link& link, const char* key) {
  const auto found = links.find(std::minmax(named.names[link.u], named.names[link.v]));
  return found != links.end() && found->second.contains(key) && found->second[key].is_number()
             ? found->second[key]
             : nlohmann::json();
}

absl::Status AddReport(const std::string& path, topology::NamedTree& named) {
  ASSIGN_OR_RETURN(const LinksOfFile links, ReadLinks(path));
  for (topology::Link& link : named.tree.links) {
    const nlohmann::json confidence = Find(links, named, link, "confidence");
    if (confidence.is_null()) {
      return topology::errors::BadFile(
          path, fmt::format("is no report of this tree: it says nothing of the link {} {}",
                            named.names[link.u], named.names[link.v]));
    }
    link.confidence = std::clamp(confidence.get<double>(), 0.0, 1.0);
  }
  return absl::OkStatus();
}

// What each link carries; a map need not have all, as where hosts were away.
struct Carries {
  double mbps = -1;
  bool is_at_least = false;
};
absl::StatusOr<std::vector<Carries>> ReadBandwidth(const std::string& path,
                                                   const topology::NamedTree& named) {
  ASSIGN_OR_RETURN(const LinksOfFile links, ReadLinks(path));
  std::vector<Carries> carries;
  for (const topology::Link& link : named.tree.links) {
    const nlohmann::json mbps = Find(links, named, link, "mbps");
    Carries& one = carries.emplace_back();
    if (!mbps.is_null()) {
      const auto& told = links.at(std::minmax(named.names[link.u], named.names[link.v]));
      one = {mbps.get<double>(), told.contains("is_at_least") && told["is_at_least"] == true};
    }
  }
  if (std::none_of(carries.begin(), carries.end(),
                   [](const Carries& one) { return one.mbps >= 0; })) {
    return topology::errors::BadFile(
        path, "is no bandwidth map of this tree: it says nothing of any of its links");
  }
  return carries;
}

}  // namespace

nlohmann::json TreeJson(const topology::Tree& tree, const std::vector<std::string>& names) {
  nlohmann::json json;
  json["hosts"] = nlohmann::json::array();
  json["links"] = nlohmann::json::array();
  const std::vector<double> confidence = topology::SwitchConfidence(tree);
  for (const topology::Link& link : tree.links) {
    json["links"].push_back({{"u", names[link.u]},
                             {"v", names[link.v]},
                             {"latency_us", link.rtt_us / 2},
                             {"confidence", link.confidence},
                             {"relayed", link.is_relayed}});
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

absl::Status ShowTopology(const TopologyShowOptions& options, std::ostream& out) {
  // Validate.
  std::vector<std::string> names;
  if (!options.hosts.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(options.hosts));
    ASSIGN_OR_RETURN(topology::HostList hosts, topology::ParseHosts(text, options.hosts));
    names = std::move(hosts.names);
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.tree));
  ASSIGN_OR_RETURN(topology::NamedTree named, topology::ParseTree(text, options.tree, names));
  if (!options.report.empty()) {
    RETURN_IF_ERROR(AddReport(options.report, named));
  }
  std::vector<Carries> carries;
  if (!options.bandwidth.empty()) {
    ASSIGN_OR_RETURN(carries, ReadBandwidth(options.bandwidth, named));
  }

  // Answer.
  std::vector<std::string> notes;
  for (const Carries& one : carries) {
    notes.push_back(
        one.mbps < 0 ? "" : fmt::format("{}{:.1f} Mb/s", one.is_at_least ? ">=" : "", one.mbps));
  }
  if (options.is_json) {
    nlohmann::json json = TreeJson(named.tree, named.names);
    for (size_t i = 0; i < carries.size(); ++i) {
      if (carries[i].mbps >= 0) {
        json["links"][i]["mbps"] = carries[i].mbps;
        json["links"][i]["is_at_least"] = carries[i].is_at_least;
      }
    }
    out << json.dump(1) << '\n';
  } else if (options.is_dot) {
    out << topology::ShowDot(named.tree, named.names, notes);
  } else if (options.is_svg) {
    out << topology::ShowSvg(named.tree, named.names, notes);
  } else {
    out << topology::ShowText(named.tree, named.names, notes);
  }
  return absl::OkStatus();
}

}  // namespace sekisho::client
