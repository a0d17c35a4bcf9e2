// SPDX-License-Identifier: Apache-2.0
#include "topology/sim/families.h"

#include <algorithm>
#include <numeric>
#include <random>

#include <fmt/format.h>

namespace sekisho::topology::sim {
namespace {

class Builder {
 public:
  explicit Builder(uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15u + 1) {}

  double Uniform(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }
  int Integer(int low, int high) { return std::uniform_int_distribution<int>(low, high)(random_); }

  int Switch() { return switches_++; }  // numbered after the hosts when all is built
  void Join(int u, int v, double low_us, double high_us, double mbps = 1000) {
    const double latency = Uniform(low_us, high_us);
    links_.push_back({u, v, latency, latency, mbps});
  }
  void JoinSwitches(int u, int v) { Join(u, v, 2.25, 3.1); }
  void JoinFar(int u, int v, double one_way_us) {
    links_.push_back({u, v, one_way_us, one_way_us, 100});
  }
  void AddHosts(int vertex, int count, int cluster, double low_us = 18, double high_us = 30) {
    for (int i = 0; i < count; ++i) {
      hosts_.push_back({vertex, cluster, Uniform(low_us, high_us)});
    }
  }
  // `count` hosts over `switches`, uneven, none left empty if that is possible.
  void SpreadHosts(const std::vector<int>& switches, int count, int cluster) {
    std::vector<double> share;
    for (size_t i = 0; i < switches.size(); ++i) {
      share.push_back(Uniform(0.4, 1.6));
    }
    const double sum = std::accumulate(share.begin(), share.end(), 0.0);
    int left = count;
    for (size_t i = 0; i < switches.size(); ++i) {
      int mine = std::max(1, static_cast<int>(count * share[i] / sum));
      mine = i + 1 == switches.size() ? left : std::min(mine, left);
      AddHosts(switches[i], mine, cluster);
      left -= mine;
    }
  }
  // A site of three levels; returns the vertex that leads out.
  int Cluster(int hosts, int cluster) {
    const int root = Switch();
    std::vector<int> with_hosts;
    const int middle = Integer(2, 3);
    const int below = std::max(1, hosts / Integer(10, 20) / middle);
    for (int i = 0; i < middle; ++i) {
      const int aggregate = Switch();
      JoinSwitches(root, aggregate);
      if (Integer(0, 2) == 0) {
        with_hosts.push_back(aggregate);
      }
      for (int k = 0; k < below; ++k) {
        const int edge = Switch();
        JoinSwitches(aggregate, edge);
        with_hosts.push_back(edge);
      }
    }
    if (Integer(0, 3) == 0) {
      with_hosts.push_back(root);
    }
    SpreadHosts(with_hosts, hosts, cluster);
    return root;
  }
  // Sites on a small core, in pairs: the two of a pair are near each other.
  void Grid(int hosts, int clusters) {
    std::vector<int> routers;
    for (int i = 0; i < clusters; ++i) {
      const int size = hosts / clusters + (i < hosts % clusters ? 1 : 0);
      const int root = Cluster(size, i);
      if (i % 2 == 0) {
        routers.push_back(Switch());
      }
      const double far = i % 4 < 2 ? Uniform(500, 2400) : Uniform(70, 400);
      JoinFar(root, routers.back(), far);
    }
    for (size_t i = 1; i < routers.size(); ++i) {
      Join(routers[i - 1], routers[i], clusters <= 4 ? 5 : 100, clusters <= 4 ? 40 : 800, 100);
    }
  }

  std::mt19937_64& random() { return random_; }

  Truth Finish(std::string_view family, uint64_t seed, Noise noise) {
    std::shuffle(hosts_.begin(), hosts_.end(), random_);
    Truth truth{.family = std::string(family), .seed = seed};
    truth.host_count = static_cast<int>(hosts_.size());
    truth.vertex_count = truth.host_count + switches_;
    truth.noise = noise;
    for (TruthLink link : links_) {
      link.u += truth.host_count;
      link.v += truth.host_count;
      truth.links.push_back(link);
    }
    for (int i = 0; i < truth.host_count; ++i) {
      const Host& host = hosts_[i];
      truth.links.push_back(
          {i, truth.host_count + host.vertex, host.latency_us, host.latency_us, 1000});
      truth.cluster_of.push_back(host.cluster);
      truth.names.push_back(fmt::format("h{:04}", i));
    }
    truth.is_busy.assign(truth.host_count, false);
    truth.is_dead.assign(truth.host_count, false);
    return truth;
  }

 private:
  struct Host {
    int vertex, cluster;
    double latency_us;
  };
  std::mt19937_64 random_;
  int switches_ = 0;
  std::vector<TruthLink> links_;
  std::vector<Host> hosts_;
};

// Chained switches at chained sites of very unequal size.
void Skew(Builder& builder) {
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
void Deep(Builder& builder, int vertex, int hosts, int level) {
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

void Vm(Builder& builder) {
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

void Flat(Builder& builder, int clusters, int hosts) {
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

void Spine(Builder& builder) {
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
  Builder builder(seed);
  builder.Grid(hosts, clusters);
  return builder.Finish("grid", seed, QuietNoise());
}

absl::StatusOr<Truth> MakeFamily(std::string_view name, uint64_t seed) {
  const std::string family(name);
  Noise noise = QuietNoise();
  if (name.ends_with("lab")) {
    noise = LabNoise();
    name.remove_suffix(3);
  }
  Builder builder(seed);
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
    for (int i = 0; i < 1; ++i) {
      builder.Grid(4096, 16);
    }
  } else {
    return absl::InvalidArgumentError(fmt::format("family '{}' is not known", family));
  }
  Truth truth = builder.Finish(family, seed, noise);
  if (name == "spine256") {
    truth.spines = 4;
    truth.core = truth.host_count;
  }
  if (name == "grid256asym") {
    for (TruthLink& link : truth.links) {
      if (link.u >= truth.host_count && link.v >= truth.host_count) {
        const double shift = builder.Uniform(-0.4, 0.4);
        link.uv_us *= 1 + shift;
        link.vu_us *= 1 - shift;
      }
    }
  }
  if (name == "grid256busy") {
    truth.noise.busy_chance = 0.8;
    truth.noise.busy_us = 80;
    for (int i = 0; i < truth.host_count; ++i) {
      truth.is_busy[i] = builder.Uniform(0, 1) < 0.25;
    }
  }
  return truth;
}

}  // namespace sekisho::topology::sim
