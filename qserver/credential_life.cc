// SPDX-License-Identifier: Apache-2.0
#include "qserver/credential_life.h"

#include <fmt/format.h>

#include "qserver/credential_errors.h"

namespace sekisho::qserver {
namespace {

std::string Hours(std::chrono::seconds time) {
  const int64_t minutes = time.count() / 60;
  return minutes < 1 ? fmt::format("{} s", time.count()) : fmt::format("{}:{:02} h", minutes / 60, minutes % 60);
}

}  // namespace

absl::StatusOr<std::string> JudgeLife(identity::Time credential_ends, int64_t wall_time_s, bool has_credential,
                                      TooShort policy, identity::Time now) {
  const std::chrono::seconds wall_time(wall_time_s);
  const auto left = credential_ends - now;
  if (policy == TooShort::kAccept || wall_time_s <= 0 || left >= wall_time) {
    return std::string();
  }
  const std::string what =
      fmt::format("your credential ends at {}, in {}, and the job may run for {}", identity::FormatTime(credential_ends),
                  Hours(left), Hours(wall_time));
  if (policy == TooShort::kRefuse) {
    return errors::TooShortLived(what + "; this site takes no such job");
  }
  return what + (has_credential ? "; renew the job's in time: sekisho proxy refresh JOB"
                                : "; it goes on without, and shows its output to a new proxy");
}

}  // namespace sekisho::qserver
