// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/families.h"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "topology/sim/odd.h"
#include "topology/sim/truth_builder.h"

namespace sekisho::topology::sim {
namespace {

// Chained switches at chained sites of very unequal size.
void Skew(TruthBuilder& builder) {
  const int sizes[] = {164, 60, 24, 8};
  int last_out = -1;
  for (int site = 0; site < 4; ++site) {
    std::vector<int> chain;
    const int length = std::max(1, sizes[site] / builder.Integer(8, 16));
    for (int i = 0; i < length; ++i) {
      chain.push_back(builder.Switch());
      if (i > 0) {
        builder.JoinSwitches(chain[i - 1], chain[i]);
      }
    }
    builder.SpreadHosts(chain, sizes[site], site);
    if (site > 0) {
      builder.JoinFar(last_out, chain.front(), builder.Uniform(150, 600));
    }
    last_out = chain[chain.size() / 2];
  }
}

// A binary hierarchy, many levels.
void Deep(TruthBuilder& builder, int vertex, int hosts, int level) {
  if (level == 0 || hosts < 6) {
    builder.AddHosts(vertex, hosts, 0);
    return;
  }
  const int here = builder.Integer(0, 2);
  int left = hosts - here;
  builder.AddHosts(vertex, here, 0);
  const int first = left * builder.Integer(30, 70) / 100;
  for (const int share : {first, left - first}) {
    const int child = builder.Switch();
    builder.JoinSwitches(vertex, child);
    Deep(builder, child, share, level - 1);
  }
}

void Vm(TruthBuilder& builder) {
  const int root = builder.Switch();
  int left = 192;
  while (left > 0) {
    const int top = builder.Switch();
    builder.JoinSwitches(root, top);
    for (int machines = builder.Integer(4, 8); machines > 0 && left > 0; --machines) {
      const int machine = builder.Switch();
      builder.Join(top, machine, 15, 25);
      const int guests = std::min(left, builder.Integer(3, 8));
      builder.AddHosts(machine, guests, 0, 6, 12);
      left -= guests;
    }
  }
}

void Flat(TruthBuilder& builder, int clusters, int hosts) {
  std::vector<int> routers;
  for (int i = 0; i < clusters; ++i) {
    const int root = builder.Switch();
    std::vector<int> edges;
    for (int k = 0; k < hosts / 42 + 1; ++k) {
      edges.push_back(builder.Switch());
      builder.JoinSwitches(root, edges.back());
    }
    builder.SpreadHosts(edges, hosts, i);
    if (i % 2 == 0) {
      routers.push_back(builder.Switch());
      if (i > 0) {
        builder.Join(routers[builder.Integer(0, i / 2 - 1)], routers.back(), 100, 1500, 100);
      }
    }
    builder.JoinFar(root, routers.back(), builder.Uniform(80, 1200));
  }
}

void Spine(TruthBuilder& builder) {
  const int core = builder.Switch();
  for (int i = 0; i < 16; ++i) {
    const int leaf = builder.Switch();
    builder.JoinSwitches(core, leaf);
    builder.AddHosts(leaf, 16, 0);
  }
}

}  // namespace

std::vector<std::string_view> FamilyNames() {
  return {"single64",    "single64lab", "grid256",  "grid256lab", "grid256asym",
          "grid256busy", "skew256",     "spine256", "star48",     "star48lab",
          "deep128",     "deep128lab",  "vm192",    "tiny2",      "tiny3",
          "tiny5",       "exact64",     "exact256", "flat1024",   "big4096"};
}

Truth MakeGrid(int hosts, int clusters, uint64_t seed) {
  TruthBuilder builder(seed);
  builder.Grid(hosts, clusters);
  return builder.Finish("grid", seed, QuietNoise());
}

absl::StatusOr<Truth> MakeFamily(std::string_view name, uint64_t seed) {
  const std::string family(name);
  if (std::optional<Truth> odd = MakeOdd(name, seed)) {
    return *std::move(odd);
  }
  Noise noise = QuietNoise();
  if (name.ends_with("lab")) {
    noise = LabNoise();
    name.remove_suffix(3);
  }
  TruthBuilder builder(seed);
  if (name == "single64") {
    builder.Cluster(64, 0);
  } else if (name == "exact64") {
    builder.Cluster(64, 0);
    noise = ExactNoise();
  } else if (name == "grid256" || name == "grid256asym" || name == "grid256busy" ||
             name == "exact256") {
    builder.Grid(256, 4);
    noise = name == "exact256" ? ExactNoise() : noise;
  } else if (name == "skew256") {
    Skew(builder);
  } else if (name == "spine256") {
    Spine(builder);
  } else if (name == "star48") {
    builder.AddHosts(builder.Switch(), 48, 0);
  } else if (name == "deep128") {
    Deep(builder, builder.Switch(), 128, 7);
  } else if (name == "vm192") {
    Vm(builder);
  } else if (name == "tiny2" || name == "tiny3" || name == "tiny5") {
    builder.AddHosts(builder.Switch(), name.back() - '0', 0);
  } else if (name == "flat1024") {
    Flat(builder, 8, 128);
  } else if (name == "big4096") {
    builder.Grid(4096, 16);
  } else {
    return absl::InvalidArgumentError(
        fmt::format("family '{}' is not known: expected one of {}", family, fmt::join(FamilyNames(), ", ")));
  }
  Truth truth = builder.Finish(family, seed, noise);
  if (name == "spine256") {
    truth.spines = 4;
    truth.core = truth.host_count;
  }
  if (name == "grid256asym") {
    builder.MakeAsymmetric(truth, 0.4);
  }
  if (name == "grid256busy") {
    builder.MakeBusy(truth);
  }
  return truth;
}

}  // namespace sekisho::topology::sim
