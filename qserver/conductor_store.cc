// SPDX-License-Identifier: Apache-2.0
// The conductor's half about what is on disk of jobs: read again, and forgotten.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

#include "common/job_array.h"
#include "qserver/conductor.h"
#include "qserver/errors.h"
#include "qserver/staging.h"
#include "rsl/array.h"

namespace sekisho::qserver {
namespace {

constexpr int64_t kRemoveAgainMs = 3'600'000;

}  // namespace

awaitable<absl::StatusOr<std::vector<Journal::Found>>> Conductor::Complete(std::vector<Journal::Found> events) {
  std::vector<uint64_t> cut;
  for (const Journal::Found& found : events) {
    if (found.is_cut) {
      cut.push_back(found.event.sequence());
    }
  }
  if (cut.empty()) {
    co_return events;
  }
  CO_ASSIGN_OR_RETURN(const auto rows, co_await store_.Read(std::move(cut)));
  std::unordered_map<uint64_t, const std::string*> stored;
  for (const EventStore::Row& row : rows) {
    stored[row.sequence] = &row.event;
  }
  for (Journal::Found& found : events) {
    const uint64_t sequence = found.event.sequence();
    const auto at = stored.find(sequence);
    proto::JobEvent whole;
    if (at != stored.end() && whole.ParseFromString(*at->second)) {
      whole.set_sequence(sequence);
      whole.mutable_submitted()->mutable_request()->clear_chain();
      found = {std::move(whole), false};
    }
  }
  co_return events;
}

awaitable<absl::StatusOr<std::string>> Conductor::ReadRsl(std::string job_id) {
  const auto element = SplitElementId(job_id);
  const Job* job = queue_.Find(element ? element->first : job_id);
  if (job == nullptr) {
    co_return errors::NoSuchJob(job_id);
  }
  std::string rsl = job->status.rsl();
  if (rsl.empty()) {
    CO_ASSIGN_OR_RETURN(const auto rows, co_await store_.ReadFirst(job->status.job_id()));
    proto::JobEvent first;
    if (rows.empty() || !first.ParseFromString(rows[0].event)) {
      co_return absl::DataLossError(fmt::format("the first event of job {} is gone", job_id));
    }
    rsl = first.submitted().rsl();
  }
  co_return element ? rsl::ForElement(std::move(rsl), element->second) : rsl;
}

bool Conductor::ForgetEndedBefore(int64_t time_ms, int64_t steady_ms) {
  std::vector<std::string> jobs = queue_.EndedBefore(
      time_ms, kForgottenAtOnce, [this](const std::string& job_id) { return removals_.count(job_id) > 0; });
  // Files that stay, however many of one account, keep nobody else's job here: they come last, those that have waited
  // longest first.
  std::vector<std::pair<int64_t, std::string>> again;
  for (const auto& [job_id, began_ms] : removals_) {
    if (began_ms + kRemoveAgainMs <= steady_ms) {
      again.emplace_back(began_ms, job_id);
    }
  }
  std::sort(again.begin(), again.end());
  for (size_t i = 0; i < again.size() && jobs.size() < kForgottenAtOnce; ++i) {
    jobs.push_back(std::move(again[i].second));
  }
  std::vector<std::string> without_files;
  for (const std::string& job_id : jobs) {
    if (queue_.Find(job_id)->has_place && staging_ != nullptr) {
      removals_[job_id] = steady_ms;
      staging_->OnForgetting(job_id);
    } else {
      without_files.push_back(job_id);
    }
  }
  Forget(without_files);
  std::erase_if(signals_, [](const auto& entry) { return entry.second.expired(); });
  return jobs.size() >= kForgottenAtOnce && !without_files.empty();
}

void Conductor::Forget(const std::vector<std::string>& jobs) {
  std::vector<std::string> all;  // an array's elements go with it
  for (const std::string& job_id : jobs) {
    const Job* job = queue_.Find(job_id);
    if (job == nullptr) {
      continue;
    }
    for (const auto& [index, element] : job->elements) {
      all.push_back(element->status.job_id());
    }
    all.push_back(job_id);
  }
  journal_.Forget({all.begin(), all.end()});
  for (const std::string& job_id : all) {
    store_.Forget(job_id);
    spool_.Remove(job_id);
    queue_.Forget(job_id);
    removals_.erase(job_id);
    priorities_.erase(job_id);
    signals_.erase("job " + job_id);
  }
}

}  // namespace sekisho::qserver
