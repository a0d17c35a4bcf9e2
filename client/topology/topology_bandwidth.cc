// SPDX-License-Identifier: Apache-2.0
#include "client/topology/topology_bandwidth.h"

#include <algorithm>
#include <map>
#include <ostream>
#include <set>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "client/rankmap/rankmap_files.h"
#include "client/topology/topology_probers.h"
#include "topology/bandwidth.h"
#include "topology/errors.h"
#include "topology/text_format.h"

namespace sekisho::client {
namespace {

using topology::Transfer;

// One of a transfer's, in the direction in which it is tried.
struct Flow {
  size_t transfer = 0;
  int from = 0;
  int to = 0;
  bool is_second = false;  // the other direction has failed
};

class Stage {
 public:
  Stage(TopologyProbers& probers, int transfer_ms, long& next_id)
      : probers_(probers), transfer_ms_(transfer_ms), next_id_(next_id) {}

  // What each transfer carried in all, Mb/s: too little if a host is lost meanwhile.  All begin at
  // once, when all are connected: while one is alone on a link that several share, it gets all of
  // it, and the sum would be more than the link carries.
  std::vector<double> Run(const std::vector<Transfer>& transfers) {
    carried_.assign(transfers.size(), 0);
    connected_.clear();
    for (size_t i = 0; i < transfers.size(); ++i) {
      for (const auto& [from, to] : transfers[i].flows) {
        Connect({i, from, to});
      }
    }
    while (!connecting_.empty()) {
      for (const TopologyProbers::Event& event : probers_.Wait()) {
        TakeConnection(event);
      }
    }
    KeepOneDirection(transfers.size());
    for (const auto& [waiting, flow] : connected_) {
      const long id = next_id_++;
      under_way_.emplace(id, flow);
      probers_.Order(flow.from, id, topology::PrintGoOrder(id, waiting));
    }
    while (!under_way_.empty()) {
      for (const TopologyProbers::Event& event : probers_.Wait()) {
        Take(event);
      }
    }
    return carried_;
  }

 private:
  void Connect(const Flow& flow) {
    if (!probers_.Lost(flow.from).empty() || !probers_.Lost(flow.to).empty()) {
      return;
    }
    const long id = next_id_++;
    connecting_.emplace(id, flow);
    probers_.Order(flow.from, id,
                   topology::PrintWaitOrder(id, probers_.Ready(flow.to).at, transfer_ms_));
  }

  static void Forget(std::map<long, Flow>& flows, int host) {
    std::erase_if(flows, [host](const auto& one) { return one.second.from == host; });
  }

  void TakeConnection(const TopologyProbers::Event& event) {
    const auto found = connecting_.find(event.id);
    if (!event.answer) {
      Forget(connecting_, event.host);
      Forget(connected_, event.host);
    } else if (found != connecting_.end()) {
      Flow flow = found->second;
      connecting_.erase(found);
      if (*event.answer == topology::kConnected) {
        connected_.emplace(event.id, flow);
      } else if (!flow.is_second) {
        std::swap(flow.from, flow.to);
        flow.is_second = true;
        Connect(flow);
      }
    }
  }

  // A link carries as much again the other way, so what goes one way and what comes the other is no
  // sum.  The direction that was asked for, unless hardly anybody can connect in it.
  void KeepOneDirection(size_t transfers) {
    std::vector<int> balance(transfers, 0);
    for (const auto& [waiting, flow] : connected_) {
      balance[flow.transfer] += flow.is_second ? -1 : 3;
    }
    std::erase_if(connected_, [&balance](const auto& one) {
      return one.second.is_second == (balance[one.second.transfer] >= 0);
    });
  }

  void Take(const TopologyProbers::Event& event) {
    if (!event.answer) {
      return Forget(under_way_, event.host);
    }
    const auto found = under_way_.find(event.id);
    if (found != under_way_.end()) {
      carried_[found->second.transfer] += topology::ParseFlow(*event.answer);
      under_way_.erase(found);
    }
  }

  TopologyProbers& probers_;
  int transfer_ms_;
  long& next_id_;
  std::map<long, Flow> connecting_;
  std::map<long, Flow> connected_;  // by the order that connected them
  std::map<long, Flow> under_way_;
  std::vector<double> carried_;
};

int CountLost(const TopologyProbers& probers) {
  int lost = 0;
  for (int host = 0; host < probers.count(); ++host) {
    lost += probers.Lost(host).empty() ? 0 : 1;
  }
  return lost;
}

// Of each link of the tree.
struct Mapped {
  std::vector<double> mbps;  // < 0: of a host that is lost
  std::vector<bool> is_at_least;
  int stages = 0;
};

// The hosts that are there; from the beginning without those that go meanwhile, whose part of what
// others carried is missing.
Mapped MapWhatIsThere(const topology::Tree& tree, const TopologyProbers& probers, Stage& stage) {
  Mapped mapped;
  for (;;) {
    topology::Tree there = tree;
    there.links.clear();
    std::vector<size_t> kept;
    for (size_t i = 0; i < tree.links.size(); ++i) {
      const auto is_lost = [&](int end) { return tree.IsHost(end) && !probers.Lost(end).empty(); };
      if (!is_lost(tree.links[i].u) && !is_lost(tree.links[i].v)) {
        there.links.push_back(tree.links[i]);
        kept.push_back(i);
      }
    }
    topology::BandwidthMap map(there);
    const int lost = CountLost(probers);
    for (std::vector<Transfer> transfers = map.Next();
         !transfers.empty() && CountLost(probers) == lost; transfers = map.Next()) {
      const std::vector<double> mbps = stage.Run(transfers);
      for (size_t i = 0; i < transfers.size(); ++i) {
        map.Report(transfers[i], mbps[i]);
      }
    }
    mapped.stages += map.stages();
    if (CountLost(probers) == lost) {
      mapped.mbps.assign(tree.links.size(), -1);
      mapped.is_at_least.assign(tree.links.size(), false);
      for (size_t i = 0; i < kept.size(); ++i) {
        mapped.mbps[kept[i]] = map.mbps()[i];
        mapped.is_at_least[kept[i]] = map.IsAtLeast(static_cast<int>(i));
      }
      return mapped;
    }
  }
}

}  // namespace

absl::Status MapBandwidth(const TopologyBandwidthOptions& options, std::ostream& out,
                          std::ostream& log) {
  // Validate.
  TopologyProbers probers;
  ASSIGN_OR_RETURN(const std::string text, ReadFile(options.tree));
  ASSIGN_OR_RETURN(const topology::HostList hosts, OpenProbers(options.source, probers));
  ASSIGN_OR_RETURN(const topology::NamedTree named,
                   topology::ParseTree(text, options.tree, hosts.names));

  // Measure.
  long next_id = 1;
  const auto begin = TopologyProbers::Clock::now();
  Stage stage(probers, options.transfer_ms, next_id);
  const Mapped mapped = MapWhatIsThere(named.tree, probers, stage);
  const double seconds =
      std::chrono::duration<double>(TopologyProbers::Clock::now() - begin).count();

  // Answer.
  nlohmann::json links = nlohmann::json::array();
  for (size_t i = 0; i < named.tree.links.size(); ++i) {
    const topology::Link& link = named.tree.links[i];
    const bool is_at_least = mapped.is_at_least[i];
    const std::string& u = named.names[link.u];
    const std::string& v = named.names[link.v];
    if (mapped.mbps[i] <= 0) {
      log << fmt::format("{} {}: nothing was carried\n", u, v);
      continue;
    }
    if (options.is_json) {
      links.push_back({{"u", u}, {"v", v}, {"mbps", mapped.mbps[i]}, {"is_at_least", is_at_least}});
    } else {
      out << fmt::format("{} {} {}{:.1f}\n", u, v, is_at_least ? ">=" : "", mapped.mbps[i]);
    }
  }
  if (options.is_json) {
    out << nlohmann::json{{"links", links}, {"seconds", seconds}, {"stages", mapped.stages}}.dump(1)
        << '\n';
  }
  for (int host = 0; host < probers.count(); ++host) {
    if (!probers.Lost(host).empty()) {
      log << fmt::format("{}: {}\n", hosts.names[host], probers.Lost(host));
    }
  }
  return absl::OkStatus();
}

}  // namespace sekisho::client
