// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_source.h"

#include <cstdlib>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "client/rankmap/rankmap_files.h"
#include "client/topology/topology_jobs.h"
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

absl::StatusOr<topology::HostList> HostsOf(const std::string& path) {
  if (path.empty()) {
    return topology::errors::NoHosts();
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(path));
  return topology::ParseHosts(text, path);
}

// Exactly one way to come by measurements; hosts alone are reached by ssh.
absl::Status CheckWays(const TopologySourceOptions& options) {
  const int ways = (options.oracle.empty() ? 0 : 1) + (options.launch.empty() ? 0 : 1) +
                   (options.sites.empty() ? 0 : 1) + (options.job.empty() ? 0 : 1);
  if (ways > 1 || (ways == 0 && options.hosts.empty())) {
    return topology::errors::NoSource();
  }
  const size_t sites = std::set(options.sites.begin(), options.sites.end()).size();
  if (sites > 0 && (!options.hosts.empty() || sites != options.sites.size() ||
                    (options.nodes.size() > 1 && options.nodes.size() != sites))) {
    return topology::errors::NodesOfSites();
  }
  return absl::OkStatus();
}

}  // namespace

std::vector<int> KnownSites(const TopologySourceOptions& options, const topology::HostList& hosts) {
  return options.AreSeveralSites() ? hosts.cluster_of : std::vector<int>();
}

absl::StatusOr<topology::HostList> OpenProbers(const TopologySourceOptions& options,
                                               TopologyProbers& probers) {
  RETURN_IF_ERROR(CheckWays(options));
  if (!options.oracle.empty()) {
    return topology::errors::OracleCannot();
  }
  ProberJobs jobs;
  if (!options.job.empty()) {
    ASSIGN_OR_RETURN(jobs, JobsBeside(options));
  } else if (!options.sites.empty()) {
    ASSIGN_OR_RETURN(jobs, JobsAtSites(options));
  } else {
    ASSIGN_OR_RETURN(jobs.hosts, HostsOf(options.hosts));
    jobs.command = options.launch.empty() ? CommandOverSsh(options) : options.launch;
  }
  RETURN_IF_ERROR(probers.Start(jobs.hosts, jobs.command, options.timeout_s));
  for (int host = 0; host < probers.count() && !options.sites.empty(); ++host) {
    if (probers.Lost(host).empty()) {
      const std::string site = jobs.hosts.cluster_names[jobs.hosts.cluster_of[host]];
      jobs.hosts.names[host] =
          (options.AreSeveralSites() ? site + "/" : "") + probers.Ready(host).name;
    }
  }
  return jobs.hosts;
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
