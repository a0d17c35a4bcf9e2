// SPDX-License-Identifier: Apache-2.0
// The queue's part about jobs that do not start yet, by their users' wish: held ones, and those that run after others.
// docs/protocol/5-queue.md, "Holding back".
#include <utility>

#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/hold_errors.h"
#include "qserver/queue.h"

namespace sekisho::qserver {
namespace {

bool EndedWell(const proto::JobStatus& job) {
  return job.state() == proto::DONE && job.exit().code() == 0 && job.exit().signal() == 0;
}

// In a long row of jobs each would else tell the ends of all before it.
constexpr size_t kReasonPassedOn = 300;

std::string EndText(const std::string& job_id, const proto::JobStatus& job) {
  const bool tells_why = !job.reason().empty() && job.reason().size() <= kReasonPassedOn;
  return fmt::format("job {}, which it was to run after, ended {}{}{}", job_id, StateName(job.state()),
                     tells_why ? ": " : "", tells_why ? job.reason() : "");
}

}  // namespace

Queue::Order Queue::OrderOf(const Job& job) const {
  const auto of_account = account_priorities_.find(job.status.account());
  return {-job.priority - (of_account == account_priorities_.end() ? 0 : of_account->second), job.order};
}

void Queue::SetAccountPriorities(std::map<std::string, int> priorities) {
  std::map<Order, Job*> before;
  before.swap(pending_);
  account_priorities_ = std::move(priorities);
  for (const auto& [order, job] : before) {
    Place(*job);
  }
}

// ---- Held jobs

absl::StatusOr<Effects> Queue::Hold(const std::string& job_id, const std::string& by, int64_t now_ms) {
  Effects effects;
  Job* job = FindOrMake(job_id, now_ms, effects);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (job->status.is_held()) {
    return effects;
  }
  const bool may_be = !IsFinal(job->status.state()) && !job->status.cancelling() && !job->has_processors;
  if (!may_be || job->has_engine) {
    return errors::CannotSignal(job_id, "hold", job->has_engine ? "in the batch system" : StateName(job->status.state()),
                                "PENDING");
  }
  proto::JobEvent held;
  held.mutable_held()->set_by(by);
  Emit(*job, std::move(held), now_ms, effects);
  return effects;
}

absl::StatusOr<Effects> Queue::LetGo(const std::string& job_id, int64_t now_ms) {
  Effects effects;
  Job* job = const_cast<Job*>(FindOrArray(job_id));
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (job->status.job_id() != job_id || !job->status.is_held() || IsFinal(job->status.state())) {
    return effects;
  }
  proto::JobEvent let_go;
  let_go.mutable_let_go();
  Emit(*job, std::move(let_go), now_ms, effects);
  if (!job->waits_for.empty()) {
    job->status.set_reason(WhyItWaits(*job));
  }
  effects.is_pass_due = true;
  return effects;
}

// ---- Jobs after jobs

std::string Queue::WhyItWaits(const Job& job) {
  return fmt::format("waits for the end of {}", fmt::join(job.waits_for, ", "));
}

absl::Status Queue::CheckAfter(const Admitted& admitted) const {
  for (const auto* list : {&admitted.after, &admitted.after_any}) {
    for (const std::string& id : *list) {
      const Job* job = FindOrArray(id);
      if (job == nullptr || job->status.subject() != admitted.submitted.subject()) {
        return errors::NothingToFollow(id);
      }
      const proto::JobStatus status = StatusOf(id);
      if (list == &admitted.after && IsFinal(status.state()) && !EndedWell(status)) {
        return errors::NeverFollows(EndText(id, status));
      }
    }
  }
  return absl::OkStatus();
}

void Queue::Follow(Job& job, const Admitted& admitted) {
  for (const auto* list : {&admitted.after, &admitted.after_any}) {
    for (const std::string& id : *list) {
      if (FindOrArray(id) != nullptr && !IsFinal(StatusOf(id).state()) && !IsFinal(job.status.state())) {
        job.waits_for.insert(id);
        followers_.emplace(id, Follower{job.status.job_id(), list == &admitted.after_any});
      }
    }
  }
}

void Queue::FreeFollowers(const Job& ended) {
  const std::string& id = ended.status.job_id();
  FreeFollowersOf(id, ended.status);
  if (ended.status.has_array()) {  // also those of elements that never will be
    const std::string prefix = id + "[";
    std::set<std::string> elements;
    for (auto at = followers_.lower_bound(prefix); at != followers_.end() && at->first.starts_with(prefix); ++at) {
      elements.insert(at->first);
    }
    for (const std::string& element : elements) {
      FreeFollowersOf(element, StatusOf(element));
    }
  }
}

void Queue::FreeFollowersOf(const std::string& job_id, const proto::JobStatus& status) {
  const auto [first, last] = followers_.equal_range(job_id);
  for (auto at = first; at != last; ++at) {
    Job* job = FindMutable(at->second.job_id);
    if (job == nullptr || IsFinal(job->status.state())) {
      continue;
    }
    if (!at->second.takes_any && !EndedWell(status)) {
      doomed_.emplace_back(at->second.job_id, EndText(job_id, status));
      continue;
    }
    job->waits_for.erase(job_id);
    followers_freed_ = true;
    PlaceAll(*job);
  }
  followers_.erase(first, last);
}

void Queue::EndDoomed(int64_t now_ms, Effects& effects) {
  if (std::exchange(ends_doomed_, true)) {
    return;  // whoever ends one adds those behind it, and we are at it
  }
  while (!doomed_.empty()) {
    const auto [job_id, reason] = doomed_.back();
    doomed_.pop_back();
    Job* job = FindMutable(job_id);
    if (job == nullptr || IsFinal(job->status.state())) {
      continue;
    }
    proto::JobEvent::Ended ended;
    ended.set_state(proto::FAILED);
    ended.set_gram_code(17);
    ended.set_reason(reason);
    ended.set_remedy("submit it again after one that ends well, or with after_any");
    End(*job, std::move(ended), now_ms, effects);
  }
  ends_doomed_ = false;
}

}  // namespace sekisho::qserver
