// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_jobs.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/world/relay_choice.h"
#include "common/refusal.h"
#include "topology/errors.h"

namespace sekisho::client {
namespace {

// What this program prints for these words, which may name variables.
std::string Ask(const std::string& words) {
  FILE* const answer = popen(("exec \"$SEKISHO_SELF\" " + words).c_str(), "r");
  std::string text;
  char bytes[4096];
  for (size_t count; answer != nullptr && (count = fread(bytes, 1, sizeof bytes, answer)) > 0;) {
    text.append(bytes, count);
  }
  if (answer != nullptr) {
    pclose(answer);
  }
  return text;
}

// Our own variables carry what users have said past the shell.
void SetVariables(const TopologySourceOptions& options) {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  setenv("SEKISHO_SELF", self.c_str(), 1);
  setenv("SEKISHO_PROBER", options.prober.c_str(), 1);
  setenv("SEKISHO_INTERFACE", options.interface.c_str(), 1);
}

// `where`: RSL that says which nodes; `before`: what the prober runs under.
std::string JobCommand(const std::string& where, const std::string& options = "",
                       const std::string& before = "") {
  return "exec \"$SEKISHO_SELF\" run -q -r \"$SITE\" --job-type single " + options + "-x \"" +
         where + "\" -- " + before +
         "\"$SEKISHO_PROBER\" --probe-only --interface \"$SEKISHO_INTERFACE\"";
}

// Jobs that hold their node alone: on one that is shared there may be two, and what they measure is
// what the other job does.
constexpr const char* kAlone = "(exclusive=yes)";

// This node, beside the jobs that are there.
constexpr const char* kThisNode = "(node=${HOST##*/})";

// Each job speaks for its user, not for itself: to the relay they are strangers else.  Whoever is
// at the relay's own site goes there as its site says.
std::string RelayedCommand(const TopologySourceOptions& options, const std::string& where,
                           const ProberRelay& relay) {
  const std::filesystem::path prober(options.prober);
  setenv("SEKISHO_RELAY_SITE", relay.site.c_str(), 1);
  setenv("SEKISHO_RELAY", ("NXPROXY_SERVER=" + relay.address).c_str(), 1);
  setenv("SEKISHO_THERE", (prober.parent_path() / "sekisho").c_str(), 1);
  return "server=\"$SEKISHO_RELAY\"; test \"$SITE\" = \"$SEKISHO_RELAY_SITE\" && server=; " +
         JobCommand(where, "--delegate ",
                    "/usr/bin/env -u NXPROXY_TOKEN_FILE NXPROXY_QUIET=1 $server "
                    "\"$SEKISHO_THERE\" relay exec -- ");
}

}  // namespace

std::string CommandOverSsh(const TopologySourceOptions& options) {
  SetVariables(options);
  return "exec ssh -T -o BatchMode=yes -- \"$HOST\" \"$SEKISHO_PROBER\" --probe-only "
         "${SEKISHO_INTERFACE:+--interface \"$SEKISHO_INTERFACE\"}";
}

std::vector<std::string> NodesOf(const std::string& answer) {
  const nlohmann::json json = nlohmann::json::parse(answer, nullptr, false);
  std::vector<std::string> names;
  if (json.is_array() && json.size() == 1 && json[0].is_object() && json[0].contains("nodes") &&
      json[0]["nodes"].is_array()) {
    for (const nlohmann::json& node : json[0]["nodes"]) {
      if (node.is_object() && node.value("is_up", false) && node.value("state", "up") == "up" &&
          node.contains("name") && node["name"].is_string()) {
        names.push_back(node["name"].get<std::string>());
      }
    }
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  return names;
}

absl::StatusOr<ProberRelay> RelayOf(const std::vector<std::string>& answers) {
  std::vector<SiteRelay> relays;
  for (const std::string& answer : answers) {
    const nlohmann::json json = nlohmann::json::parse(answer, nullptr, false);
    if (!json.is_array() || json.size() != 1 || !json[0].is_object() ||
        !json[0].value("is_up", false)) {
      continue;  // its probers will say why
    }
    const nlohmann::json relay = json[0].value("relay", nlohmann::json::object());
    SiteRelay& one = relays.emplace_back();
    one.site = json[0].value("site", "");
    one.relay.set_address(relay.value("address", ""));
    one.relay.set_is_only_way(relay.value("is_only_way", false));
  }
  ASSIGN_OR_RETURN(const SiteRelay chosen, ChooseRelay(relays));
  return ProberRelay{chosen.site, chosen.relay.address()};
}

absl::StatusOr<ProberJobs> JobsAtSites(const TopologySourceOptions& options) {
  SetVariables(options);
  const bool are_all_nodes = options.nodes.empty();
  const std::string where = are_all_nodes ? kThisNode : kAlone;
  ProberJobs jobs{.hosts = {}, .command = JobCommand(where)};
  std::vector<std::string> answers;
  for (size_t i = 0; i < options.sites.size(); ++i) {
    const std::string& site = options.sites[i];
    jobs.hosts.cluster_names.push_back(site);
    if (are_all_nodes || options.AreSeveralSites()) {
      setenv("SITE", site.c_str(), 1);
      answers.push_back(Ask("sites --live --json \"$SITE\""));
    }
    std::vector<std::string> nodes;
    if (are_all_nodes) {
      nodes = NodesOf(answers.back());
      if (nodes.empty()) {
        return topology::errors::NoNodes(site, answers.back());
      }
    } else {
      const int count = options.nodes[options.nodes.size() == 1 ? 0 : i];
      for (int node = 0; node < count; ++node) {
        nodes.push_back(std::to_string(node));
      }
    }
    for (const std::string& node : nodes) {
      jobs.hosts.names.push_back(fmt::format("{}/{}", site, node));
      jobs.hosts.cluster_of.push_back(static_cast<int>(i));
    }
  }
  if (options.AreSeveralSites()) {
    const auto relay = RelayOf(answers);
    if (relay.ok()) {
      jobs.command = RelayedCommand(options, where, *relay);
    } else {
      fmt::print(stderr, "sekisho: {}; only what connects directly is measured\n",
                 Message(relay.status()));
    }
  }
  return jobs;
}

absl::StatusOr<ProberJobs> JobsBeside(const TopologySourceOptions& options) {
  SetVariables(options);
  setenv("SEKISHO_JOB", options.job.c_str(), 1);
  const std::string text = Ask("status --json \"$SEKISHO_JOB\"");
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  ProberJobs jobs{.hosts = {}, .command = JobCommand("(node=$HOST)")};
  if (json.is_object() && json.contains("site") && json["site"].is_string() &&
      json.contains("nodes") && json["nodes"].is_array()) {
    jobs.hosts.cluster_names = {json["site"].get<std::string>()};
    for (const nlohmann::json& node : json["nodes"]) {
      if (node.is_string()) {
        jobs.hosts.names.push_back(node.get<std::string>());
        jobs.hosts.cluster_of.push_back(0);
      }
    }
  }
  if (jobs.hosts.names.empty() || !json.contains("ended_ms") || json["ended_ms"] != 0) {
    return topology::errors::NoJobNodes(options.job, text);
  }
  return jobs;
}

}  // namespace sekisho::client
