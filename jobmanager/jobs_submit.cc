// SPDX-License-Identifier: Apache-2.0
// The half of the jobs' work that takes new ones in and brings them through the firewall.
#include <algorithm>

#include "common/log.h"
#include "jobmanager/errors.h"
#include "jobmanager/jobs.h"

namespace sekisho::jobmanager {
namespace {

using proto::JobEvent;
using std::chrono::milliseconds;

constexpr milliseconds kRetryMin{500};
constexpr milliseconds kRetryMax{30'000};

JobEvent EventOf(const std::string& job_id) {
  JobEvent event;
  event.set_job_id(job_id);
  event.set_time_ms(Jobs::NowMs());
  return event;
}

}  // namespace

awaitable<absl::StatusOr<proto::SubmitReply>> Jobs::Submit(Caller caller,
                                                           proto::SignedRequest request,
                                                           std::shared_ptr<Watcher> watcher) {
  // Validate.
  CO_ASSIGN_OR_RETURN(const proto::RequestBody body, ReadRequest(request, caller, here_));
  CO_ASSIGN_OR_RETURN(NewJob job, JudgeSubmit(request, body, caller, here_));
  const std::string id = job.submitted.job_id();
  if (job.is_dry_run) {
    co_return co_await DryRun(caller, request, job.submitted);
  }

  // Look up: is it new, and is the way inside open?
  CO_ASSIGN_OR_RETURN(bool is_repeat, book_.IsRepeat(job.submitted));
  if (!is_repeat) {
    if (const absl::Status reached = co_await queue_.Reach(); !reached.ok()) {
      co_return errors::NothingSubmitted(reached);
    }
    CO_ASSIGN_OR_RETURN(is_repeat, book_.IsRepeat(job.submitted));  // meanwhile
  }

  // Record it, and hand it through the firewall meanwhile: what the queue server accepts is durable
  // there and comes back with its events, so that nothing is lost if we end between the two.
  if (!is_repeat) {
    if (watcher) {
      Watch(id, watcher);
    }
    job.submitted.set_time_ms(NowMs());
    Record(job.submitted);
    StartForwarding(job.submitted);
    spdlog::info("job submitted job={} account={} peer={}", id, caller.account, caller.peer);
  }
  absl::Status settled;
  if (const auto found = forwardings_.find(id); found != forwardings_.end()) {
    settled = co_await Settled(found->second);
  }
  if (const absl::Status stored = co_await store_.Flush(); !stored.ok()) {
    spdlog::error("cannot store job={}: {}", id, Message(stored));  // durable inside all the same
  }
  CO_RETURN_IF_ERROR(settled);

  // Answer.
  proto::SubmitReply reply;
  reply.set_job_id(id);
  reply.set_site(here_.site);
  reply.set_account(caller.account);
  reply.set_is_repeat(is_repeat);
  co_return reply;
}

awaitable<absl::StatusOr<proto::SubmitReply>> Jobs::DryRun(const Caller& caller,
                                                           const proto::SignedRequest& request,
                                                           const JobEvent& submitted) {
  if (const absl::Status reached = co_await queue_.Reach(); !reached.ok()) {
    co_return errors::NothingSubmitted(reached);
  }
  CO_ASSIGN_OR_RETURN(proto::SubmitReply reply, co_await queue_.Submit(request));
  reply.set_job_id(submitted.job_id());
  reply.set_site(here_.site);
  reply.set_account(caller.account);
  reply.set_dry_run(true);
  co_return reply;
}

void Jobs::StartForwarding(const JobEvent& submitted) {
  auto forwarding = std::make_shared<Forwarding>(loop_);
  forwardings_[submitted.job_id()] = forwarding;
  co_spawn(loop_, Forward(submitted.job_id(), submitted.submitted().request(), forwarding, true),
           detached);
}

awaitable<absl::Status> Jobs::Settled(std::shared_ptr<Forwarding> forwarding) {
  while (!forwarding->is_settled) {
    co_await forwarding->changed.Wait();
  }
  co_return forwarding->result;
}

// Until the queue server has said yes or no.  A first no leaves nothing behind; a later one ends a
// job that the user was told of.
awaitable<void> Jobs::Forward(std::string job_id, proto::SignedRequest request,
                              std::shared_ptr<Forwarding> forwarding, bool is_new) {
  const auto settle = [&forwarding](const absl::Status& status) {
    forwarding->is_settled = true;
    forwarding->result = status;
    forwarding->changed.Notify();
  };
  for (milliseconds pause = kRetryMin;; pause = std::min(pause * 2, kRetryMax)) {
    auto reply = co_await queue_.Submit(request);
    if (reply.ok() && reply->job_id() != job_id) {
      reply = errors::Mismatch("site", here_.site, reply->site());
    }
    const absl::Status status = reply.status();
    if (status.ok()) {
      settle(absl::OkStatus());
      break;
    }
    if (IsVerdict(status)) {
      spdlog::info("job refused by the queue server job={}: {}", job_id,
                   Printable(Message(status)));
      if (is_new) {
        Withdraw(job_id);
      } else {
        JobEvent ended = EventOf(job_id);
        ended.mutable_ended()->set_state(proto::FAILED);
        ended.mutable_ended()->set_gram_code(GramCode(status));
        ended.mutable_ended()->set_reason("refused by the queue server: " + Message(status));
        ended.mutable_ended()->set_remedy(Remedy(status));
        Record(ended);
      }
      settle(is_new ? status : absl::OkStatus());
      break;
    }
    // The request may have arrived, or not: the job stays, and it is asked again.
    if (is_new || pause == kRetryMin) {
      spdlog::warn("no answer to a submit, asking again job={}: {}", job_id,
                   Printable(Message(status)));
      JobEvent waiting = EventOf(job_id);
      waiting.mutable_waiting()->set_reason("the queue server does not answer; it is asked again");
      Record(waiting);
    }
    is_new = false;
    settle(absl::OkStatus());
    co_await Sleep(loop_, pause);
    const proto::JobStatus* known = book_.FindAny(job_id);
    if (known == nullptr || known->state() != proto::UNSUBMITTED) {
      break;  // its events arrived: the queue server has it
    }
  }
  forwardings_.erase(job_id);
}

awaitable<void> Jobs::UntilSubmitted(std::string job_id) {
  auto watcher = std::make_shared<Watcher>(loop_);
  Watch(job_id, watcher);
  for (;;) {
    const proto::JobStatus* known = book_.FindAny(job_id);
    const bool is_waiting = forwardings_.count(job_id) > 0;
    if (known == nullptr || known->state() != proto::UNSUBMITTED || !is_waiting) {
      co_return;
    }
    watcher->items.clear();
    const auto forwarding = forwardings_.at(job_id);
    if (!forwarding->is_settled) {
      co_await Settled(forwarding);
      if (forwarding->result.ok() && forwardings_.count(job_id) == 0) {
        co_return;
      }
    } else {
      co_await watcher->changed.Wait();
    }
  }
}
}  // namespace sekisho::jobmanager
