// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/jobs.h"

#include <algorithm>
#include <utility>

#include "common/job_array.h"
#include "common/job_state.h"
#include "common/log.h"
#include "jobmanager/errors.h"

namespace sekisho::jobmanager {
namespace {

using proto::JobEvent;
using std::chrono::milliseconds;

constexpr char kPosition[] = "queue_position";

// GRAM's signals of a submission in two phases: a commit that was answered and is said again, and the end's.  And a
// redirection of the output, which the queue server refuses with what to do.
bool MayFollowTheEnd(const proto::RequestBody& body) {
  return body.signal().number() == 5 || body.signal().number() == 7 || body.signal().number() == 10;
}

}  // namespace

int64_t Jobs::NowMs() {
  return std::chrono::duration_cast<milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Jobs::Jobs(Loop& loop, Here here, EventStore& store, QueueServer& queue,
           Retention retention)
    : loop_(loop), here_(std::move(here)), store_(store), queue_(queue), retention_(retention), news_(loop),
      trimmer_(loop), stands_(loop) {}

absl::Status Jobs::Load() {
  RETURN_IF_ERROR(store_.Replay([this](uint64_t row, const std::string& key,
                                       const std::string& text) -> absl::Status {
    JobEvent event;
    if (!event.ParseFromString(text) || event.job_id() != key) {
      return absl::DataLossError(fmt::format("stored event {} of job {} cannot be read", row, key));
    }
    if (event.has_submitted()) {
      unconfirmed_[key] = event.submitted().request();
    } else if (event.sequence() > 0) {
      unconfirmed_.erase(key);  // the queue server knows it
    }
    if (event.cancelling().has_request()) {
      undelivered_[key] = event.cancelling().request();
    }
    if (const absl::Status status = book_.Replay(event); !status.ok()) {
      spdlog::warn("stored event skipped row={} job={}: {}", row, key, Message(status));
    }
    return absl::OkStatus();
  }));
  ASSIGN_OR_RETURN(const std::string position, store_.Value(kPosition));
  if (!position.empty()) {
    book_.set_position(
        std::max<uint64_t>(book_.position(), std::strtoull(position.c_str(), nullptr, 10)));
  }
  std::erase_if(unconfirmed_, [this](const auto& entry) {
    const proto::JobStatus* known = book_.FindAny(entry.first);
    return known == nullptr || known->state() != proto::UNSUBMITTED;
  });
  std::erase_if(undelivered_, [this](const auto& entry) { return !book_.IsEndedHere(entry.first); });
  return absl::OkStatus();
}

void Jobs::Start() {
  co_spawn(loop_,
           queue_.Follow([this] { return std::exchange(follow_after_, std::nullopt).value_or(book_.position()); },
                         [this](const JobEvent& event) { TakeEvent(event); }),
           Vital("the queue server's events"));
  co_spawn(loop_, Reconcile(), Vital("comparing jobs"));
  for (const auto& [id, request] : unconfirmed_) {
    auto forwarding = std::make_shared<Forwarding>(loop_);
    forwarding->is_told = true;
    forwardings_[id] = forwarding;
    co_spawn(loop_, Forward(id, request, forwarding), Logged("forwarding job=" + id));
  }
  unconfirmed_.clear();
  for (const auto& [id, request] : undelivered_) {
    co_spawn(loop_, DeliverCancel(id, request), Logged("the cancel of job=" + id));
  }
  undelivered_.clear();
  co_spawn(loop_, Tidy(), Vital("tidying"));
}

// ---- events

void Jobs::PublishOfElement(const std::string& job_id) {
  const auto element = SplitElementId(job_id);
  const auto found = element ? watchers_.find(element->first) : watchers_.end();
  if (found == watchers_.end()) {
    return;
  }
  for (const auto& weak : found->second) {
    if (const auto watcher = weak.lock(); watcher && !watcher->has_moved) {
      watcher->has_moved = true;
      watcher->changed.Notify();
    }
  }
}

void Jobs::Publish(uint64_t row, const JobEvent& event) {
  PublishOfElement(event.job_id());
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

// An event of the queue server is durable there, and asked for again after a crash: watchers need
// not wait for our disk.
void Jobs::TakeEvent(const JobEvent& event) {
  if (event.job_id().empty()) {  // the stream stands
    stands_.Notify();
    return;
  }
  if (!book_.Take(event)) {
    return;
  }
  Store(event);
  news_.Notify();
  store_.Put(kPosition, std::to_string(book_.position()));
  if (event.has_submitted() && !event.submitted().has_element() && event.submitted().first_of_many().empty()) {
    spdlog::info("job taken over from the queue server job={}", event.job_id());
  } else if (event.has_ended() && !SplitElementId(event.job_id())) {
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

awaitable<proto::JobStatus> Jobs::Status(std::string job_id, std::string subject) {
  proto::JobStatus status = book_.Status(job_id, subject);
  if (status.state() == proto::UNKNOWN) {
    co_return status;
  }
  auto rows = co_await store_.ReadFirst(job_id);
  if (rows.ok() && rows->empty()) {  // of this moment
    (co_await store_.Flush()).IgnoreError();
    rows = co_await store_.ReadFirst(job_id);
  }
  JobEvent event;
  if (rows.ok() && !rows->empty() && event.ParseFromString(rows->front().event)) {
    status.set_rsl(event.submitted().rsl());
  }
  co_return status;
}

// ---- commands

awaitable<absl::StatusOr<proto::CommandReply>> Jobs::Command(Caller caller,
                                                             proto::SignedRequest request) {
  // Validate.
  CO_ASSIGN_OR_RETURN(const proto::RequestBody body, ReadRequest(request, caller, here_));
  if (!body.has_cancel() && !body.has_signal() && !body.has_delegate()) {
    co_return errors::Malformed("a cancel, a signal or a delegation was expected");
  }
  const bool is_by_request = body.has_cancel() && body.cancel().job_id().empty();
  const std::string id = is_by_request ? JobIdFor(here_.site, caller.subject, body.cancel().request_id())
                         : body.has_cancel()   ? body.cancel().job_id()
                         : body.has_delegate() ? body.delegate().job_id()
                                               : body.signal().job_id();

  // Look up.
  const proto::JobStatus* job = book_.Find(id, caller.subject);
  if (job == nullptr && is_by_request && CancelArriving(id)) {
    proto::CommandReply cancelled;
    cancelled.set_state(proto::CANCELLED);
    co_return cancelled;
  }
  if (job == nullptr && !book_.IsUnmade(id, caller.subject)) {
    co_return errors::NoSuchJob(id);
  }
  if (job != nullptr && IsFinal(job->state()) && !MayFollowTheEnd(body)) {
    co_return errors::AlreadyEnded(id, StateName(job->state()));
  }

  // Act: here, while the queue server does not say whether it has the job.
  if (const auto found = forwardings_.find(id); found != forwardings_.end()) {
    CO_RETURN_IF_ERROR(co_await Settled(id, found->second));
    job = book_.Find(id, caller.subject);
    const bool is_silent =
        job != nullptr && job->state() == proto::UNSUBMITTED && forwardings_.count(id) > 0;
    if (is_silent && body.has_cancel()) {
      CancelHere(id, request);
      CO_RETURN_IF_ERROR(co_await store_.Flush());
      proto::CommandReply cancelled;
      cancelled.set_state(proto::CANCELLED);
      co_return cancelled;
    }
  }
  CO_RETURN_IF_ERROR(co_await queue_.Reach());
  auto reply = co_await queue_.Command(request);
  if (reply.ok() || IsVerdict(reply.status())) {
    co_return reply;
  }
  co_return errors::QueueServerLost(here_.site);
}

awaitable<absl::StatusOr<proto::AdministerReply>> Jobs::Administer(Caller caller, proto::SignedRequest request) {
  CO_ASSIGN_OR_RETURN(const proto::RequestBody body, ReadRequest(request, caller, here_));
  if (!body.has_administer()) {
    co_return errors::Malformed("what an administrator may ask was expected");
  }
  CO_RETURN_IF_ERROR(co_await queue_.Reach());
  auto reply = co_await queue_.Administer(request);
  if (reply.ok() || IsVerdict(reply.status())) {
    co_return reply;
  }
  co_return errors::QueueServerLost(here_.site);
}

// ---- clean-up

awaitable<void> Jobs::Tidy() {
  for (;;) {
    for (const std::string& id : book_.EndedBefore(NowMs() - retention_.keep.count())) {
      book_.Withdraw(id);
      store_.Forget(id);
      spdlog::info("ended job forgotten job={}", id);
    }
    std::erase_if(watchers_, [](const auto& entry) {
      return std::all_of(entry.second.begin(), entry.second.end(), [](const auto& watcher) { return watcher.expired(); });
    });
    co_await Sleep(loop_, retention_.every);
  }
}

}  // namespace sekisho::jobmanager
