// SPDX-License-Identifier: Apache-2.0
// The jobs that the batch system is yet to take, in the order in which they were submitted.  Pure.
//
// One that is not taken now keeps its place: it may be that none is.  Whether it is that one alone
// shows when another is taken just after it was not: then it goes behind all others.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>

#include "common/status.h"

namespace sekisho::qserver {

class HandOverLine {
 public:
  struct Place {
    bool is_behind = false;
    uint64_t arrival = 0;  // Job::order

    auto operator<=>(const Place&) const = default;
  };
  using Waiting = std::pair<Place, std::string>;  // and the job's id

  bool is_empty() const { return jobs_.empty(); }
  // None waits but those that were put behind.
  bool is_idle() const { return jobs_.empty() || jobs_.begin()->first.is_behind; }
  const std::map<Place, std::string>& jobs() const { return jobs_; }

  void Add(uint64_t arrival, const std::string& job_id) {
    jobs_.emplace(Place{false, arrival}, job_id);
  }
  // It needs it no more.
  void Remove(uint64_t arrival) {
    jobs_.erase({false, arrival});
    jobs_.erase({true, arrival});
  }

  // These take it out.  There must be one; those behind come in their turn.
  Waiting TakeFirst() {
    CHECK(!jobs_.empty());
    return jobs_.begin()->first.is_behind ? TakeNext(jobs_.begin(), last_behind_)
                                          : Take(jobs_.begin());
  }
  // With the first taken out: the others in their turn, those behind when there are no more.  None:
  // there is no other.
  std::optional<Waiting> TakeOther() {
    if (jobs_.empty()) {
      return std::nullopt;
    }
    return jobs_.begin()->first.is_behind ? TakeFirst() : TakeNext(jobs_.begin(), last_other_);
  }

  void PutBack(const Waiting& waiting) { jobs_.insert(waiting); }
  void PutBehind(Waiting waiting) {
    waiting.first.is_behind = true;
    jobs_.insert(std::move(waiting));
  }

 private:
  using Jobs = std::map<Place, std::string>;

  Waiting Take(Jobs::iterator at) {
    Waiting taken = *at;
    jobs_.erase(at);
    return taken;
  }
  // The next after `last` of those that begin at `first` and are behind as it is.
  Waiting TakeNext(Jobs::iterator first, Place& last) {
    auto next = jobs_.upper_bound(last);
    if (next == jobs_.end() || next->first.is_behind != first->first.is_behind) {
      next = first;
    }
    last = next->first;
    return Take(next);
  }

  Jobs jobs_;
  Place last_other_, last_behind_;
};

}  // namespace sekisho::qserver
