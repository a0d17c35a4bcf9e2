// SPDX-License-Identifier: Apache-2.0
#include "qserver/conductor.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <optional>
#include <sstream>
#include <unordered_set>

#include <fmt/format.h>
#include <openssl/rand.h>

#include "common/job_state.h"
#include "common/log.h"
#include "common/refusal.h"
#include "qserver/accounting.h"
#include "qserver/end_hook.h"
#include "qserver/engine_driver.h"
#include "qserver/errors.h"
#include "qserver/staging.h"

namespace sekisho::qserver {
namespace {

// What a task shows its agent when it asks for a helper.
std::string RandomToken() {
  std::array<unsigned char, 16> bytes;
  CHECK(RAND_bytes(bytes.data(), int(bytes.size())) == 1);
  std::string token;
  for (const unsigned char byte : bytes) {
    token += fmt::format("{:02x}", byte);
  }
  return token;
}

// The whole number that `text` is, within its limits.
std::optional<int> NumberIn(const std::string& text, int least, int most) {
  int number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const bool is_one = error == std::errc() && end == text.data() + text.size();
  return is_one && number >= least && number <= most ? std::optional(number) : std::nullopt;
}

constexpr size_t kEndedEventMost = 64 << 10;  // no end is larger

constexpr std::chrono::milliseconds kStartsWait{5};  // for the ends of short tasks, to be stored with them

constexpr char kRestrictions[] = "restrictions";  // Restrictions::Bytes
constexpr char kPriorities[] = "priorities";  // "JOB NUMBER\n"...

}  // namespace

int64_t Conductor::SteadyMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

int64_t Conductor::NowMs() {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

Conductor::Conductor(Loop& loop, EventStore& store, Spool& spool, AllocatorLink& allocator,
                     TaskSettings settings, int64_t wall_time_max_s, std::set<std::string> public_subjects)
    : loop_(loop),
      store_(store),
      spool_(spool),
      allocator_(allocator),
      queue_(std::move(settings), wall_time_max_s, std::move(public_subjects)),
      site_changed_(loop),
      pass_wanted_(loop),
      full_pass_(loop),
      commit_wanted_(loop) {}

absl::Status Conductor::Restore() {
  if (accounting_) {
    RETURN_IF_ERROR(accounting_->Restore());
  }
  ASSIGN_OR_RETURN(const std::string restrictions, store_.Value(kRestrictions));
  RETURN_IF_ERROR(restrictions_.Restore(restrictions));
  std::unordered_set<std::string> ended;  // what they were asked to do is of no use any more
  RETURN_IF_ERROR(store_.Replay(
      [&](uint64_t, const std::string& job_id, const std::string& bytes) -> absl::Status {
        proto::JobEvent event;
        if (bytes.size() < kEndedEventMost && event.ParseFromString(bytes) && event.has_ended()) {
          ended.insert(job_id);
        }
        return absl::OkStatus();
      }));
  RETURN_IF_ERROR(
      store_.Replay([&](uint64_t sequence, const std::string&, const std::string& bytes) {
        proto::JobEvent event;
        if (!event.ParseFromString(bytes)) {
          return absl::DataLossError(fmt::format("event {} cannot be read", sequence));
        }
        event.set_sequence(sequence);
        RETURN_IF_ERROR(queue_.Replay(event, ended.count(event.job_id()) > 0));
        const std::string& account = queue_.Find(event.job_id())->status.account();
        journal_.Add(account, event);
        if (event.has_ended()) {
          Account(*queue_.Find(event.job_id()), event);
        }
        return absl::OkStatus();
      }));
  Perform(queue_.FinishReplay(
      [this](const std::string& job_id, int task, int stream) {
        return spool_.Size(job_id, task, stream);
      },
      NowMs()));
  ASSIGN_OR_RETURN(const std::string priorities, store_.Value(kPriorities));
  std::istringstream lines(priorities);
  std::string job_id;
  for (int priority = 0; lines >> job_id >> priority;) {
    if (queue_.SetPriority(job_id, priority).ok()) {
      priorities_[job_id] = priority;
    }
  }
  spdlog::info("restored jobs pending={} running={}", queue_.pending_count(),
               queue_.running_count());
  return absl::OkStatus();
}

void Conductor::Run() {
  co_spawn(loop_, Schedule(), Vital("scheduling"));
  co_spawn(loop_, Commit(), Vital("storing events"));
  co_spawn(loop_, EndStalled(), Vital("ending what stalls"));
  co_spawn(loop_, EndUnheard(), Vital("ending what is unheard of"));
  co_spawn(loop_, EndUncommitted(), Vital("ending what nobody commits"));
  if (relay_ != nullptr) {
    co_spawn(loop_, RenewRelay(), Vital("renewing tokens"));
  }
  RequestPass();
}

awaitable<void> Conductor::EndStalled() {
  for (;;) {
    co_await Sleep(loop_, std::chrono::seconds(10));
    for (Effects effects : {queue_.EndStalled(NowMs()), queue_.EndUnreleased(NowMs()), queue_.EndUnled(SteadyMs(), NowMs())}) {
      if (!effects.events.empty()) {
        Perform(std::move(effects));
      }
    }
  }
}

awaitable<void> Conductor::EndUnheard() {
  for (;;) {
    Effects effects = queue_.EndUnheard(SteadyMs(), NowMs());
    if (!effects.events.empty()) {
      Perform(std::move(effects));
    }
    co_await Sleep(loop_, std::chrono::seconds(1));
  }
}

awaitable<void> Conductor::EndUncommitted() {
  for (;;) {
    Effects effects = queue_.EndUncommitted(NowMs());
    if (!effects.events.empty()) {
      Perform(std::move(effects));
    }
    const std::optional<int64_t> next = queue_.NextCommitBy();
    const int64_t wait_ms = next ? std::clamp<int64_t>(*next - NowMs(), 0, 3'600'000) : 3'600'000;
    co_await site_changed_.WaitFor(std::chrono::milliseconds(wait_ms));
  }
}

// ---- Storing, then sending

void Conductor::Perform(Batch batch) {
  if (batch.effects.is_pass_due) {
    RequestPass();
  }
  if (batch.effects.events.empty() && batch.proposals.empty() && batches_.empty()) {
    for (Effects::Outgoing& out : batch.effects.messages) {
      Send(out.node, std::move(out.message));
    }
    return;
  }
  for (proto::JobEvent& event : batch.effects.events) {
    event.set_sequence(store_.next_sequence());
    store_.Append(event.job_id(), event.SerializeAsString());
    unpublished_.insert(event.job_id());
  }
  batches_.push_back(std::move(batch));
  commit_wanted_.Notify();
}

// Nothing follows from it but that it is known.
bool Conductor::MayWait(const Batch& batch) {
  return batch.effects.messages.empty() && batch.proposals.empty() &&
         std::all_of(batch.effects.events.begin(), batch.effects.events.end(),
                     [](const proto::JobEvent& event) { return event.has_task_started() || event.has_begun(); });
}

awaitable<void> Conductor::Commit() {
  for (;;) {
    while (batches_.empty()) {
      co_await commit_wanted_.Wait();
    }
    const auto until = std::chrono::steady_clock::now() + kStartsWait;
    bool is_early = true;
    while (is_early && std::all_of(batches_.begin(), batches_.end(), MayWait)) {
      const auto left = until - std::chrono::steady_clock::now();
      is_early = co_await commit_wanted_.WaitFor(std::chrono::ceil<std::chrono::milliseconds>(left));
      is_early = is_early && std::chrono::steady_clock::now() < until;
    }
    const size_t count = batches_.size();
    const absl::Status status = co_await store_.Flush();
    if (!status.ok()) {
      // What is in memory is now ahead of the disk.  Start again from the disk: nothing was
      // answered.
      spdlog::critical("cannot store events, stopping: {}", Message(status));
      std::_Exit(74);
    }
    for (size_t i = 0; i < count; ++i) {
      Batch batch = std::move(batches_.front());
      batches_.pop_front();
      Publish(std::move(batch));
    }
  }
}

void Conductor::Restrict(const std::function<void(Restrictions&)>& change) {
  change(restrictions_);
  store_.Put(kRestrictions, restrictions_.Bytes());
  if (engine_ != nullptr) {
    engine_->OnDrainChanged();
  }
  RequestPass();
  SiteChanged();
}

void Conductor::SiteChanged() {
  ++site_generation_;
  site_changed_.Notify();
}

void Conductor::Publish(Batch batch) {
  if (!batch.effects.events.empty()) {
    SiteChanged();
  }
  for (const proto::JobEvent& event : batch.effects.events) {
    unpublished_.erase(unpublished_.find(event.job_id()));
    const Job* job = queue_.Find(event.job_id());
    if (job == nullptr) {
      continue;
    }
    journal_.Add(job->status.account(), event);
    for (const std::string& name : {"account " + job->status.account(), "job " + event.job_id()}) {
      if (const auto at = signals_.find(name); at != signals_.end()) {  // somebody waits, or has waited
        if (const auto signal = at->second.lock()) {
          signal->Notify();
        }
      }
    }
    if (event.has_ended()) {
      spool_.Close(event.job_id());
      Account(*job, event);
      ++ended_[event.ended().state()];
      inputs_.erase(event.job_id());
      ForgetTokens(*job);
      spdlog::info("job ended job={} state={} code={} signal={} reason=\"{}\"", event.job_id(),
                   StateName(event.ended().state()), event.ended().exit().code(),
                   event.ended().exit().signal(), Printable(event.ended().reason()));
    } else if (event.has_allocated() && !job->status.has_element()) {
      spdlog::info("job has nodes job={} resource={}", event.job_id(),
                   event.allocated().resource());
    } else if (event.has_submitted() && !job->status.has_element()) {
      spdlog::info("job accepted job={} account={} subject=\"{}\"", event.job_id(),
                   event.submitted().account(), Printable(event.submitted().subject()));
    }
  }
  for (Effects::Outgoing& out : batch.effects.messages) {
    Send(out.node, std::move(out.message));
  }
  for (const proto::JobEvent& event : batch.effects.events) {
    const Job* job = queue_.Find(event.job_id());
    if (job != nullptr && job->has_engine && engine_ != nullptr) {
      TellEngine(*job, event);
    }
    if (job != nullptr && job->is_staging && event.has_queued() && staging_ != nullptr) {
      staging_->OnStaging(event.job_id());
    }
    if (job != nullptr && job->awaits_credential && event.has_ended() && staging_ != nullptr) {
      staging_->OnCredentialUnneeded(event.job_id());
    }
    if (job != nullptr && job->is_staging_out && event.has_staging_out() && staging_ != nullptr) {
      staging_->OnStagingOut(event.job_id());
    }
  }
  for (const auto& proposal : batch.proposals) {
    proposal->is_done = true;
    proposal->done.Notify();
  }
}

void Conductor::Account(const Job& job, const proto::JobEvent& ended) {
  if (job.status.has_array()) {
    return;  // its elements have lines of their own
  }
  if (accounting_) {
    accounting_->OnEnd(job.status, ended);
  }
  if (end_hook_ != nullptr && end_hook_->Wants(ended.sequence())) {
    end_hook_->OnEnd(ended.sequence(), AccountingLine(job.status, ended));
  }
}

void Conductor::TellEngine(const Job& job, const proto::JobEvent& event) {
  const bool may_go = job.commit_by_ms == 0 && !job.is_staging;
  if ((event.has_queued() || event.has_committed() || event.has_staged_in()) && may_go) {
    engine_->OnQueued(job);
  } else if (event.has_cancelling()) {
    engine_->OnCancelling(job);
  } else if (event.has_staging_out()) {
    engine_->OnStagingOut(job);
  } else if (event.has_ended()) {
    engine_->OnEnded(job);
  }
}

void Conductor::WakeJobs() {
  for (const auto& [name, weak] : signals_) {
    if (const auto signal = weak.lock()) {
      signal->Notify();
    }
  }
}

bool Conductor::Send(const std::string& node, proto::ServerMessage message) {
  const auto at = nodes_.find(node);
  if (at == nodes_.end()) {
    return false;  // it learns what it missed when it attaches again
  }
  if (message.has_start()) {
    message.mutable_start()->set_launch_token(RandomToken());
    AddRelay(*message.mutable_start());
  }
  at->second.send(std::move(message));
  return true;
}

std::shared_ptr<Signal> Conductor::JobSignal(const std::string& job_id) {
  auto& weak = signals_["job " + job_id];
  auto signal = weak.lock();
  if (!signal) {
    weak = signal = std::make_shared<Signal>(loop_);
  }
  return signal;
}

std::shared_ptr<Signal> Conductor::AccountSignal(const std::string& account) {
  auto& weak = signals_["account " + account];
  auto signal = weak.lock();
  if (!signal) {
    weak = signal = std::make_shared<Signal>(loop_);
  }
  return signal;
}

// ---- Users

absl::StatusOr<proto::JobState> Conductor::Command(const proto::RequestBody& body) {
  const int number = body.has_cancel() ? 1 : body.signal().number();
  const std::string job_id = body.has_cancel() ? body.cancel().job_id() : body.signal().job_id();
  absl::StatusOr<Effects> effects;
  switch (number) {
    case 1:
      effects = queue_.Cancel(job_id, "cancelled by its user", NowMs());
      break;
    case 2:
      effects = queue_.Suspend(job_id, NowMs());
      break;
    case 3:
      effects = queue_.Resume(job_id, NowMs());
      break;
    case 4: {
      if (const Job* job = queue_.Find(job_id); job != nullptr && job->has_engine) {
        return errors::NoEnginePriority(job_id);
      }
      const std::optional<int> priority = NumberIn(body.signal().argument(), -100, 0);
      if (!priority) {
        return errors::BadPriority(body.signal().argument());
      }
      RETURN_IF_ERROR(queue_.SetPriority(job_id, *priority));
      priorities_[job_id] = *priority;
      has_new_priorities_ = true;
      effects = Effects{};
      effects->is_pass_due = true;
      break;
    }
    case 5:
      effects = queue_.Commit(job_id, NowMs());
      break;
    case 6: {
      const std::optional<int> seconds = NumberIn(body.signal().argument(), 1, 86'400);
      if (!seconds) {
        return errors::BadExtension(body.signal().argument());
      }
      effects = queue_.ExtendCommit(job_id, *seconds, NowMs());
      break;
    }
    case 10:
      RETURN_IF_ERROR(queue_.CheckCommitEnd(job_id));
      spool_.Remove(job_id);
      effects = Effects{};
      break;
    case 101:
      effects = queue_.Hold(job_id, "", NowMs());
      break;
    case 102:
      effects = queue_.LetGo(job_id, NowMs());
      break;
    default:
      return errors::UnknownSignal(number);
  }
  RETURN_IF_ERROR(effects.status());
  Perform(*std::move(effects));
  return queue_.StatusOf(job_id).state();
}

awaitable<absl::Status> Conductor::Durable() {
  if (std::exchange(has_new_priorities_, false)) {
    StorePriorities();
  }
  co_return co_await store_.Flush();
}

void Conductor::StorePriorities() {
  std::string text;
  for (const auto& [job_id, priority] : priorities_) {
    text += fmt::format("{} {}\n", job_id, priority);
  }
  store_.Put(kPriorities, text);
}

}  // namespace sekisho::qserver
