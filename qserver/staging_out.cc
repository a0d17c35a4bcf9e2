// SPDX-License-Identifier: Apache-2.0
// The half of staging about what comes after the run: files go out and away, and in the end the job's own directory.
// docs/protocol/17-staging.md.
#include <set>
#include <utility>

#include <asio/experimental/awaitable_operators.hpp>

#include "common/caught.h"
#include "common/job_state.h"
#include "common/log.h"
#include "qserver/redirection.h"
#include "qserver/staging.h"
#include "qserver/staging_errors.h"

namespace sekisho::qserver {
namespace {

using asio::experimental::awaitable_operators::operator||;

constexpr size_t kPieceMost = 256 << 10;
constexpr int kCleanUpTries = 3;

StagerOrder OutOrder(const StageOut& item) {
  StagerOrder order;
  if (item.target.empty()) {
    order.mutable_send()->set_path(item.source);
    order.mutable_send()->set_url(item.destination);
    order.mutable_send()->set_offset(item.position);
  } else {
    order.mutable_copy()->set_from(item.source);
    order.mutable_copy()->set_to(item.target);
  }
  return order;
}

StagerOrder WriteOrder(const std::string& path, uint64_t offset, std::string data, unsigned mode) {
  StagerOrder order;
  order.mutable_write()->set_path(path);
  order.mutable_write()->set_offset(offset);
  order.mutable_write()->set_data(std::move(data));
  order.mutable_write()->set_mode(mode);
  return order;
}

proto::StagedFile Gone(const StageOut& item, const Content& content) {
  proto::StagedFile file;
  file.set_destination(item.destination);
  file.set_size(content.size());
  file.set_sha256(content.sha256());
  file.set_is_kept(item.is_kept);
  file.set_number(item.number);
  return file;
}

absl::StatusOr<rsl::JobDescription> DescriptionIn(const std::string& rsl) {
  auto described = rsl::ParseAndDescribe(rsl, {});
  if (!described.ok()) {
    return absl::FailedPreconditionError(described.error().ToString());
  }
  return *std::move(described);
}

}  // namespace

void Staging::OnStagingOut(const std::string& job_id) {
  if (finishing_.insert(job_id).second) {
    co_spawn(loop_, FinishJob(job_id), Logged("staging out job=" + job_id));
  }
}

awaitable<void> Staging::FinishJob(std::string job_id) {
  auto given_up = std::chrono::steady_clock::now() + settings_.wait;
  int redirections = Redirections(job_id);
  std::string said;
  for (;;) {
    if (const int now = Redirections(job_id); now != std::exchange(redirections, now)) {
      given_up = std::chrono::steady_clock::now() + settings_.wait;
    }
    const bool is_last = std::chrono::steady_clock::now() >= given_up;
    const absl::Status status = co_await Caught("staging out job=" + job_id, TryFinishJob(job_id, is_last));
    if (Redirections(job_id) != redirections) {
      continue;  // what has not gone is to go elsewhere
    }
    if (status.code() != absl::StatusCode::kUnavailable) {
      conductor_.Change([&](Queue& queue) { return queue.OnStageOutDone(job_id, status, Conductor::NowMs()); });
      finishing_.erase(job_id);
      co_return;
    }
    if (const std::string why = Message(status); why != std::exchange(said, why)) {
      spdlog::warn("cannot stage out, trying again job={}: {}", job_id, Printable(why));
      conductor_.Change(
          [&](Queue& queue) { return queue.OnStillStagingOut(job_id, "trying again: " + why, Conductor::NowMs()); });
    }
    co_await (Sleep(loop_, settings_.try_again) || UntilTold(job_id));
  }
}

int Staging::Redirections(const std::string& job_id) const {
  const Job* job = conductor_.queue().Find(job_id);
  return job == nullptr ? 0 : job->redirections;
}

// That it is cancelled, or redirected, from now on.
awaitable<void> Staging::UntilTold(std::string job_id) {
  const auto changed = conductor_.JobSignal(job_id);
  const auto is_cancelled = [&] { return conductor_.queue().StatusOf(job_id).cancelling(); };
  const bool was_cancelled = is_cancelled();
  const int redirections = Redirections(job_id);
  while ((was_cancelled || !is_cancelled()) && Redirections(job_id) == redirections) {
    co_await changed->Wait();
  }
}

// `is_last`: what cannot go now fails the job.
awaitable<absl::Status> Staging::TryFinishJob(std::string job_id, bool is_last) {
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr || !job->is_staging_out || IsFinal(job->status.state())) {
    co_return absl::OkStatus();
  }
  const std::string rsl = job->status.rsl();
  Slot slot(*this, job->status.account());
  co_await slot.Take();
  CO_ASSIGN_OR_RETURN(auto stager, co_await StartStager(job_id));
  absl::Status sent;
  if (conductor_.queue().HasSpoken(job_id)) {
    sent = co_await SendOut(*stager, job_id, is_last);
    // What was put where it is to go must be known also after a crash, before its source goes.
    CO_RETURN_IF_ERROR(co_await conductor_.Durable());
  }
  if (sent.code() != absl::StatusCode::kUnavailable) {
    co_await CleanUp(std::move(stager), job_id, rsl);
  }
  co_return sent;
}

// What has not gone before, perhaps before a restart.  One that cannot go does not keep the others.
awaitable<absl::Status> Staging::SendOut(StagerLink& stager, std::string job_id, bool is_last) {
  const Job* job = conductor_.queue().Find(job_id);
  CO_ASSIGN_OR_RETURN(const rsl::JobDescription described, DescriptionIn(job->status.rsl()));
  CO_ASSIGN_OR_RETURN(const RunAs as, FindRunAs(job->status.account()));
  CO_ASSIGN_OR_RETURN(const std::vector<StageOut> plan, PlanStageOut(described, as.home, job_id, settings_.rules,
                                                                         RedirectionsOf(job->status)));
  const unsigned mode = 0666 & ~described.umask.value_or(022);
  std::set<std::string> gathered;
  absl::Status failed;
  absl::Status later;
  const int redirections = Redirections(job_id);
  for (const StageOut& item : plan) {
    const bool is_due = conductor_.queue().IsToGo(job_id, item.number, item.stream != rsl::kNoStream);
    if (!is_due) {
      continue;
    }
    if (Redirections(job_id) != redirections) {
      break;  // we are asked again
    }
    if (item.stream != rsl::kNoStream && gathered.insert(item.source).second) {
      const absl::Status status = co_await Gather(stager, job_id, item, mode);
      if (status.code() == absl::StatusCode::kUnavailable) {
        co_return status;
      }
      failed.Update(status.ok() ? status : errors::CannotStageOut(item, status));
    }
    StagerOrder order = OutOrder(item);
    const auto sent = co_await stager.Ask(std::move(order));
    if (sent.status().code() == absl::StatusCode::kUnavailable) {
      co_return sent.status();
    }
    const bool may_pass = item.target.empty() && sent.status().code() == absl::StatusCode::kFailedPrecondition;
    if (may_pass && !is_last) {
      later.Update(absl::UnavailableError(Message(sent.status())));
    } else if (!sent.ok()) {
      failed.Update(errors::CannotStageOut(item, sent.status()));
    } else {
      const proto::StagedFile file = Gone(item, sent->copied());
      conductor_.Change([&](Queue& queue) { return queue.OnStagedOut(job_id, file, Conductor::NowMs()); });
    }
  }
  for (const std::string& path : gathered) {
    StagerOrder order;
    order.mutable_remove()->set_path(path);
    (void)co_await stager.Ask(std::move(order));  // else it goes with the job's directory
  }
  co_return later.ok() ? failed : later;
}

// All that the tasks have written to the stream, one task behind the other, as a file of the job's own.
awaitable<absl::Status> Staging::Gather(StagerLink& stager, std::string job_id, StageOut item, unsigned mode) {
  const Job* job = conductor_.queue().Find(job_id);
  const int tasks = job == nullptr ? 0 : int(job->tasks.size());
  StagerOrder begin = WriteOrder(item.source, 0, "", mode);  // also if there is nothing
  CO_RETURN_IF_ERROR((co_await stager.Ask(std::move(begin))).status());
  uint64_t at = 0;
  for (int task = 0; task < tasks; ++task) {
    for (uint64_t offset = 0;;) {
      CO_ASSIGN_OR_RETURN(std::string data, conductor_.spool().Read(job_id, task, item.stream, offset, kPieceMost));
      if (data.empty()) {
        break;
      }
      const size_t size = data.size();
      StagerOrder more = WriteOrder(item.source, at, std::move(data), mode);
      CO_RETURN_IF_ERROR((co_await stager.Ask(std::move(more))).status());
      at += size;
      offset += size;
    }
  }
  co_return absl::OkStatus();
}

awaitable<absl::Status> Staging::RemoveTree(StagerLink& stager, std::string path) {
  StagerOrder order;
  order.mutable_remove()->set_path(path);
  order.mutable_remove()->set_is_tree(true);
  co_return (co_await stager.Ask(std::move(order))).status();
}

// What cannot be removed stays: a job does not fail of it.  But where only a stager was killed, another one goes on.
awaitable<void> Staging::CleanUp(std::unique_ptr<StagerLink> stager, std::string job_id, std::string rsl) {
  absl::Status status = co_await TryCleanUp(*stager, job_id, rsl);
  for (int tries = 1; status.code() == absl::StatusCode::kUnavailable && tries < kCleanUpTries; ++tries) {
    auto next = co_await StartStager(job_id);
    status = next.status();
    if (next.ok()) {
      stager = *std::move(next);
      status = co_await TryCleanUp(*stager, job_id, rsl);
    }
  }
  if (!status.ok()) {
    spdlog::warn("files of a job stay job={}: {}", job_id, Printable(Message(status)));
  }
}

awaitable<absl::Status> Staging::TryCleanUp(StagerLink& stager, std::string job_id, std::string rsl) {
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr) {
    co_return absl::OkStatus();
  }
  const auto described = DescriptionIn(rsl);
  const auto as = FindRunAs(job->status.account());
  if (!described.ok() || !as.ok()) {
    co_return absl::OkStatus();
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
  co_return status;
}

// ---- When a job is forgotten

void Staging::OnForgetting(const std::string& job_id) {
  if (removing_.insert(job_id).second) {
    co_spawn(loop_, RemoveFiles(job_id), Logged("removing the files of job=" + job_id));
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
      auto stager = co_await StartStager(job_id);
      status = stager.status();
      if (stager.ok()) {
        status = co_await RemoveTree(**stager, JobPlace(as->home, job_id));
      }
      const auto rsl = co_await conductor_.ReadRsl(job_id);
      if (status.ok() && rsl.ok()) {
        co_await CleanUp(*std::move(stager), job_id, *rsl);
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
