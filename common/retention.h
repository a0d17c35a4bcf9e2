// SPDX-License-Identifier: Apache-2.0
// How long a daemon keeps jobs that have ended: `keepEndedDays` of its configuration, of which 0.01 is a quarter of an hour.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>

#include <fmt/format.h>

#include "common/status.h"

namespace sekisho {

struct Retention {
  std::chrono::milliseconds keep;
  std::chrono::milliseconds every;  // how often to look for jobs whose time is over
};

inline absl::StatusOr<Retention> MakeRetention(double keep_ended_days) {
  using std::chrono::milliseconds;
  constexpr double kDefaultDays = 30, kMaxDays = 36'500;
  constexpr double kDayMs = 24.0 * 3600 * 1000;
  if (!std::isfinite(keep_ended_days) || keep_ended_days < 0 || keep_ended_days > kMaxDays) {
    return absl::InvalidArgumentError(
        fmt::format("keepEndedDays: expected up to {} days, a part of a day too, saw {}", kMaxDays, keep_ended_days));
  }
  const milliseconds keep(int64_t((keep_ended_days == 0 ? kDefaultDays : keep_ended_days) * kDayMs));
  return Retention{keep, std::clamp<milliseconds>(keep / 10, std::chrono::seconds(1), std::chrono::hours(1))};
}

}  // namespace sekisho
