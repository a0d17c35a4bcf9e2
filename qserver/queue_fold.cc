// SPDX-License-Identifier: Apache-2.0
// The queue's part about events: what each changes, and how they make the queue again after a restart.
#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/demand.h"
#include "qserver/engine.h"
#include "qserver/queue.h"
#include "qserver/ranks.h"
#include "qserver/stage_plan.h"

namespace sekisho::qserver {
namespace {

// Events of earlier versions lack the number: what went wrong without an exit was execution.
int GramCodeOf(const proto::JobEvent::TaskExited& exited) {
  if (exited.has_gram_code()) {
    return exited.gram_code();
  }
  const bool has_failed = !exited.reason().empty() && exited.exit().code() == 0 &&
                          exited.exit().signal() == 0 && exited.reason() != "not started";
  return has_failed ? 17 : 0;
}

}  // namespace

void Queue::Emit(Job& job, proto::JobEvent event, int64_t now_ms, Effects& effects) {
  event.set_job_id(job.status.job_id());
  event.set_time_ms(now_ms);
  const absl::Status status = Fold(job, event);
  CHECK(status.ok());
  effects.events.push_back(std::move(event));
}

absl::Status Queue::Fold(Job& job, const proto::JobEvent& event) {
  const ElementIs before = CountedAs(job.status);
  const bool had_processors = job.has_processors;
  RETURN_IF_ERROR(sekisho::Fold(event, job.status));
  switch (event.kind_case()) {
    case proto::JobEvent::kAllocated:
      job.has_processors = true;
      Place(job);
      holding_[job.status.job_id()] = &job;
      job.ends_ms =
          job.demand->wall_time_s() > 0 ? event.time_ms() + job.demand->wall_time_s() * 1000 : 0;
      job.boots = {event.allocated().boot_id().begin(), event.allocated().boot_id().end()};
      if (!job.is_archived) {
        GiveProcessors(job);
      }
      break;
    case proto::JobEvent::kUncommitted:
      AwaitCommit(job, event.uncommitted().until_ms());
      break;
    case proto::JobEvent::kCommitted:
      uncommitted_.erase({job.commit_by_ms, job.status.job_id()});
      job.commit_by_ms = 0;
      PlaceAll(job);
      break;
    case proto::JobEvent::kStagingIn:
      job.is_staging = job.has_place = true;
      staging_.insert(job.status.job_id());
      PlaceAll(job);
      break;
    case proto::JobEvent::kStagedIn:
      job.is_staging = false;
      job.files.Clear();
      staging_.erase(job.status.job_id());
      PlaceAll(job);
      break;
    case proto::JobEvent::kStagingOut:
      job.is_staging_out = job.has_place = true;
      staging_out_.insert(job.status.job_id());
      Place(job);
      break;
    case proto::JobEvent::kDelegated:
      NoteCredential(job, event.delegated().until_ms());
      break;
    case proto::JobEvent::kCredentialEnding:
      credentials_.erase({job.credential_until_ms, job.status.job_id()});
      break;
    case proto::JobEvent::kRedirected:
      job.has_stage_out = true;
      ++job.redirections;
      job.bytes += event.redirected().ByteSizeLong();
      usage_[job.status.subject()].bytes += event.redirected().ByteSizeLong();
      break;
    case proto::JobEvent::kSuspended:
      job.was_suspended = true;
      PlaceAll(job);
      break;
    case proto::JobEvent::kResumed:
    case proto::JobEvent::kCancelling:
    case proto::JobEvent::kHeld:
    case proto::JobEvent::kLetGo:
      PlaceAll(job);
      break;
    case proto::JobEvent::kReleased:
      job.part->is_released = true;
      job.part->release = event.released().order();
      ReportReady(job);  // after a restart no task says it again
      break;
    case proto::JobEvent::kWaiting:
      job.is_output_lost = job.is_output_lost || event.waiting().reason() == kNoRoom;
      if (job.charter()) {
        job.part->reports.emplace_back().mutable_waiting()->set_reason(event.waiting().reason());
      }
      break;
    case proto::JobEvent::kTaskStarted:
      if (event.task_started().task() < int(job.tasks.size())) {
        job.tasks[event.task_started().task()].is_started = true;
      }
      break;
    case proto::JobEvent::kTaskExited:
      if (event.task_exited().task() < int(job.tasks.size())) {
        Task& task = job.tasks[event.task_exited().task()];
        task.is_ended = true;
        task.exit = event.task_exited().exit();
        task.reason = event.task_exited().reason();
        task.gram_code = GramCodeOf(event.task_exited());
        task.cpu_ms = event.task_exited().cpu_ms();
        task.max_rss_kb = event.task_exited().max_rss_kb();
        task.is_confirmed = task.is_confirmed || event.task_exited().is_last_word();
      }
      break;
    case proto::JobEvent::kEnded:
      job.has_processors = false;
      Place(job);
      uncommitted_.erase({job.commit_by_ms, job.status.job_id()});
      staging_.erase(job.status.job_id());
      staging_out_.erase(job.status.job_id());
      credentials_.erase({job.credential_until_ms, job.status.job_id()});
      job.files.Clear();
      holding_.erase(job.status.job_id());
      if (job.array == nullptr) {  // elements are kept as long as their array
        ended_.emplace(event.time_ms(), job.status.job_id());
      }
      --usage_[job.status.subject()].live;
      job.status.clear_rsl();  // memory: jobmanagers have it, and the store
      job.status.clear_standard_output();
      job.status.clear_standard_error();
      job.demand = NoDemand();
      job.tasks.clear();
      job.tasks.shrink_to_fit();
      for (const auto& [key, helper] : job.helpers) {
        launches_.erase(helper.launch);
      }
      job.helpers.clear();
      job.waiting_launches.clear();
      if (job.charter()) {
        ReportEnd(job, event.ended());
      }
      break;
    default:
      break;
  }
  if (event.has_ended()) {
    FreeFollowers(job);
  }
  if (job.array != nullptr) {
    FoldIntoArray(job, before, had_processors);
  }
  census_.Count(job.status, job.has_processors, event.time_ms(), job.mark);
  return absl::OkStatus();
}

absl::Status Queue::Replay(const proto::JobEvent& event, bool has_ended) {
  if (event.kind_case() == proto::JobEvent::kSubmitted) {
    const proto::JobEvent::Submitted& submitted = event.submitted();
    if (submitted.has_element()) {
      return ReplayElement(event, has_ended);
    }
    Admitted admitted;
    admitted.job_id = event.job_id();
    proto::RequestBody body;
    if (!body.ParseFromString(submitted.request().body())) {
      return absl::DataLossError(
          fmt::format("job {}: its stored request cannot be read", event.job_id()));
    }
    const bool is_of_many = !submitted.first_of_many().empty();
    admitted.gatekeeper_subject = is_of_many ? submitted.gatekeeper_subject() : body.gatekeeper_subject();
    admitted.has_input = body.submit().has_input();
    if (!has_ended) {
      admitted.files = body.submit().file();
    }
    admitted.awaits_credential = body.submit().awaits_credential();
    admitted.asked = AskedBy(submitted);
    if (body.submit().has_charter()) {
      admitted.charter = body.submit().charter();
      admitted.charter->set_ready_by_ms(ReadyBy(body, event.time_ms()));
    }
    auto job = std::make_unique<Job>();
    job->is_archived = has_ended;
    if (!has_ended) {
      if (auto described = rsl::ParseAndDescribe(submitted.rsl(), {}); described.ok()) {
        if (described->queue.empty()) {
          described->queue = submitted.queue();
        }
        admitted.demand = MakeDemand(event.job_id(), *described, wall_time_max_s_);
        admitted.has_stage_out = HasStageOut(*described);
      } else {
        job->is_archived = true;
        job->unreadable = described.error().ToString();
      }
    }
    job->bytes = submitted.ByteSizeLong();
    admitted.after = {submitted.after().begin(), submitted.after().end()};
    admitted.after_any = {submitted.after_any().begin(), submitted.after_any().end()};
    RETURN_IF_ERROR(Fold(*job, event));
    Adopt(*job, std::move(admitted));
    jobs_[event.job_id()] = std::move(job);
    return absl::OkStatus();
  }
  Job* job = FindMutable(event.job_id());
  if (job == nullptr) {
    return absl::DataLossError(
        fmt::format("event {} is of unknown job {}", event.sequence(), event.job_id()));
  }
  return Fold(*job, event);
}

Effects Queue::FinishReplay(const SpoolSize& spooled, int64_t now_ms) {
  for (auto& [id, job] : holding_) {
    for (size_t number = 0; number < job->tasks.size(); ++number) {
      for (int stream = 0; stream < 2; ++stream) {
        job->tasks[number].spooled[stream] = spooled(id, int(number), stream);
      }
    }
  }
  Effects effects;
  EndDoomed(now_ms, effects);
  for (const auto& [id, job] : jobs_) {
    if (!job->unreadable.empty() && !IsFinal(job->status.state())) {
      proto::JobEvent::Ended ended;
      ended.set_state(proto::FAILED);
      ended.set_gram_code(17);
      ended.set_reason("this version of the queue server does not understand its description: " +
                       job->unreadable);
      ended.set_remedy("submit it again");
      End(*job, std::move(ended), now_ms, effects);
    } else if (job->status.has_array()) {
      EndArrayIfComplete(*job, now_ms, effects);
    }
  }
  return effects;
}

void Queue::Adopt(Job& job, Admitted admitted) {
  job.gatekeeper_subject = &*gatekeepers_.insert(std::move(admitted.gatekeeper_subject)).first;
  job.has_input = admitted.has_input;
  job.asked = admitted.asked;
  job.files = std::move(admitted.files);
  job.has_stage_out = admitted.has_stage_out;
  job.awaits_credential = admitted.awaits_credential;
  job.demand = ShareDemand(std::move(admitted.demand));
  if (admitted.charter) {
    job.part = std::make_unique<Part>(*std::move(admitted.charter));
  }
  job.order = next_order_++;
  job.has_engine = IsEngineService(job.status.service());
  Follow(job, admitted);
  Usage& usage = usage_[job.status.subject()];
  ++usage.live;
  usage.bytes += job.bytes;
  Place(job);
}

// Something else has to come before the allocator is asked about it.
bool Queue::IsKeptBack(const Job& job) {
  return job.commit_by_ms != 0 || job.is_staging || job.status.cancelling() || job.status.is_held() ||
         job.status.state() == proto::SUSPENDED || !job.waits_for.empty();
}

void Queue::Place(Job& job) {
  const bool has_more = !job.status.has_array() || ElementFrom(job.status.array().what(), job.next_element);
  const bool waits = !IsFinal(job.status.state()) && !job.has_processors && has_more && !IsKeptBack(job) &&
                     (job.array == nullptr || !IsKeptBack(*job.array));
  if (waits) {
    pending_[OrderOf(job)] = &job;
  } else {
    pending_.erase(OrderOf(job));
  }
}

void Queue::PlaceAll(Job& job) {
  Place(job);
  for (const auto& [index, element] : job.elements) {
    Place(*element);
  }
}

}  // namespace sekisho::qserver
