// SPDX-License-Identifier: Apache-2.0
// The half of staging about what comes after the run: files go out and away, and in the end the job's own directory.
// docs/protocol/17-staging.md.
#include "common/job_state.h"
#include "common/log.h"
#include "qserver/staging.h"
#include "qserver/staging_errors.h"

namespace sekisho::qserver {
namespace {

absl::StatusOr<rsl::JobDescription> DescriptionIn(const std::string& rsl) {
  auto described = rsl::ParseAndDescribe(rsl, {});
  if (!described.ok()) {
    return absl::FailedPreconditionError(described.error().ToString());
  }
  return *std::move(described);
}

}  // namespace

void Staging::OnStagingOut(const std::string& job_id) { co_spawn(loop_, FinishJob(job_id), detached); }

awaitable<void> Staging::FinishJob(std::string job_id) {
  for (;;) {
    const absl::Status status = co_await TryFinishJob(job_id);
    if (status.code() != absl::StatusCode::kUnavailable) {
      conductor_.Change([&](Queue& queue) { return queue.OnStageOutDone(job_id, status, Conductor::NowMs()); });
      co_return;
    }
    spdlog::error("cannot stage out, trying again job={}: {}", job_id, Printable(Message(status)));
    co_await Sleep(loop_, settings_.try_again);
  }
}

awaitable<absl::Status> Staging::TryFinishJob(std::string job_id) {
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr || !job->is_staging_out || IsFinal(job->status.state())) {
    co_return absl::OkStatus();
  }
  const std::string rsl = job->status.rsl();
  Slot slot(*this, job->status.account());
  co_await slot.Take();
  CO_ASSIGN_OR_RETURN(const auto stager, co_await StartStager(job_id));
  absl::Status sent;
  if (conductor_.queue().HasRun(job_id)) {
    sent = co_await SendOut(*stager, job_id);
    // What was put where it is to go must be known also after a crash, before its source goes.
    CO_RETURN_IF_ERROR(co_await conductor_.Durable());
  }
  if (sent.code() != absl::StatusCode::kUnavailable) {
    co_await CleanUp(*stager, job_id, rsl);
  }
  co_return sent;
}

// From the first on that has not gone before a restart.
awaitable<absl::Status> Staging::SendOut(StagerLink& stager, std::string job_id) {
  const Job* job = conductor_.queue().Find(job_id);
  CO_ASSIGN_OR_RETURN(const rsl::JobDescription described, DescriptionIn(job->status.rsl()));
  CO_ASSIGN_OR_RETURN(const RunAs as, FindRunAs(job->status.account()));
  CO_ASSIGN_OR_RETURN(const std::vector<StageOut> plan, PlanStageOut(described, as.home, job_id, settings_.rules));
  for (size_t number = size_t(job->status.staged_out_size()); number < plan.size(); ++number) {
    const StageOut& item = plan[number];
    StagerOrder order;
    order.mutable_copy()->set_from(item.source);
    order.mutable_copy()->set_to(item.target);
    const auto reply = co_await stager.Ask(std::move(order));
    if (reply.status().code() == absl::StatusCode::kUnavailable) {
      co_return reply.status();
    }
    if (!reply.ok()) {
      co_return errors::CannotStageOut(item.source, reply.status());
    }
    proto::StagedFile file;
    file.set_destination(item.destination);
    file.set_size(reply->copied().size());
    file.set_sha256(reply->copied().sha256());
    file.set_is_kept(item.is_kept);
    file.set_number(int(number));
    conductor_.Change([&](Queue& queue) { return queue.OnStagedOut(job_id, file, Conductor::NowMs()); });
  }
  co_return absl::OkStatus();
}

awaitable<absl::Status> Staging::RemoveTree(StagerLink& stager, std::string path) {
  StagerOrder order;
  order.mutable_remove()->set_path(path);
  order.mutable_remove()->set_is_tree(true);
  co_return (co_await stager.Ask(std::move(order))).status();
}

// What cannot be removed stays: a job does not fail of it.
awaitable<void> Staging::CleanUp(StagerLink& stager, std::string job_id, std::string rsl) {
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr) {
    co_return;
  }
  const auto described = DescriptionIn(rsl);
  const auto as = FindRunAs(job->status.account());
  if (!described.ok() || !as.ok()) {
    co_return;
  }
  absl::Status status;
  const bool has_ended = IsFinal(job->status.state());  // only what it alone had, then: the rest may be others' by now
  if (const auto paths = PlanCleanUp(*described, as->home, settings_.rules); paths.ok() && !has_ended) {
    for (const std::string& path : *paths) {
      StagerOrder order;
      order.mutable_remove()->set_path(path);
      status.Update((co_await stager.Ask(std::move(order))).status());
    }
  }
  if (const auto scratch = PlanScratch(*described, as->home, job_id, settings_.rules); scratch.ok() && !scratch->empty()) {
    status.Update(co_await RemoveTree(stager, *scratch));
  }
  if (!status.ok()) {
    spdlog::warn("files of a job stay job={}: {}", job_id, Printable(Message(status)));
  }
}

// ---- When a job is forgotten

void Staging::OnForgetting(const std::string& job_id) {
  if (removing_.insert(job_id).second) {
    co_spawn(loop_, RemoveFiles(job_id), detached);
  }
}

// If they cannot be removed now, then when the next comes to ask for it.
awaitable<void> Staging::RemoveFiles(std::string job_id) {
  const Job* job = conductor_.queue().Find(job_id);
  absl::Status status;
  if (job != nullptr) {
    const absl::StatusOr<RunAs> as = FindRunAs(job->status.account());
    if (as.ok()) {  // else there is no such account any more
      Slot slot(*this, job->status.account());
      co_await slot.Take();
      const auto stager = co_await StartStager(job_id);
      status = stager.status();
      if (stager.ok()) {
        status = co_await RemoveTree(**stager, JobPlace(as->home, job_id));
      }
      const auto rsl = co_await conductor_.ReadRsl(job_id);
      if (status.ok() && rsl.ok()) {
        co_await CleanUp(**stager, job_id, *rsl);
      }
    }
  }
  if (status.ok()) {
    conductor_.Forget({job_id});
  } else {
    spdlog::warn("an ended job is kept, its files cannot be removed job={}: {}", job_id, Printable(Message(status)));
  }
  removing_.erase(job_id);
}

}  // namespace sekisho::qserver
