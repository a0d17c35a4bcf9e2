// SPDX-License-Identifier: Apache-2.0
#include "qserver/journal.h"

#include <algorithm>

#include "common/status.h"

namespace sekisho::qserver {
namespace {

std::string BytesOf(const proto::JobEvent& event) {
  if (event.submitted().request().chain().empty()) {
    return event.SerializeAsString();
  }
  // Who follows needs the job, not the proof.
  proto::JobEvent shown = event;
  shown.mutable_submitted()->mutable_request()->clear_chain();
  return shown.SerializeAsString();
}

}  // namespace

void Journal::Add(const std::string& account, const proto::JobEvent& event) {
  Account& of = accounts_[account];
  CHECK(of.entries.empty() || of.entries.back().sequence < event.sequence());
  of.entries.push_back({event.sequence(), event.job_id()});
  of.newest.push_back(BytesOf(event));
  of.bytes += of.newest.back().size();
  while (of.bytes > kBytes && of.newest.size() > 1) {
    of.bytes -= of.newest.front().size();
    of.newest.pop_front();
  }
}

std::vector<Journal::Found> Journal::After(const std::string& account, uint64_t sequence,
                                           size_t limit) const {
  std::vector<Found> events;
  const auto at = accounts_.find(account);
  if (at == accounts_.end()) {
    return events;
  }
  const auto& [entries, newest, bytes] = at->second;
  const size_t older = entries.size() - newest.size();
  const auto first = std::upper_bound(entries.begin(), entries.end(), sequence,
                                      [](uint64_t wanted, const Entry& e) { return wanted < e.sequence; });
  for (size_t i = size_t(first - entries.begin()); i < entries.size() && events.size() < limit; ++i) {
    Found& found = events.emplace_back();
    found.is_cut = i < older;
    CHECK(found.is_cut || found.event.ParseFromString(newest[i - older]));
    found.event.set_sequence(entries[i].sequence);
    found.event.set_job_id(entries[i].job_id);
  }
  return events;
}

void Journal::Forget(const std::unordered_set<std::string>& jobs) {
  for (auto& [name, of] : accounts_) {
    Account kept;
    const size_t older = of.entries.size() - of.newest.size();
    for (size_t i = 0; i < of.entries.size(); ++i) {
      if (jobs.count(of.entries[i].job_id) > 0) {
        continue;
      }
      kept.entries.push_back(std::move(of.entries[i]));
      if (i >= older) {
        kept.bytes += of.newest[i - older].size();
        kept.newest.push_back(std::move(of.newest[i - older]));
      }
    }
    of = std::move(kept);
  }
}

}  // namespace sekisho::qserver
