// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/jobs.h"

#include <algorithm>

#include "common/job_state.h"
#include "common/log.h"
#include "jobmanager/errors.h"

namespace sekisho::jobmanager {
namespace {

using proto::JobEvent;
using std::chrono::milliseconds;

constexpr char kPosition[] = "queue_position";
constexpr milliseconds kRetryMin{500};
constexpr milliseconds kRetryMax{30'000};
constexpr std::chrono::hours kTidyEvery{1};

int64_t NowMs() {
  return std::chrono::duration_cast<milliseconds>(std::chrono::system_clock::now().time_since_epoch())
      .count();
}

JobEvent EventOf(const std::string& job_id) {
  JobEvent event;
  event.set_job_id(job_id);
  event.set_time_ms(NowMs());
  return event;
}

}  // namespace

Jobs::Jobs(Loop& loop, Here here, EventStore& store, QueueServer& queue, std::chrono::hours keep_ended)
    : loop_(loop), here_(std::move(here)), store_(store), queue_(queue), keep_ended_(keep_ended) {}

absl::Status Jobs::Load() {
  RETURN_IF_ERROR(store_.Replay(
      [this](uint64_t row, const std::string& key, const std::string& text) -> absl::Status {
        JobEvent event;
        if (!event.ParseFromString(text) || event.job_id() != key) {
          return absl::DataLossError(fmt::format("stored event {} of job {} cannot be read", row, key));
        }
        if (event.has_submitted()) {
          unconfirmed_[key] = event.submitted().request();
        } else if (event.sequence() > 0) {
          unconfirmed_.erase(key);  // the queue server knows it
        }
        if (const absl::Status status = book_.Replay(event); !status.ok()) {
          spdlog::warn("stored event skipped row={} job={}: {}", row, key, Message(status));
        }
        return absl::OkStatus();
      }));
  ASSIGN_OR_RETURN(const std::string position, store_.Value(kPosition));
  if (!position.empty()) {
    book_.set_position(std::max<uint64_t>(book_.position(), std::strtoull(position.c_str(), nullptr, 10)));
  }
  std::erase_if(unconfirmed_, [this](const auto& entry) {
    const auto waiting = book_.Unsubmitted();
    return std::find(waiting.begin(), waiting.end(), entry.first) == waiting.end();
  });
  return absl::OkStatus();
}

void Jobs::Start() {
  co_spawn(loop_,
           queue_.Follow([this] { return book_.position(); },
                         [this](const JobEvent& event) { TakeEvent(event); }),
           detached);
  for (const auto& [id, request] : unconfirmed_) {
    auto forwarding = std::make_shared<Forwarding>(loop_);
    forwardings_[id] = forwarding;
    co_spawn(loop_, Forward(id, request, forwarding, /*is_new=*/false), detached);
  }
  unconfirmed_.clear();
  co_spawn(loop_, Tidy(), detached);
}

// ---- events

void Jobs::Publish(uint64_t row, const JobEvent& event) {
  const auto found = watchers_.find(event.job_id());
  if (found == watchers_.end()) {
    return;
  }
  std::erase_if(found->second, [](const auto& watcher) { return watcher.expired(); });
  for (const auto& weak : found->second) {
    const auto watcher = weak.lock();
    if (watcher->items.size() >= Watcher::kItemsMax) {
      watcher->items.clear();
      watcher->is_behind = true;
    }
    if (!watcher->is_behind) {
      watcher->items.push_back({row, event});
    }
    watcher->changed.Notify();
  }
  if (found->second.empty()) {
    watchers_.erase(found);
  }
}

void Jobs::Store(const JobEvent& event) {
  const uint64_t row = store_.Append(event.job_id(), event.SerializeAsString());
  Publish(row, event);
}

// An event of our own making.
void Jobs::Record(JobEvent event) {
  if (const absl::Status status = book_.Add(event); !status.ok()) {
    spdlog::warn("event refused job={}: {}", event.job_id(), Message(status));
    return;
  }
  Store(event);
}

// An event of the queue server is durable there, and asked for again after a crash: watchers need not
// wait for our disk.
void Jobs::TakeEvent(const JobEvent& event) {
  if (!book_.Take(event)) {
    return;
  }
  Store(event);
  store_.Put(kPosition, std::to_string(book_.position()));
  if (event.has_submitted()) {
    spdlog::info("job taken over from the queue server job={}", event.job_id());
  } else if (event.has_ended()) {
    spdlog::info("job ended job={} state={}", event.job_id(), StateName(event.ended().state()));
  }
}

void Jobs::Withdraw(const std::string& job_id) {
  book_.Withdraw(job_id);
  store_.Forget(job_id);
  if (const auto found = watchers_.find(job_id); found != watchers_.end()) {
    for (const auto& weak : found->second) {
      if (const auto watcher = weak.lock()) {
        watcher->is_withdrawn = true;
        watcher->changed.Notify();
      }
    }
    watchers_.erase(found);
  }
}

void Jobs::Watch(const std::string& job_id, std::shared_ptr<Watcher> watcher) {
  auto& watchers = watchers_[job_id];
  std::erase_if(watchers, [](const auto& known) { return known.expired(); });
  watchers.push_back(std::move(watcher));
}

awaitable<absl::StatusOr<std::vector<Watcher::Item>>> Jobs::History(std::string job_id) {
  CO_RETURN_IF_ERROR(co_await store_.Flush());
  CO_ASSIGN_OR_RETURN(const auto rows, co_await store_.Read(job_id));
  std::vector<Watcher::Item> items;
  for (const auto& row : rows) {
    JobEvent event;
    if (event.ParseFromString(row.event)) {
      items.push_back({row.sequence, std::move(event)});
    }
  }
  co_return items;
}

// ---- submission

awaitable<absl::StatusOr<proto::SubmitReply>> Jobs::Submit(Caller caller, proto::SignedRequest request,
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
  co_spawn(loop_, Forward(submitted.job_id(), submitted.submitted().request(), forwarding, true), detached);
}

awaitable<absl::Status> Jobs::Settled(std::shared_ptr<Forwarding> forwarding) {
  while (!forwarding->is_settled) {
    co_await forwarding->changed.Wait();
  }
  co_return forwarding->result;
}

// Until the queue server has said yes or no.  A first no leaves nothing behind; a later one ends a job
// that the user was told of.
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
      spdlog::info("job refused by the queue server job={}: {}", job_id, Printable(Message(status)));
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
      spdlog::warn("no answer to a submit, asking again job={}: {}", job_id, Printable(Message(status)));
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

// ---- commands

awaitable<absl::StatusOr<proto::CommandReply>> Jobs::Command(Caller caller, proto::SignedRequest request) {
  // Validate.
  CO_ASSIGN_OR_RETURN(const proto::RequestBody body, ReadRequest(request, caller, here_));
  if (!body.has_cancel() && !body.has_signal()) {
    co_return errors::Malformed("a cancel or a signal was expected");
  }
  const std::string id = body.has_cancel() ? body.cancel().job_id() : body.signal().job_id();

  // Look up.
  const proto::JobStatus* job = book_.Find(id, caller.subject);
  if (job == nullptr) {
    co_return errors::NoSuchJob(id);
  }
  if (IsFinal(job->state())) {
    co_return errors::AlreadyEnded(id, StateName(job->state()));
  }

  // Act.
  if (const auto found = forwardings_.find(id); found != forwardings_.end()) {
    CO_RETURN_IF_ERROR(co_await Settled(found->second));
  }
  CO_RETURN_IF_ERROR(co_await queue_.Reach());
  auto reply = co_await queue_.Command(request);
  if (reply.ok() || IsVerdict(reply.status())) {
    co_return reply;
  }
  co_return errors::QueueServerLost(here_.site);
}

// ---- clean-up

awaitable<void> Jobs::Tidy() {
  for (;;) {
    const int64_t keep_ms = std::chrono::duration_cast<milliseconds>(keep_ended_).count();
    for (const std::string& id : book_.EndedBefore(NowMs() - keep_ms)) {
      book_.Withdraw(id);
      store_.Forget(id);
      spdlog::info("ended job forgotten job={}", id);
    }
    co_await Sleep(loop_, kTidyEvery);
  }
}

}  // namespace sekisho::jobmanager
