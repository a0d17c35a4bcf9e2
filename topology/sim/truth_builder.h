// SPDX-License-Identifier: Apache-2.0
// Puts truths together, a switch and its hosts at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "topology/sim/truth.h"

namespace sekisho::topology::sim {

class TruthBuilder {
 public:
  explicit TruthBuilder(uint64_t seed) : random_(seed * 0x9E3779B97F4A7C15u + 1) {}

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

  // Between switches one direction is slower than the other, by up to this part of their mean.
  void MakeAsymmetric(Truth& truth, double most) {
    for (TruthLink& link : truth.links) {
      if (link.u >= truth.host_count && link.v >= truth.host_count) {
        const double shift = Uniform(-most, most);
        link.uv_us *= 1 + shift;
        link.vu_us *= 1 - shift;
      }
    }
  }
  // A quarter of the hosts computes.
  void MakeBusy(Truth& truth) {
    truth.noise.busy_chance = 0.8;
    truth.noise.busy_us = 80;
    for (int i = 0; i < truth.host_count; ++i) {
      truth.is_busy[i] = Uniform(0, 1) < 0.25;
    }
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

}  // namespace sekisho::topology::sim
