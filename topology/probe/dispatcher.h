// SPDX-License-Identifier: Apache-2.0
// Which of the measurements that a method wants are started now, and by which of the two hosts:
// where a firewall lets one of them connect only, that one measures.  docs/protocol/12-topology.md,
// "One way". Pure.
#pragma once

#include <cstddef>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "topology/measurement.h"

namespace sekisho::topology {

class Dispatcher {
 public:
  // `most_at_once` of all hosts together, 0: as many as the method wants.  One that takes long, as of hosts far from
  // each other, is in nobody's way but for an instant now and then: it counts in its first kCrowdS seconds only, as long
  // as there are no more than kFarOnes times as many.
  Dispatcher(int hosts, int most_at_once);
  static constexpr double kCrowdS = 0.004;
  static constexpr size_t kFarOnes = 8;

  void Add(const Request& request);

  // To start now: request.from connects to request.to.
  struct Order {
    long id = 0;
    Request request;
  };
  std::vector<Order> Start(double now_s);
  // When Start() is to be asked again, though nothing was reported; infinite: need not be.
  double NextStart() const;

  // Ids that are not under way are ignored.
  void Report(long id, const Answer& answer);
  // What waits for this host, and will, fails.
  void Kill(int host);
  bool IsDead(int host) const { return is_dead_[host]; }

  // The request under way as it was sent; nullptr: none.
  const Request* Find(long id) const;

  // As the method asked, once both directions are judged.
  std::vector<std::pair<Request, Answer>> TakeDone();
  // Nothing waits, is under way or done.
  bool IsIdle() const { return waiting_.empty() && under_way_.empty() && done_.empty(); }

 private:
  struct Job {
    Request asked;
    bool is_swapped = false;  // asked.to connects
    bool is_second = false;   // the other direction has failed
    double begin_s = 0;
  };
  static Request Sent(const Job& job);
  void End(const Job& job, const Answer& answer);
  bool IsDoomed(const Job& job) const;

  size_t most_at_once_;
  size_t most_under_way_;
  long next_id_ = 1;
  std::deque<Job> waiting_;
  std::map<long, Job> under_way_;
  std::vector<std::pair<Request, Answer>> done_;
  std::vector<bool> is_dead_;
  std::vector<int> barred_;  // how often a host was found to connect, but not to be connected to
};

}  // namespace sekisho::topology
