// SPDX-License-Identifier: Apache-2.0
// Is a signed request new?  Judged when it is accepted, not when its job starts.  Pure.
#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>

#include "common/identity/openssl.h"
#include "common/identity/refusal.h"

namespace sekisho::identity {

// nullopt if `request_time` lies within `window` of `now`, on either side.
std::optional<Refusal> CheckFreshness(Time request_time, Time now, std::chrono::seconds window);

// The requests accepted within the window, by subject and request id: each is accepted once.
// Whoever must survive a restart stores the accepted ids with his events and inserts them again.
class ReplaySet {
 public:
  // `window` as given to CheckFreshness: an id is remembered until its request would be too old.
  ReplaySet(std::chrono::seconds window, size_t entries_max)
      : window_(window), entries_max_(entries_max) {}

  // nullopt if the pair was not seen; from now on it is.  When the set is full of fresh entries
  // nothing is forgotten early: the request is refused as kTooManyRequests.
  std::optional<Refusal> Insert(const std::string& subject, const std::string& request_id,
                                Time request_time, Time now);

  // The request was not carried out after all: it may come again.
  void Withdraw(const std::string& subject, const std::string& request_id);

  bool Contains(const std::string& subject, const std::string& request_id) const;
  size_t size() const { return seen_.size(); }

 private:
  using Key = std::pair<std::string, std::string>;
  void Forget(Time now);

  std::chrono::seconds window_;
  size_t entries_max_;
  std::map<Key, Time> seen_;  // until when
  std::set<std::pair<Time, Key>> by_expiry_;
};

}  // namespace sekisho::identity
