// SPDX-License-Identifier: Apache-2.0
// The queue's part about the commands of users and administrators.
#include <algorithm>

#include "common/identity/dn.h"
#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/queue.h"

namespace sekisho::qserver {

absl::StatusOr<Effects> Queue::Cancel(const std::string& job_id, const std::string& reason,
                                      int64_t now_ms) {
  Effects effects;
  Job* job = FindOrMake(job_id, now_ms, effects);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (IsFinal(job->status.state()) || job->status.cancelling()) {
    return effects;
  }
  proto::JobEvent cancelling;
  cancelling.mutable_cancelling()->set_reason(reason);
  Emit(*job, std::move(cancelling), now_ms, effects);
  if (job->status.has_array()) {
    CancelArray(*job, now_ms, effects);
    return effects;
  }
  if (job->has_processors) {
    const bool is_head_started = job->tasks[0].is_started;
    for (size_t number = 1; job->are_starts_held && !is_head_started && number < job->tasks.size();
         ++number) {
      EndTask(*job, int(number), "cancelled before it started", 0, now_ms, effects);
    }
    KillAll(*job, 15, 5000, effects);
  }
  EndIfComplete(*job, now_ms, effects);
  return effects;
}

absl::StatusOr<Effects> Queue::Suspend(const std::string& job_id, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (job->status.state() == proto::SUSPENDED) {
    return effects;
  }
  if (job->status.state() != proto::ACTIVE || job->status.cancelling()) {
    return errors::CannotSignal(job_id, "suspend", StateName(job->status.state()), "ACTIVE");
  }
  proto::JobEvent suspended;
  suspended.mutable_suspended();
  Emit(*job, std::move(suspended), now_ms, effects);
  for (const auto& [index, element] : job->elements) {
    if (element->status.state() == proto::ACTIVE && !element->status.cancelling()) {
      effects.Add(*Suspend(element->status.job_id(), now_ms));
    }
  }
  for (const proto::Placement& place : job->status.placement()) {
    Effects::Outgoing& out = effects.messages.emplace_back();
    out.node = place.node();
    out.message.mutable_stop()->set_job_id(job_id);
  }
  return effects;
}

absl::StatusOr<Effects> Queue::Resume(const std::string& job_id, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (job->status.state() == proto::ACTIVE) {
    return effects;
  }
  if (job->status.state() != proto::SUSPENDED) {
    return errors::CannotSignal(job_id, "resume", StateName(job->status.state()), "SUSPENDED");
  }
  proto::JobEvent resumed;
  resumed.mutable_resumed();
  Emit(*job, std::move(resumed), now_ms, effects);
  for (const auto& [index, element] : job->elements) {
    if (element->status.state() == proto::SUSPENDED) {
      effects.Add(*Resume(element->status.job_id(), now_ms));
    }
  }
  effects.is_pass_due = job->status.has_array();
  for (const proto::Placement& place : job->status.placement()) {
    Effects::Outgoing& out = effects.messages.emplace_back();
    out.node = place.node();
    out.message.mutable_stop()->set_job_id(job_id);
    out.message.mutable_stop()->set_resume(true);
  }
  return effects;
}

absl::Status Queue::SetPriority(const std::string& job_id, int priority) {
  Job* job = FindMutable(job_id);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  pending_.erase(OrderOf(*job));
  job->priority = priority;
  Place(*job);
  return absl::OkStatus();
}

// ---- Of administrators

std::vector<std::string> Queue::JobsOn(const std::string& node) const {
  std::vector<std::string> jobs;
  for (const auto& [id, job] : holding_) {
    if (HasNode(job->status, node)) {
      jobs.push_back(id);
    }
  }
  return jobs;
}

std::vector<std::string> Queue::LiveJobsOf(const std::string& normalized_subject) const {
  std::vector<std::string> jobs;
  for (const auto& [id, job] : jobs_) {
    if (job->array == nullptr && !IsFinal(job->status.state()) &&
        identity::NormalizeDn(job->status.subject()) == normalized_subject) {
      jobs.push_back(id);
    }
  }
  return jobs;
}

Effects Queue::DeclareLost(const std::string& node, const std::string& reason, int64_t now_ms) {
  Effects effects;
  for (const std::string& job_id : JobsOn(node)) {
    LoseNode(*FindMutable(job_id), node, reason, now_ms, effects);
  }
  effects.is_pass_due = true;
  return effects;
}

// What is elsewhere of the job ends as when a task cannot start; also a launcher whose helpers were there.
void Queue::LoseNode(Job& job, const std::string& node, const std::string& reason, int64_t now_ms,
                     Effects& effects) {
  if (!job.has_processors) {
    return;  // it ended with another of its nodes
  }
  const bool has_task_there =
      std::any_of(job.tasks.begin(), job.tasks.end(), [&](const Task& task) { return task.node == node; });
  for (size_t number = 0; number < job.tasks.size(); ++number) {
    Task& task = job.tasks[number];
    if (task.node == node && !task.is_ended) {
      EndTask(job, int(number), reason, 17, now_ms, effects);
      effects.events.back().mutable_task_exited()->set_is_last_word(true);
      proto::AgentMessage::Exited lost;
      lost.set_reason(reason);
      ReportFailure(job, int(number), lost);
    } else if (task.node == node) {
      task.is_confirmed = true;
      task.expected = task.spooled;
    } else if (!has_task_there && !task.is_ended) {
      task.gram_code = 17;
      task.reason = reason;
    }
  }
  EndTheRest(job, now_ms, effects);
  EndIfComplete(job, now_ms, effects);
}

}  // namespace sekisho::qserver
