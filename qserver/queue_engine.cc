// SPDX-License-Identifier: Apache-2.0
// The queue's part about jobs that a batch system runs: docs/protocol/13-slurm.md.
#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/queue.h"

namespace sekisho::qserver {

Effects Queue::AcceptForEngine(const Admitted& admitted, int64_t now_ms) {
  proto::Decision decision;  // the allocator is not asked
  decision.mutable_wait()->set_reason("is being handed to the batch system");
  return Accept(admitted, &decision, now_ms);
}

Effects Queue::OnEngineTook(const std::string& job_id, const std::string& engine_job,
                            const std::string& reason, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job != nullptr && !IsFinal(job->status.state()) && !job->has_processors) {
    proto::JobEvent waiting;
    waiting.mutable_waiting()->set_reason(reason);
    waiting.mutable_waiting()->set_engine_job(engine_job);
    Emit(*job, std::move(waiting), now_ms, effects);
  }
  return effects;
}

Effects Queue::OnEngineReason(const std::string& job_id, const std::string& reason, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr || IsFinal(job->status.state()) || job->has_processors ||
      job->status.cancelling() || job->status.reason() == reason) {
    return effects;
  }
  proto::JobEvent waiting;
  waiting.mutable_waiting()->set_reason(reason);
  Emit(*job, std::move(waiting), now_ms, effects);
  return effects;
}

Effects Queue::OnEngineStart(const std::string& job_id, const std::string& engine,
                             const std::vector<proto::Placement>& placement, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr || IsFinal(job->status.state()) || job->has_processors) {
    return effects;
  }
  proto::Lease lease;
  lease.set_resource(engine);
  *lease.mutable_placement() = {placement.begin(), placement.end()};
  Start(*job, lease, now_ms, effects);
  return effects;
}

Effects Queue::OnEngineEnded(const std::string& job_id, const std::string& reason, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr || IsFinal(job->status.state())) {
    return effects;
  }
  if (!job->has_processors) {
    proto::JobEvent::Ended ended;
    ended.set_state(job->status.cancelling() ? proto::CANCELLED : proto::FAILED);
    ended.set_gram_code(job->status.cancelling() ? 8 : 17);
    ended.set_reason(reason);
    if (!job->status.cancelling()) {
      ended.set_remedy("it has not begun: submit it again when the batch system takes jobs, or to another queue");
    }
    End(*job, std::move(ended), now_ms, effects);
    return effects;
  }
  for (size_t number = 0; number < job->tasks.size(); ++number) {
    Task& task = job->tasks[number];
    if (task.is_ended) {
      task.is_confirmed = true;  // its pilot has gone: the spool holds what there is
      task.expected = task.spooled;
    } else {
      EndTask(*job, int(number), reason, 17, now_ms, effects);
    }
  }
  EndIfComplete(*job, now_ms, effects);
  return effects;
}

std::vector<const Job*> Queue::EngineJobs() const {
  std::vector<const Job*> jobs;
  for (const auto& [order, job] : pending_) {
    if (job->has_engine) {
      jobs.push_back(job);
    }
  }
  for (const auto& [id, job] : holding_) {
    if (job->has_engine) {
      jobs.push_back(job);
    }
  }
  return jobs;
}

}  // namespace sekisho::qserver
