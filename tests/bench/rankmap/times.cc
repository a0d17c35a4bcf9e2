// SPDX-License-Identifier: Apache-2.0
#include <cstdio>

#include "client/rankmap/rankmap_files.h"
#include "rankmap/flow_time.h"
#include "tests/bench/rankmap/tables.h"

namespace sekisho::bench {
namespace {

absl::Status Print(const std::string& network_file, const std::string& pattern_file,
                   const std::string& placement_file) {
  ASSIGN_OR_RETURN(const rankmap::Network network, client::ReadNetwork(network_file));
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, client::ReadPattern(pattern_file));
  ASSIGN_OR_RETURN(const rankmap::Placement placement, client::ReadPlacement(placement_file, pattern, network));
  const double at_once = rankmap::TimeAtOnce(pattern, network, placement, {});
  std::printf("%.6e %.6e\n", at_once, rankmap::TimeByStep(pattern, network, placement, {}));
  return absl::OkStatus();
}

}  // namespace

int PrintTimes(const std::string& network, const std::string& pattern, const std::string& placement) {
  const absl::Status status = Print(network, pattern, placement);
  if (!status.ok()) {
    std::fprintf(stderr, "%s\n", std::string(status.message()).c_str());
  }
  return status.ok() ? 0 : 64;
}

}  // namespace sekisho::bench
