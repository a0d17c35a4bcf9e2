// SPDX-License-Identifier: Apache-2.0
#include "qserver/cache_plan.h"

#include "qserver/stager/below.h"
#include "qserver/staging_errors.h"
#include "rsl/gram_errors.h"

namespace sekisho::qserver {

absl::StatusOr<std::string> PlanCache(const rsl::JobDescription& job, const std::string& home, const StagingRules& rules) {
  if (job.gass_cache.empty()) {
    return "";
  }
  // Below a directory of our own: what is old is thrown away there.
  const std::string path = (job.gass_cache.starts_with("/") ? "" : home + "/") + job.gass_cache + "/.sekisho/cache";
  std::vector<std::string> roots = {home};
  roots.insert(roots.end(), rules.roots.begin(), rules.roots.end());
  if (const auto below = stager::FindBelow(roots, path); !below.ok()) {
    return errors::BadStaging(rsl::gram::INVALID_CACHE, "gass_cache", Message(below.status()),
                              "name a directory in the home of the account");
  }
  return path;
}

}  // namespace sekisho::qserver
