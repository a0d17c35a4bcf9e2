// SPDX-License-Identifier: Apache-2.0
#include "common/identity/freshness.h"

#include <algorithm>

#include <fmt/format.h>

namespace sekisho::identity {

std::optional<Refusal> CheckFreshness(Time request_time, Time now, std::chrono::seconds window) {
  // Compared without subtraction: the time is the sender's, and may be any number.
  if (request_time < now - window) {
    return Refusal{Reason::kRequestTooOld,
                   fmt::format("the request is of {}, now {}, allowed are {} s",
                               FormatTime(request_time), FormatTime(now), window.count())};
  }
  if (request_time > now + window) {
    return Refusal{Reason::kRequestFromTheFuture,
                   fmt::format("the request is of {}, now {}, allowed are {} s",
                               FormatTime(request_time), FormatTime(now), window.count())};
  }
  return std::nullopt;
}

std::optional<Refusal> ReplaySet::Insert(const std::string& subject, const std::string& request_id,
                                         Time request_time, Time now) {
  Forget(now);
  const Key key(subject, request_id);
  if (seen_.contains(key)) {
    return Refusal{Reason::kRequestReplayed,
                   fmt::format("the request {} of {} was accepted before", request_id, subject)};
  }
  if (seen_.size() >= entries_max_) {
    return Refusal{Reason::kTooManyRequests,
                   fmt::format("{} requests within {} s, as many as are remembered", seen_.size(),
                               window_.count())};
  }
  // The time is the sender's: bounded, so that no entry stays for ever.
  const Time until = std::min<Time>(request_time, now + window_) + window_;
  seen_.emplace(key, until);
  by_expiry_.emplace(until, key);
  return std::nullopt;
}

void ReplaySet::Withdraw(const std::string& subject, const std::string& request_id) {
  const auto found = seen_.find({subject, request_id});
  if (found != seen_.end()) {
    by_expiry_.erase({found->second, found->first});
    seen_.erase(found);
  }
}

bool ReplaySet::Contains(const std::string& subject, const std::string& request_id) const {
  return seen_.contains({subject, request_id});
}

void ReplaySet::Forget(Time now) {
  while (!by_expiry_.empty() && by_expiry_.begin()->first < now) {
    seen_.erase(by_expiry_.begin()->second);
    by_expiry_.erase(by_expiry_.begin());
  }
}

}  // namespace sekisho::identity
