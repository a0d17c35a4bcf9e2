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

  // These take it out.  There must be one.
  Waiting TakeFirst() {
    CHECK(!jobs_.empty());
    return Take(jobs_.begin());
  }
  // With the first taken out: the others in their turn.  None: there is no other.
  std::optional<Waiting> TakeOther() {
    if (jobs_.empty()) {
      return std::nullopt;
    }
    const auto next = jobs_.upper_bound(last_other_);
    Waiting other = Take(next != jobs_.end() ? next : jobs_.begin());
    last_other_ = other.first;
    return other;
  }

  void PutBack(const Waiting& waiting) { jobs_.insert(waiting); }
  void PutBehind(Waiting waiting) {
    waiting.first.is_behind = true;
    jobs_.insert(std::move(waiting));
  }

 private:
  Waiting Take(std::map<Place, std::string>::iterator at) {
    Waiting taken = *at;
    jobs_.erase(at);
    return taken;
  }

  std::map<Place, std::string> jobs_;
  Place last_other_;
};

}  // namespace sekisho::qserver
