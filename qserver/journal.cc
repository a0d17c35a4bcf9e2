// SPDX-License-Identifier: Apache-2.0
#include "qserver/journal.h"

#include <algorithm>

#include "common/status.h"

namespace sekisho::qserver {

void Journal::Add(const std::string& account, const proto::JobEvent& event) {
  std::vector<Entry>& entries = by_account_[account];
  CHECK(entries.empty() || entries.back().sequence < event.sequence());
  if (!event.submitted().request().chain().empty()) {
    // Who follows needs the job, not the proof: that stays in the store, and memory small.
    proto::JobEvent shown = event;
    shown.mutable_submitted()->mutable_request()->clear_chain();
    entries.push_back({event.sequence(), event.job_id(), shown.SerializeAsString()});
    return;
  }
  entries.push_back({event.sequence(), event.job_id(), event.SerializeAsString()});
}

std::vector<proto::JobEvent> Journal::After(const std::string& account, uint64_t sequence,
                                            size_t limit) const {
  std::vector<proto::JobEvent> events;
  const auto at = by_account_.find(account);
  if (at == by_account_.end()) {
    return events;
  }
  auto entry =
      std::upper_bound(at->second.begin(), at->second.end(), sequence,
                       [](uint64_t wanted, const Entry& e) { return wanted < e.sequence; });
  for (; entry != at->second.end() && events.size() < limit; ++entry) {
    CHECK(events.emplace_back().ParseFromString(entry->bytes));
  }
  return events;
}

void Journal::Forget(const std::string& account, const std::string& job_id) {
  if (const auto at = by_account_.find(account); at != by_account_.end()) {
    std::erase_if(at->second, [&](const Entry& entry) { return entry.job_id == job_id; });
  }
}

}  // namespace sekisho::qserver
