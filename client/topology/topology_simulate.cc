// SPDX-License-Identifier: Apache-2.0
// sekisho topology simulate: the same core against a network that is known.
#include <ostream>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_files.h"
#include "client/topology/topology_infer.h"
#include "topology/errors.h"
#include "topology/sim/families.h"
#include "topology/sim/trial.h"
#include "topology/sim/truth_format.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

absl::StatusOr<topology::sim::Truth> ReadTruth(const TopologySimulateOptions& options) {
  if (options.truth.empty()) {
    return topology::sim::MakeFamily(options.family, options.seed);
  }
  topology::HostList hosts;
  if (!options.hosts.empty()) {
    ASSIGN_OR_RETURN(const std::string text, ReadFile(options.hosts));
    ASSIGN_OR_RETURN(hosts, topology::ParseHosts(text, options.hosts));
  }
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.truth));
  ASSIGN_OR_RETURN(topology::sim::Truth truth,
                   topology::sim::ParseTruth(text, options.truth, hosts));
  truth.seed = options.seed;
  if (options.noise == "lab") {
    truth.noise = topology::sim::LabNoise();
  } else if (options.noise == "exact") {
    truth.noise = topology::sim::ExactNoise();
  } else if (options.noise != "quiet") {
    return topology::errors::UnknownNoise(options.noise);
  }
  return truth;
}

}  // namespace

absl::Status SimulateTopology(const TopologySimulateOptions& options, std::ostream& out) {
  // Validate.
  ASSIGN_OR_RETURN(const topology::sim::Truth truth, ReadTruth(options));

  // Act.
  ASSIGN_OR_RETURN(
      const topology::sim::Trial trial,
      topology::sim::RunTrial(truth, options.method, options.has_site_hints, options.seed));
  if (!options.out.empty()) {
    RETURN_IF_ERROR(WriteFile(options.out, topology::PrintTree(trial.outcome.tree, truth.names)));
  }

  // Answer.
  const topology::sim::Score& score = trial.score;
  const double hosts = std::max(truth.host_count, 1);
  const nlohmann::json json = {
      {"accuracy", score.accuracy},
      {"false_negative", score.false_negative},
      {"false_positive", score.false_positive},
      {"accuracy_same_site", score.accuracy_same_cluster},
      {"quartets", score.quartets},
      {"quartets_wrong", score.quartets_wrong},
      {"quartets_missed", score.quartets_missed},
      {"quartets_extra", score.quartets_extra},
      {"robinson_foulds", score.robinson_foulds},
      {"splits", score.splits_true},
      {"rtt_error_median", score.rtt_error_median},
      {"rtt_error_p99", score.rtt_error_p99},
      {"hosts_lost", score.hosts_lost},
      {"virtual_seconds", trial.totals.makespan_us / 1e6},
      {"measurements_a_host", static_cast<double>(trial.totals.measurements) / hosts},
      {"pings_a_host", static_cast<double>(trial.totals.pings) / hosts},
      {"pairs_between_sites", trial.between_share},
      {"most_at_once_inside", trial.most_local},
      {"most_at_once_between", trial.most_wide}};
  if (options.is_json) {
    out << json.dump() << '\n';
    return absl::OkStatus();
  }
  for (const auto& [key, value] : json.items()) {
    out << fmt::format("{:<22} {}\n", key, value.dump());
  }
  return absl::OkStatus();
}

}  // namespace sekisho::client
