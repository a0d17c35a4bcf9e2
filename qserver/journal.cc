// SPDX-License-Identifier: Apache-2.0
#include "qserver/journal.h"

#include <algorithm>

#include "common/status.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kSmall = 1024;

}  // namespace

void Journal::Add(const std::string& account, const proto::JobEvent& event) {
  std::vector<Entry>& entries = by_account_[account];
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
  if (event.has_submitted() && entry.bytes.size() > kSmall) {
    large_[event.job_id()] = event.sequence();
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

void Journal::Cut(const std::string& account, const std::string& job_id) {
  const auto large = large_.find(job_id);
  if (large == large_.end()) {
    return;
  }
  std::vector<Entry>& entries = by_account_[account];
  const auto entry =
      std::lower_bound(entries.begin(), entries.end(), large->second,
                       [](const Entry& e, uint64_t wanted) { return e.sequence < wanted; });
  if (entry != entries.end() && entry->sequence == large->second) {
    entry->bytes.clear();
    entry->bytes.shrink_to_fit();
  }
  large_.erase(large);
}

void Journal::Forget(const std::string& account, const std::string& job_id) {
  if (const auto at = by_account_.find(account); at != by_account_.end()) {
    std::erase_if(at->second, [&](const Entry& entry) { return entry.job_id == job_id; });
    large_.erase(job_id);
  }
}

}  // namespace sekisho::qserver
