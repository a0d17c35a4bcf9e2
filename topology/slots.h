// SPDX-License-Identifier: Apache-2.0
// Bounded load: no host takes part in more than one measurement inside its site and four across
// sites at once.  A measurement whose kind is not known yet counts as both.  Pure.
#pragma once

#include <vector>

#include "topology/measurement.h"

namespace sekisho::topology {

inline constexpr int kMostWide = 4;

enum class Reach { kLocal, kWide, kUnknown };

class Slots {
 public:
  explicit Slots(int hosts) : local_(hosts, 0), wide_(hosts, 0) {}

  bool IsFree(int host, Reach reach) const {
    return (reach == Reach::kWide || local_[host] == 0) &&
           (reach == Reach::kLocal || wide_[host] < kMostWide);
  }
  void Take(const Request& request, Reach reach) { Change(request, reach, 1); }
  void Release(const Request& request, Reach reach) { Change(request, reach, -1); }

 private:
  void Change(const Request& request, Reach reach, int by) {
    for (const int host : {request.from, request.to}) {
      local_[host] += reach == Reach::kWide ? 0 : by;
      wide_[host] += reach == Reach::kLocal ? 0 : by;
    }
  }
  std::vector<int> local_;
  std::vector<int> wide_;
};

// Pairs that wait for both their hosts to be free, without rounds: whoever is free takes the free
// partner that has most left to do.
class PairQueue {
 public:
  PairQueue(int hosts, Reach reach) : reach_(reach), waiting_(hosts), is_touched_(hosts, false) {}

  void Add(const Request& request);
  void Touch(int host);  // it became free
  void Drop(int host);   // it is dead
  bool IsEmpty() const { return count_ == 0; }
  int Waiting(int host) const { return static_cast<int>(waiting_[host].size()); }

  // Moves what can start from the queue to `started`, taking slots.
  void Start(Slots& slots, std::vector<Request>& started);

 private:
  bool StartOne(int host, Slots& slots, std::vector<Request>& started);

  Reach reach_;
  std::vector<std::vector<Request>> waiting_;  // every request at both its hosts
  std::vector<int> touched_;
  std::vector<bool> is_touched_;
  int count_ = 0;
};

}  // namespace sekisho::topology
