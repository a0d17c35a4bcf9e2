// SPDX-License-Identifier: Apache-2.0
// topology_bench goals|odd|figure8|figure9|alpha|upkeep|all [--seeds N] [--first SEED] [--method M]
// [--out DIR] [--each] [FAMILY...]: how well and how fast topologies are inferred, in simulation
// and virtual time.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "tests/bench/topology/tables.h"
#include "topology/sim/families.h"
#include "topology/sim/odd.h"

int main(int argc, char** argv) {
  sekisho::bench::Options options;
  const std::string what = argc > 1 ? argv[1] : "--help";
  for (int i = 2; i < argc; ++i) {
    const std::string word = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (word == "--seeds") {
      options.seeds = std::atoi(value);
    } else if (word == "--first") {
      options.first_seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--method") {
      options.method = value;
    } else if (word == "--out") {
      options.directory = value;
    } else if (word == "--each") {
      options.is_each = true;
      continue;
    } else {
      options.families.push_back(word);
      continue;
    }
    ++i;
  }
  double load[3] = {0, 0, 0};
  getloadavg(load, 3);
  std::printf("load average %.1f; all times are virtual unless called cpu\n", load[0]);
  bool is_good = true;
  bool is_known = false;
  const auto runs = [&](const char* name) {
    const bool is_wanted = what == name || what == "all";
    is_known = is_known || is_wanted;
    return is_wanted;
  };
  if (runs("goals")) {
    is_good = Goals(options, sekisho::topology::sim::FamilyNames());
  }
  if (runs("odd")) {
    is_good = Goals(options, sekisho::topology::sim::OddNames()) && is_good;
  }
  if (runs("figure8")) {
    ErrorDistributions(options);
  }
  if (runs("figure9")) {
    TimesAndPairs(options);
  }
  if (runs("alpha")) {
    AlphaSweep(options);
  }
  if (runs("upkeep")) {
    UpkeepTable(options);
  }
  if (!is_known) {
    std::fprintf(stderr,
                 "usage: topology_bench goals|odd|figure8|figure9|alpha|upkeep|all [--seeds N] "
                 "[--first SEED] "
                 "[--method fast|paper] [--out DIR] [--each] [FAMILY...]\n");
    return 64;
  }
  return is_good ? 0 : 1;
}
