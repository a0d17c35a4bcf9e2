// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_source.h"

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_files.h"
#include "client/topology/topology_live.h"
#include "client/topology/topology_oracle.h"
#include "client/topology/topology_probers.h"
#include "topology/errors.h"

namespace sekisho::client {
namespace {

class OracleSource final : public TopologySource {
 public:
  OracleSource(topology::HostList hosts, int timeout_s)
      : hosts_(std::move(hosts)), oracle_(timeout_s) {}

  absl::Status Open(const std::string& command) {
    RETURN_IF_ERROR(oracle_.Start(command));
    ASSIGN_OR_RETURN(const long told, oracle_.HostCount());
    if (told != static_cast<long>(hosts_.names.size())) {
      return topology::errors::HostCount(hosts_.names.size(), told);
    }
    return absl::OkStatus();
  }
  const topology::HostList& hosts() const override { return hosts_; }
  absl::StatusOr<topology::RunTotals> Run(topology::Method& method) override {
    return topology::RunVirtually(method,
                                  [this](const topology::Request& request, double start_us) {
                                    return oracle_.Measure(request, start_us);
                                  });
  }
  std::string WhyLost(int) const override { return {}; }
  std::string KindOfTime() const override { return "of virtual time"; }
  bool IsVirtual() const override { return true; }

 private:
  topology::HostList hosts_;
  TopologyOracle oracle_;
};

class ProberSource final : public TopologySource {
 public:
  absl::Status Open(const TopologySourceOptions& options) {
    most_at_once_ = options.most_at_once;
    ASSIGN_OR_RETURN(hosts_, OpenProbers(options, probers_));
    return absl::OkStatus();
  }
  const topology::HostList& hosts() const override { return hosts_; }
  absl::StatusOr<topology::RunTotals> Run(topology::Method& method) override {
    return RunLive(method, probers_, most_at_once_);
  }
  std::string WhyLost(int host) const override { return probers_.Lost(host); }
  std::string KindOfTime() const override {
    double load[1] = {0};
    getloadavg(load, 1);
    return fmt::format("(load average {:.1f})", load[0]);
  }
  bool IsVirtual() const override { return false; }

 private:
  topology::HostList hosts_;
  int most_at_once_ = 0;
  TopologyProbers probers_;
};

// Jobs that hold their node alone: on one that is shared there may be two, and what they measure is
// what the other job does.
topology::HostList NodesOf(const std::string& site, int nodes) {
  topology::HostList hosts;
  hosts.cluster_names = {site};
  for (int i = 0; i < nodes; ++i) {
    hosts.names.push_back(fmt::format("{}/{}", site, i));
    hosts.cluster_of.push_back(0);
  }
  return hosts;
}

void SetSelf() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  setenv("SEKISHO_SELF", self.c_str(), 1);
}

// Of a job that has nodes, which it names SITE/ID.
absl::StatusOr<topology::HostList> NodesOfJob(const std::string& job) {
  SetSelf();
  setenv("SEKISHO_JOB", job.c_str(), 1);
  FILE* const status = popen("exec \"$SEKISHO_SELF\" status --json \"$SEKISHO_JOB\"", "r");
  std::string text;
  char bytes[4096];
  for (size_t count; status != nullptr && (count = fread(bytes, 1, sizeof bytes, status)) > 0;) {
    text.append(bytes, count);
  }
  if (status != nullptr) {
    pclose(status);
  }
  const nlohmann::json json = nlohmann::json::parse(text, nullptr, false);
  topology::HostList hosts;
  if (json.is_object() && json.contains("site") && json["site"].is_string() &&
      json.contains("nodes") && json["nodes"].is_array()) {
    hosts.cluster_names = {json["site"].get<std::string>()};
    for (const nlohmann::json& node : json["nodes"]) {
      if (node.is_string()) {
        hosts.names.push_back(node.get<std::string>());
        hosts.cluster_of.push_back(0);
      }
    }
  }
  if (hosts.names.empty() || !json.contains("ended_ms") || json["ended_ms"] != 0) {
    return topology::errors::NoJobNodes(job, text);
  }
  return hosts;
}

// `where`: RSL that says which nodes.
std::string JobCommand(const TopologySourceOptions& options, const std::string& where) {
  SetSelf();
  setenv("SEKISHO_PROBER", options.prober.c_str(), 1);
  setenv("SEKISHO_INTERFACE", options.interface.c_str(), 1);
  return "exec \"$SEKISHO_SELF\" run -q -r \"$SITE\" --job-type single -x \"" + where +
         "\" -- \"$SEKISHO_PROBER\" --probe-only --interface \"$SEKISHO_INTERFACE\"";
}

absl::StatusOr<topology::HostList> HostsOf(const std::string& path) {
  if (path.empty()) {
    return topology::errors::NoHosts();
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return topology::ParseHosts(text, path);
}

// Exactly one way to come by measurements.
absl::Status CheckWays(const TopologySourceOptions& options) {
  const int ways = (options.oracle.empty() ? 0 : 1) + (options.launch.empty() ? 0 : 1) +
                   (options.site.empty() ? 0 : 1) + (options.job.empty() ? 0 : 1);
  if (ways != 1) {
    return topology::errors::NoSource();
  }
  if (!options.site.empty() && (options.nodes < 1 || !options.hosts.empty())) {
    return topology::errors::SiteNeedsNodes();
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<topology::HostList> OpenProbers(const TopologySourceOptions& options,
                                               TopologyProbers& probers) {
  RETURN_IF_ERROR(CheckWays(options));
  if (!options.oracle.empty()) {
    return topology::errors::OracleCannot();
  }
  if (!options.job.empty()) {
    ASSIGN_OR_RETURN(topology::HostList hosts, NodesOfJob(options.job));
    RETURN_IF_ERROR(probers.Start(hosts, JobCommand(options, "(node=$HOST)"), options.timeout_s));
    return hosts;
  }
  if (options.site.empty()) {
    ASSIGN_OR_RETURN(topology::HostList hosts, HostsOf(options.hosts));
    RETURN_IF_ERROR(probers.Start(hosts, options.launch, options.timeout_s));
    return hosts;
  }
  topology::HostList hosts = NodesOf(options.site, options.nodes);
  RETURN_IF_ERROR(probers.Start(hosts, JobCommand(options, "(exclusive=yes)"), options.timeout_s));
  for (int host = 0; host < probers.count(); ++host) {
    if (probers.Lost(host).empty()) {
      hosts.names[host] = probers.Ready(host).name;
    }
  }
  return hosts;
}

absl::StatusOr<std::unique_ptr<TopologySource>> OpenTopologySource(
    const TopologySourceOptions& options) {
  RETURN_IF_ERROR(CheckWays(options));
  if (options.oracle.empty()) {
    auto source = std::make_unique<ProberSource>();
    RETURN_IF_ERROR(source->Open(options));
    return source;
  }
  ASSIGN_OR_RETURN(topology::HostList hosts, HostsOf(options.hosts));
  auto source = std::make_unique<OracleSource>(std::move(hosts), options.timeout_s);
  RETURN_IF_ERROR(source->Open(options.oracle));
  return source;
}

}  // namespace sekisho::client
