// SPDX-License-Identifier: Apache-2.0
#include "rankmap/flow_time.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <queue>
#include <vector>

namespace sekisho::rankmap {
namespace {

class Flows {
 public:
  // The messages of `step`, or all of them if it is negative.
  Flows(const Pattern& pattern, const Network& network, const Placement& placement, int step)
      : bandwidth_(network.bandwidth),
        uses_(network.links()),
        free_(network.links()),
        waiting_(network.links()) {
    for (const Message& m : pattern.messages()) {
      const int from = static_cast<int>(placement.slot_of(m.source)) / network.capacity();
      const int to = static_cast<int>(placement.slot_of(m.target)) / network.capacity();
      if (from == to || m.bytes == 0 || (step >= 0 && m.step != step)) {
        continue;
      }
      Flow flow{static_cast<double>(m.bytes)};
      flow.first = static_cast<uint32_t>(route_.size());
      network.Route(from, to, [&](int link) { route_.push_back(link); });
      flow.last = static_cast<uint32_t>(route_.size());
      flow.latency = network.latency * (flow.last - flow.first);
      flows_.push_back(flow);
    }
  }

  double Run(const FlowOptions& options, double began) {
    double now = 0;
    double end = 0;
    while (!flows_.empty()) {
      if (options.stop && options.stop()) {
        return std::numeric_limits<double>::infinity();
      }
      Share();
      if (options.observe) {
        std::fill(waiting_.begin(), waiting_.end(), 0.0);
        for (const Flow& flow : flows_) {
          waiting_[flow.limit] += flow.rate < bandwidth_ ? flow.bytes : 0;
        }
        options.observe(began + now, waiting_);
      }
      double soonest = std::numeric_limits<double>::infinity();
      for (const Flow& flow : flows_) {
        soonest = std::min(soonest, flow.bytes / flow.rate);
      }
      const double horizon = soonest + (now + soonest) * options.together;
      double passed = soonest;
      for (const Flow& flow : flows_) {
        if (const double left = flow.bytes / flow.rate; left <= horizon) {
          passed = std::max(passed, left);
        }
      }
      now += passed;
      size_t kept = 0;
      for (Flow& flow : flows_) {
        if (flow.bytes / flow.rate <= passed) {
          end = std::max(end, now + flow.latency);
        } else {
          flow.bytes -= flow.rate * passed;
          flows_[kept++] = flow;
        }
      }
      flows_.resize(kept);
    }
    return end;
  }

 private:
  struct Flow {
    double bytes = 0;
    double rate = 0;  // 0: not settled yet
    double latency = 0;
    uint32_t first = 0;  // of its route
    uint32_t last = 0;
    int limit = 0;  // the link that settled its rate
  };

  // Progressive filling: the link with the least for each of its flows settles them, and so on.  What a link has
  // for each only grows, so an entry of the queue is looked at again when it comes up.
  void Share() {
    std::fill(uses_.begin(), uses_.end(), 0);
    std::fill(free_.begin(), free_.end(), bandwidth_);
    for (Flow& flow : flows_) {
      flow.rate = 0;
      for (uint32_t i = flow.first; i < flow.last; ++i) {
        ++uses_[route_[i]];
      }
    }
    offsets_.assign(uses_.size() + 1, 0);
    for (size_t link = 0; link < uses_.size(); ++link) {
      offsets_[link + 1] = offsets_[link] + uses_[link];
    }
    on_link_.resize(offsets_.back());
    std::vector<uint32_t> next(offsets_.begin(), offsets_.end() - 1);
    for (uint32_t f = 0; f < flows_.size(); ++f) {
      for (uint32_t i = flows_[f].first; i < flows_[f].last; ++i) {
        on_link_[next[route_[i]]++] = f;
      }
    }
    using Entry = std::pair<double, int>;  // share of each flow, link
    std::vector<Entry> entries;
    for (size_t link = 0; link < uses_.size(); ++link) {
      if (uses_[link] > 0) {
        entries.push_back({bandwidth_ / uses_[link], static_cast<int>(link)});
      }
    }
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> queue(std::greater<>(), std::move(entries));
    while (!queue.empty()) {
      const auto [share, link] = queue.top();
      queue.pop();
      if (uses_[link] == 0) {
        continue;
      }
      const double now = free_[link] / uses_[link];
      if (now > share * (1 + 1e-12)) {
        queue.push({now, link});
        continue;
      }
      for (uint32_t k = offsets_[link]; k < offsets_[link + 1]; ++k) {
        Flow& flow = flows_[on_link_[k]];
        if (flow.rate == 0) {
          Settle(flow, share, link);
        }
      }
    }
  }

  void Settle(Flow& flow, double rate, int link) {
    flow.rate = rate;
    flow.limit = link;
    for (uint32_t i = flow.first; i < flow.last; ++i) {
      free_[route_[i]] -= rate;
      --uses_[route_[i]];
    }
  }

  const double bandwidth_;
  std::vector<Flow> flows_;
  std::vector<int> route_;
  std::vector<int> uses_;     // by link: flows that are not settled
  std::vector<double> free_;  // by link: bytes a second
  std::vector<double> waiting_;
  std::vector<uint32_t> offsets_;  // into on_link_, by link
  std::vector<uint32_t> on_link_;
};

}  // namespace

double TimeAtOnce(const Pattern& pattern, const Network& network, const Placement& placement,
                  const FlowOptions& options) {
  return Flows(pattern, network, placement, -1).Run(options, 0);
}

double TimeByStep(const Pattern& pattern, const Network& network, const Placement& placement,
                  const FlowOptions& options) {
  double time = 0;
  for (int step = 0; step < pattern.steps(); ++step) {
    time += Flows(pattern, network, placement, step).Run(options, time);
  }
  return time;
}

}  // namespace sekisho::rankmap
