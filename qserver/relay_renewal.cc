// SPDX-License-Identifier: Apache-2.0
#include "qserver/relay_renewal.h"

#include <algorithm>

namespace sekisho::qserver {

using std::chrono::seconds;

std::vector<std::string> RelayRenewal::Due(identity::Time now, size_t most) const {
  std::vector<std::string> due;
  for (auto at = since_.begin(); at != since_.end() && due.size() < most; ++at) {
    if (at->second > now || at->second <= now - life_ / 2) {
      due.push_back(at->first);
    }
  }
  return due;
}

seconds RelayRenewal::Interval() const { return std::clamp(life_ / 16, seconds(1), seconds(60)); }

std::vector<TokenHolder> TokenHolders(const Job& job) {
  std::vector<TokenHolder> holders;
  if (!job.has_processors) {
    return holders;
  }
  for (size_t number = 0; number < job.tasks.size(); ++number) {
    const Task& task = job.tasks[number];
    if (!task.is_ended && (task.is_started || (job.part && job.part->ready.count(int(number)) > 0))) {
      holders.push_back({task.node, int(number)});
    }
  }
  for (const auto& [key, helper] : job.helpers) {
    if (!helper.is_ended) {
      holders.push_back({key.first, key.second});
    }
  }
  return holders;
}

}  // namespace sekisho::qserver
