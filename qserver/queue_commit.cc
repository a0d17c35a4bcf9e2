// SPDX-License-Identifier: Apache-2.0
// The queue's part about jobs that may not start before their users say so: docs/protocol/5-queue.md, "Two
// phases".
#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/queue.h"

namespace sekisho::qserver {

void Queue::AwaitCommit(Job& job, int64_t until_ms) {
  uncommitted_.erase({job.commit_by_ms, job.status.job_id()});
  job.is_two_phase = true;
  job.commit_by_ms = until_ms;
  Place(job);
  uncommitted_.emplace(until_ms, job.status.job_id());
}

absl::StatusOr<Effects> Queue::Commit(const std::string& job_id, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (!job->is_two_phase) {
    return errors::NotTwoPhase(job_id);
  }
  if (IsFinal(job->status.state()) && job->commit_by_ms > 0) {
    return errors::CannotSignal(job_id, "commit", StateName(job->status.state()), "PENDING");
  }
  if (job->commit_by_ms > 0) {
    proto::JobEvent committed;
    committed.mutable_committed();
    Emit(*job, std::move(committed), now_ms, effects);
    effects.is_pass_due = !job->has_engine;
  }
  return effects;
}

absl::StatusOr<Effects> Queue::ExtendCommit(const std::string& job_id, int64_t seconds, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (job->commit_by_ms == 0 || IsFinal(job->status.state())) {
    return errors::NotTwoPhase(job_id);
  }
  proto::JobEvent uncommitted;
  uncommitted.mutable_uncommitted()->set_until_ms(job->commit_by_ms + seconds * 1000);
  Emit(*job, std::move(uncommitted), now_ms, effects);
  return effects;
}

absl::Status Queue::CheckCommitEnd(const std::string& job_id) const {
  const Job* job = Find(job_id);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (!job->is_two_phase) {
    return errors::NotTwoPhase(job_id);
  }
  if (!IsFinal(job->status.state())) {
    return errors::CannotSignal(job_id, "let go of", StateName(job->status.state()), "DONE, FAILED or CANCELLED");
  }
  return absl::OkStatus();
}

Effects Queue::EndUncommitted(int64_t now_ms) {
  Effects effects;
  while (!uncommitted_.empty() && uncommitted_.begin()->first <= now_ms) {
    proto::JobEvent::Ended ended;
    ended.set_state(proto::FAILED);
    ended.set_gram_code(111);
    ended.set_reason("its commit did not come in time");
    ended.set_remedy("send it within the seconds that two_phase gives: sekisho signal JOB commit_request");
    End(*FindMutable(uncommitted_.begin()->second), std::move(ended), now_ms, effects);
  }
  return effects;
}

std::optional<int64_t> Queue::NextCommitBy() const {
  return uncommitted_.empty() ? std::nullopt : std::optional(uncommitted_.begin()->first);
}

}  // namespace sekisho::qserver
