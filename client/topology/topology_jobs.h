// SPDX-License-Identifier: Apache-2.0
// Probers as jobs: on nodes of sites, which those of several sites leave through a relay, or on the
// nodes of a job.  docs/protocol/12-topology.md, "Probers" and "Through the relay".
#pragma once

#include <string>
#include <vector>

#include "client/topology/topology_source.h"
#include "common/status.h"
#include "topology/text_format.h"

namespace sekisho::client {

struct ProberJobs {
  topology::HostList hosts;  // of sites: until their probers tell their names, maybe by numbers
  std::string command;       // that starts a prober on $HOST of $SITE
};

// That starts a prober on $HOST as whoever asks.
std::string CommandOverSsh(const TopologySourceOptions& options);

absl::StatusOr<ProberJobs> JobsAtSites(const TopologySourceOptions& options);
absl::StatusOr<ProberJobs> JobsBeside(const TopologySourceOptions& options);  // options.job

// Where probers of several sites meet: by `sekisho sites --json` of each.
struct ProberRelay {
  std::string site;     // whose it is
  std::string address;  // HOST:PORT
};
absl::StatusOr<ProberRelay> RelayOf(const std::vector<std::string>& answers);

// The nodes of a site that take jobs, by such an answer.
std::vector<std::string> NodesOf(const std::string& answer);

}  // namespace sekisho::client
