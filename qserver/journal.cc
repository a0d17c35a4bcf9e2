// SPDX-License-Identifier: Apache-2.0
#include "qserver/journal.h"

#include <algorithm>

#include "common/status.h"

namespace sekisho::qserver {
void Journal::Add(const std::string& account, const proto::JobEvent& event) {
  std::deque<Entry>& entries = by_account_[account];
  CHECK(entries.empty() || entries.back().sequence < event.sequence());
  Entry& entry = entries.emplace_back(Entry{event.sequence(), event.job_id(), ""});
  if (!event.submitted().request().chain().empty()) {
    // Who follows needs the job, not the proof: that stays in the store, and memory small.
    proto::JobEvent shown = event;
    shown.mutable_submitted()->mutable_request()->clear_chain();
    entry.bytes = shown.SerializeAsString();
  } else {
    entry.bytes = event.SerializeAsString();
  }
  if (entries.size() > kWhole) {
    std::string& old = entries[entries.size() - kWhole - 1].bytes;
    if (old.size() > kSmall) {
      old = std::string();
    }
  }
}

std::vector<Journal::Found> Journal::After(const std::string& account, uint64_t sequence,
                                           size_t limit) const {
  std::vector<Found> events;
  const auto at = by_account_.find(account);
  if (at == by_account_.end()) {
    return events;
  }
  auto entry =
      std::upper_bound(at->second.begin(), at->second.end(), sequence,
                       [](uint64_t wanted, const Entry& e) { return wanted < e.sequence; });
  for (; entry != at->second.end() && events.size() < limit; ++entry) {
    Found& found = events.emplace_back();
    found.is_cut = entry->bytes.empty();
    CHECK(found.event.ParseFromString(entry->bytes));
    found.event.set_sequence(entry->sequence);
    found.event.set_job_id(entry->job_id);
  }
  return events;
}

void Journal::Forget(const std::unordered_set<std::string>& jobs) {
  for (auto& [account, entries] : by_account_) {
    std::erase_if(entries, [&](const Entry& entry) { return jobs.count(entry.job_id) > 0; });
  }
}

}  // namespace sekisho::qserver
