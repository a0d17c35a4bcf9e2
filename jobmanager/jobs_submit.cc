// SPDX-License-Identifier: Apache-2.0
// The half of the jobs' work that takes new ones in and brings them through the firewall.
#include <algorithm>
#include <variant>

#include <asio/experimental/awaitable_operators.hpp>

#include "common/asked.h"
#include "common/log.h"
#include "jobmanager/errors.h"
#include "jobmanager/jobs.h"

namespace sekisho::jobmanager {
namespace {

using proto::JobEvent;
using asio::experimental::awaitable_operators::operator||;
using std::chrono::milliseconds;

// So long a submitter waits for the queue server's word before he is told that the job waits.
constexpr milliseconds kPatience{1'500};
constexpr milliseconds kRetryMin{500};
constexpr milliseconds kRetryMax{30'000};

JobEvent EventOf(const std::string& job_id) {
  JobEvent event;
  event.set_job_id(job_id);
  event.set_time_ms(Jobs::NowMs());
  return event;
}

// A refusal without its times, which change: "[certificate-expired]", behind whose it is.
std::string_view Kind(std::string_view why) { return why.substr(0, why.find(']')); }

}  // namespace

// One that waits, also if whoever submits it goes away.
class Jobs::Arrival {
 public:
  Arrival(Jobs& jobs, const std::string& job_id)
      : jobs_(jobs), at_(jobs.arriving_.emplace(job_id, std::make_shared<Arriving>(jobs.loop_))) {}
  ~Arrival() { jobs_.arriving_.erase(at_); }
  Arrival(const Arrival&) = delete;
  Arrival& operator=(const Arrival&) = delete;

  const std::shared_ptr<Arriving>& arriving() const { return at_->second; }

 private:
  Jobs& jobs_;
  const std::multimap<std::string, std::shared_ptr<Arriving>>::iterator at_;
};

awaitable<absl::Status> Jobs::UntilCancelled(std::shared_ptr<Arriving> arriving) {
  while (!arriving->is_cancelled) {
    co_await arriving->changed.Wait();
  }
  co_return absl::CancelledError("by its user");
}

bool Jobs::CancelArriving(const std::string& job_id) {
  const auto [first, last] = arriving_.equal_range(job_id);
  for (auto at = first; at != last; ++at) {
    at->second->is_cancelled = true;
    at->second->changed.Notify();
  }
  return first != last;
}

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
    const Arrival arrival(*this, id);
    const auto reached = co_await (queue_.Reach() || UntilCancelled(arrival.arriving()));
    if (arrival.arriving()->is_cancelled) {
      co_return errors::CancelledInTime();
    }
    if (const absl::Status& status = std::get<0>(reached); !status.ok()) {
      co_return errors::NothingSubmitted(status);
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
  std::vector<std::string> warnings;
  if (const auto found = forwardings_.find(id); found != forwardings_.end()) {
    const auto forwarding = found->second;
    settled = co_await Settled(id, forwarding);
    warnings = forwarding->warnings;
  }
  const absl::Status stored = co_await store_.Flush();
  if (!stored.ok()) {
    spdlog::error("cannot store job={}: {}", id, Message(stored));
  }
  CO_RETURN_IF_ERROR(settled);
  if (const proto::JobStatus* known = book_.FindAny(id);
      !stored.ok() && (known == nullptr || known->state() == proto::UNSUBMITTED)) {
    co_return errors::NotStored(Message(stored));  // else it is durable inside all the same
  }

  // Answer.
  proto::SubmitReply reply;
  reply.set_job_id(id);
  reply.set_site(here_.site);
  reply.set_account(caller.account);
  reply.set_is_repeat(is_repeat);
  reply.set_commit_within_s(job.commit_within_s);
  reply.mutable_warning()->Assign(warnings.begin(), warnings.end());
  if (is_repeat) {
    reply.add_warning(KnownAlready(here_.site, id));
  }
  co_return reply;
}

awaitable<absl::StatusOr<proto::SubmitReply>> Jobs::DryRun(const Caller& caller,
                                                           const proto::SignedRequest& request,
                                                           const JobEvent& submitted) {
  const absl::Status reached = co_await queue_.Reach();
  if (!reached.ok()) {
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
  co_spawn(loop_, Forward(submitted.job_id(), submitted.submitted().request(), forwarding),
           Logged("forwarding job=" + submitted.job_id()));
}

// Waits for the queue server's word; where that takes long, the user is told that the job waits.
awaitable<absl::Status> Jobs::Settled(std::string job_id, std::shared_ptr<Forwarding> forwarding) {
  const auto limit = std::chrono::steady_clock::now() + kPatience;
  while (!forwarding->is_settled) {
    const auto left = std::chrono::ceil<milliseconds>(limit - std::chrono::steady_clock::now());
    if (left.count() <= 0) {
      RecordSilence(job_id, queue_.WhySilent(absl::OkStatus()));
      forwarding->Settle(absl::OkStatus());
      break;
    }
    co_await forwarding->changed.WaitFor(left);
  }
  co_return forwarding->result;
}

void Jobs::RecordSilence(const std::string& job_id, const std::string& why) {
  JobEvent waiting = EventOf(job_id);
  waiting.mutable_waiting()->set_reason(why);
  Record(waiting);
}

// A no at once leaves nothing behind; a later one ends a job that the user was told of.
void Jobs::RefuseForwarded(const std::string& job_id, const absl::Status& verdict,
                           Forwarding& forwarding) {
  spdlog::info("job refused by the queue server job={}: {}", job_id, Printable(Message(verdict)));
  if (!forwarding.is_told) {
    Withdraw(job_id);
    forwarding.Settle(verdict);
    return;
  }
  JobEvent ended = EventOf(job_id);
  ended.mutable_ended()->set_state(proto::FAILED);
  ended.mutable_ended()->set_gram_code(GramCode(verdict));
  ended.mutable_ended()->set_reason("refused by the queue server: " + Message(verdict));
  ended.mutable_ended()->set_remedy(Remedy(verdict));
  Record(ended);
}

// Until the queue server has said yes or no, or the job needs it no more.
awaitable<void> Jobs::Forward(std::string job_id, proto::SignedRequest request,
                              std::shared_ptr<Forwarding> forwarding) {
  const auto is_wanted = [this, &job_id] {
    const proto::JobStatus* known = book_.FindAny(job_id);
    return known != nullptr && known->state() == proto::UNSUBMITTED;
  };
  std::string said;
  for (milliseconds pause = kRetryMin;; pause = std::min(pause * 2, kRetryMax)) {
    auto reply = co_await queue_.Submit(request);
    if (reply.ok() && reply->job_id() != job_id) {
      reply = errors::Mismatch("site", here_.site, reply->site());
    }
    const absl::Status status = reply.status();
    if (reply.ok() && !reply->is_repeat()) {  // that we sent it again is our affair
      forwarding->warnings = {reply->warning().begin(), reply->warning().end()};
    }
    if (status.ok() || !is_wanted()) {
      break;  // accepted, or its events arrived, or it was cancelled
    }
    if (IsVerdict(status)) {
      RefuseForwarded(job_id, status, *forwarding);
      break;
    }
    // The request may have arrived, or not: the job stays, and it is asked again.
    const std::string why = queue_.WhySilent(status);
    if (Kind(why) != Kind(said)) {
      spdlog::warn("no answer to a submit, asking again job={}: {}; {}", job_id, Printable(Message(status)), Printable(why));
      RecordSilence(job_id, why);
      said = why;
    }
    forwarding->Settle(absl::OkStatus());
    co_await Sleep(loop_, pause);
    if (!is_wanted()) {
      break;
    }
  }
  if (!forwarding->is_settled) {
    forwarding->Settle(absl::OkStatus());
  }
  forwardings_.erase(job_id);
}

awaitable<bool> Jobs::UntilSubmitted(std::string job_id) {
  auto watcher = std::make_shared<Watcher>(loop_);
  Watch(job_id, watcher);
  for (;;) {
    const proto::JobStatus* known = book_.FindAny(job_id);
    const auto found = forwardings_.find(job_id);
    if (known == nullptr || known->state() != proto::UNSUBMITTED || found == forwardings_.end()) {
      co_return known != nullptr && !book_.IsEndedHere(job_id);
    }
    watcher->items.clear();
    const auto forwarding = found->second;
    if (!forwarding->is_settled) {
      co_await forwarding->changed.Wait();
    } else {
      co_await watcher->changed.Wait();
    }
  }
}

// ---- cancelling what nobody may have

void Jobs::CancelHere(const std::string& job_id, const proto::SignedRequest& request) {
  JobEvent cancelling = EventOf(job_id);
  cancelling.mutable_cancelling()->set_reason("cancelled by its user");
  *cancelling.mutable_cancelling()->mutable_request() = request;
  Record(cancelling);
  JobEvent ended = EventOf(job_id);
  ended.mutable_ended()->set_state(proto::CANCELLED);
  ended.mutable_ended()->set_gram_code(errors::kUserCancelled);
  ended.mutable_ended()->set_reason("cancelled by its user before the queue server had answered");
  Record(ended);
  spdlog::info("job cancelled before the queue server had answered job={}", job_id);
  co_spawn(loop_, DeliverCancel(job_id, request), Logged("the cancel of job=" + job_id));
}

// A submit without an answer may have arrived all the same: the queue server is told, too.
awaitable<void> Jobs::DeliverCancel(std::string job_id, proto::SignedRequest request) {
  for (milliseconds pause = kRetryMin; book_.IsEndedHere(job_id);
       pause = std::min(pause * 2, kRetryMax)) {
    const auto reply = co_await queue_.Command(request);
    if (reply.ok() || IsVerdict(reply.status())) {
      spdlog::info("cancel delivered job={}: {}", job_id,
                   reply.ok() ? "it was there" : Printable(Message(reply.status())));
      co_return;
    }
    co_await Sleep(loop_, pause);
  }
}

}  // namespace sekisho::jobmanager
