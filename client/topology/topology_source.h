// SPDX-License-Identifier: Apache-2.0
// Where the measurements of infer and matrix come from: an oracle in virtual time, or probers on
// real hosts.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "client/topology/topology_probers.h"
#include "common/status.h"
#include "topology/method.h"
#include "topology/run.h"
#include "topology/text_format.h"

namespace sekisho::client {

struct TopologySourceOptions {
  std::string hosts;                     // file
  std::string oracle;                    // command, or
  std::string launch;                    // command that starts a prober (empty: by ssh), or
  std::string job;                       // on its nodes, or
  std::vector<std::string> sites;        // jobs of one prober each,
  std::vector<int> nodes;                // on so many nodes of all, or of each; empty: on all
  std::string prober = "sekisho-agent";  // on the site's nodes
  std::string interface;                 // there
  int most_at_once = 0;
  int timeout_s = 30;

  // That need not be found: who is where is known, and they may meet at a relay only.
  bool AreSeveralSites() const { return sites.size() > 1; }
};

class TopologySource {
 public:
  virtual ~TopologySource() = default;

  virtual const topology::HostList& hosts() const = 0;
  virtual absl::StatusOr<topology::RunTotals> Run(topology::Method& method) = 0;
  // Why it has nothing of this host, if it knows better than the method.
  virtual std::string WhyLost(int host) const = 0;
  // "of virtual time", or "(load average 0.3)": what a time of this source is.
  virtual std::string KindOfTime() const = 0;
  virtual bool IsVirtual() const = 0;
};

// Probers are ready when it returns.
absl::StatusOr<std::unique_ptr<TopologySource>> OpenTopologySource(
    const TopologySourceOptions& options);

// By host, if it is known for sure.
std::vector<int> KnownSites(const TopologySourceOptions& options, const topology::HostList& hosts);

// The same without an oracle, for what only real hosts can do.  The hosts, by number in `probers`.
absl::StatusOr<topology::HostList> OpenProbers(const TopologySourceOptions& options,
                                               TopologyProbers& probers);

}  // namespace sekisho::client
