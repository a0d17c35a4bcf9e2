// SPDX-License-Identifier: Apache-2.0
#include "qserver/engine_driver.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/caught.h"
#include "common/job_state.h"
#include "common/log.h"
#include "common/refusal.h"
#include "qserver/errors.h"
#include "rsl/job_description.h"

namespace sekisho::qserver {
namespace {

constexpr int kHandedOverAtOnce = 4;

bool SaysWhy(const EngineState& state) { return !state.reason.empty() && state.reason != "None"; }

std::string WaitText(const std::string& engine, const std::string& number, const EngineState& state) {
  if (!state.is_waiting) {
    return fmt::format("{} job {} starts: {}", engine, number, state.state);
  }
  const bool says_why = SaysWhy(state);
  return fmt::format("{} job {} waits{}{}", engine, number, says_why ? ": " : "", says_why ? state.reason : "");
}

std::string EndText(const std::string& engine, const std::string& number, const EngineState& state) {
  const std::string why = SaysWhy(state) ? fmt::format(" ({})", state.reason) : "";
  return fmt::format("{} has ended its job {}: {}{}", engine, number, state.state, why);
}

}  // namespace

EngineDriver::EngineDriver(Loop& loop, Conductor& conductor, Engine& engine, std::string secret,
                           Times times)
    : loop_(loop),
      conductor_(conductor),
      engine_(engine),
      secret_(std::move(secret)),
      times_(times),
      hand_over_(loop),
      take_back_(loop),
      news_(loop) {}

void EngineDriver::Run() {
  for (const Job* job : conductor_.queue().EngineJobs()) {
    OnQueued(*job);
    if (job->status.cancelling()) {
      OnCancelling(*job);
    }
  }
  for (int i = 0; i < kHandedOverAtOnce; ++i) {
    co_spawn(loop_, HandOver(), Vital("handing jobs over"));
  }
  co_spawn(loop_, TakeBack(), Vital("taking jobs back"));
  co_spawn(loop_, Ask(), Vital("the batch system's word"));
}

EngineRequest EngineDriver::RequestOf(const std::string& job_id, const std::string& account,
                                      const std::string& rsl, const proto::Demand& demand) const {
  EngineRequest request;
  request.job_id = job_id;
  request.account = account;
  request.token = TokenOf(job_id);
  request.processes = demand.processes();
  request.hosts = demand.host_count();
  request.wall_time_s = demand.wall_time_s();
  request.is_exclusive = demand.exclusive();
  request.partition = demand.queue();
  if (const auto described = rsl::ParseAndDescribe(rsl, {}); described.ok()) {
    request.memory_mb = described->min_memory_mb.value_or(0);
    request.project = described->project;
  }
  return request;
}

awaitable<absl::Status> EngineDriver::Check(Admitted admitted) {
  return engine_.Check(RequestOf(admitted.job_id, admitted.submitted.account(),
                                 admitted.submitted.rsl(), admitted.demand));
}

// ---- Handing over

void EngineDriver::OnQueued(const Job& job) {
  Held& held = held_[job.status.job_id()];
  held.taken = Clock::now();
  if (job.status.engine_job().empty() && !job.has_processors) {
    line_.Add(job.order, job.status.job_id());
    TellDrained(job.status.job_id());
    hand_over_.Notify();
  }
  news_.Notify();
}

void EngineDriver::OnDrainChanged() {
  for (const auto& [place, job_id] : line_.jobs()) {
    TellDrained(job_id);
  }
  hand_over_.Notify();
}

void EngineDriver::TellDrained(const std::string& job_id) {
  if (const std::string why = conductor_.restrictions().WhyDrained(""); !why.empty()) {
    conductor_.Change([&](Queue& queue) { return queue.OnEngineReason(job_id, why, Conductor::NowMs()); });
  }
}

awaitable<void> EngineDriver::HandOver() {
  for (;;) {
    while (line_.is_empty() || is_offering_again_ || conductor_.restrictions().IsSiteDrained()) {
      co_await hand_over_.Wait();
    }
    const HandOverLine::Waiting next = line_.TakeFirst();
    const Answer answer = co_await Offer(next.second);
    if (answer != Answer::kLater) {
      continue;
    }
    if (next.first.is_behind) {  // known for it: nobody waits for this one
      co_await Sleep(loop_, times_.try_again);
    }
    line_.PutBack(next);
    if (!next.first.is_behind && !std::exchange(is_offering_again_, true)) {
      co_await OfferAgain();
      is_offering_again_ = false;
    }
    hand_over_.Notify();
  }
}

// While nothing is taken the first is offered now and then, and after it another: it may be the first alone that is not
// taken.
awaitable<void> EngineDriver::OfferAgain() {
  for (Answer answer = Answer::kLater; answer == Answer::kLater;) {
    co_await Sleep(loop_, times_.try_again);
    if (line_.is_idle()) {
      break;  // the others have ended meanwhile
    }
    if (conductor_.restrictions().IsSiteDrained()) {
      continue;
    }
    const HandOverLine::Waiting first = line_.TakeFirst();
    answer = co_await Offer(first.second);
    if (answer != Answer::kLater) {
      break;
    }
    if (const auto other = line_.TakeOther()) {
      answer = co_await Offer(other->second);
      if (answer == Answer::kLater) {
        line_.PutBack(*other);
      }
    }
    if (answer == Answer::kTaken) {
      line_.PutBehind(first);
    } else {
      line_.PutBack(first);
    }
  }
}

awaitable<EngineDriver::Answer> EngineDriver::Offer(std::string job_id) {
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr || IsFinal(job->status.state()) || !job->status.engine_job().empty()) {
    co_return Answer::kNever;
  }
  const std::string account = job->status.account();
  const absl::StatusOr<std::string> number = co_await Caught(
      "handing over job=" + job_id, engine_.Submit(RequestOf(job_id, account, job->status.rsl(), *job->demand)));
  job = conductor_.queue().Find(job_id);
  if (job == nullptr || IsFinal(job->status.state())) {  // it may have come there, whatever was answered
    to_take_back_[job_id] = account;
    take_back_.Notify();
    co_return Answer::kNever;
  }
  if (number.ok()) {
    spdlog::info("job handed over job={} {}={}", job_id, engine_.name(), *number);
    held_[job_id].taken = Clock::now();
    const std::string reason = fmt::format("{} job {} waits", engine_.name(), *number);
    conductor_.Change([&](Queue& queue) { return queue.OnEngineTook(job_id, *number, reason, Conductor::NowMs()); });
    news_.Notify();
    co_return Answer::kTaken;
  }
  const std::string why = Message(number.status());
  if (absl::IsUnavailable(number.status()) || absl::IsInternal(number.status())) {
    spdlog::error("{} takes no job now job={}: {}", engine_.name(), job_id, why);
    conductor_.Change([&](Queue& queue) {
      return queue.OnEngineReason(job_id, fmt::format("{} takes no job now: {}", engine_.name(), why),
                                  Conductor::NowMs());
    });
    co_return Answer::kLater;
  }
  conductor_.Change([&](Queue& queue) { return queue.OnEngineEnded(job_id, why, Conductor::NowMs()); });
  co_return Answer::kNever;
}

// ---- Taking back

void EngineDriver::OnCancelling(const Job& job) {
  if (job.has_processors) {
    co_spawn(loop_, CancelLater(job.status.job_id()), Logged("cancelling job=" + job.status.job_id()));
  }
}

// Its pilots end it; if they cannot, the batch system does.
awaitable<void> EngineDriver::CancelLater(std::string job_id) {
  const Job* job = conductor_.queue().Find(job_id);
  if (job != nullptr && !IsMissing(*job)) {
    co_await Sleep(loop_, times_.cancel_after);
    job = conductor_.queue().Find(job_id);
  }
  if (job != nullptr && !IsFinal(job->status.state())) {
    to_take_back_[job_id] = job->status.account();
    take_back_.Notify();
  }
}

// Its tasks have ended, and all that they wrote is here: the batch system has its processors back.
void EngineDriver::OnStagingOut(const Job& job) { ForgetAtPilots(job); }

void EngineDriver::ForgetAtPilots(const Job& job) {
  proto::ServerMessage forget;
  forget.mutable_forget()->set_job_id(job.status.job_id());
  for (const auto& [number, place] : held_[job.status.job_id()].pilots) {
    conductor_.Send(place.node(), forget);
  }
}

void EngineDriver::OnEnded(const Job& job) {
  const std::string& job_id = job.status.job_id();
  const auto held = held_.find(job_id);
  if (held == held_.end()) {
    return;
  }
  line_.Remove(job.order);
  ForgetAtPilots(job);
  // Pilots that have it from us go by themselves.
  if (job.status.state() != proto::DONE && !job.status.engine_job().empty()) {
    to_take_back_[job_id] = job.status.account();
    take_back_.Notify();
  }
  held_.erase(held);
}

awaitable<void> EngineDriver::TakeBack() {
  for (;;) {
    while (to_take_back_.empty()) {
      co_await take_back_.Wait();
    }
    const auto [job_id, account] = *to_take_back_.begin();
    const absl::Status status = co_await engine_.Cancel(job_id, account);
    if (status.ok() || !absl::IsUnavailable(status)) {
      spdlog::info("job taken back job={} {}", job_id, Message(status));
      to_take_back_.erase(job_id);
    } else {
      spdlog::error("cannot take a job back from {} job={}: {}", engine_.name(), job_id, Message(status));
      co_await Sleep(loop_, times_.try_again);
    }
  }
}

// ---- Asking: only while there is a job of which nobody else would speak

bool EngineDriver::IsMissing(const Job& job) const {
  return std::any_of(job.status.placement().begin(), job.status.placement().end(),
                     [&](const proto::Placement& place) {
                       return conductor_.nodes().count(place.node()) == 0;
                     });
}

bool EngineDriver::IsOpen(const Job& job) const {
  return !job.status.engine_job().empty() && !job.is_staging_out && (!job.has_processors || IsMissing(job));
}

bool EngineDriver::IsAnyOpen() const {
  const std::vector<const Job*> jobs = conductor_.queue().EngineJobs();
  return std::any_of(jobs.begin(), jobs.end(), [this](const Job* job) { return IsOpen(*job); });
}

awaitable<void> EngineDriver::Ask() {
  std::chrono::milliseconds pause = times_.ask_soon;
  bool is_silent = false;
  for (;;) {
    while (!IsAnyOpen()) {
      co_await news_.Wait();
      pause = times_.ask_soon;
    }
    co_await Sleep(loop_, pause);
    if (!IsAnyOpen()) {
      continue;
    }
    const Clock::time_point asked = Clock::now();
    const auto states = co_await engine_.Query();
    pause = std::min(pause * 2, times_.ask_late);
    if (!states.ok()) {
      if (!std::exchange(is_silent, true)) {
        spdlog::error("{} does not answer: {}", engine_.name(), Message(states.status()));
      }
      continue;
    }
    is_silent = false;
    for (const Job* job : conductor_.queue().EngineJobs()) {
      const auto held = held_.find(job->status.job_id());
      if (IsOpen(*job) && held != held_.end() && held->second.taken < asked) {
        Judge(*job, *states);
      }
    }
  }
}

void EngineDriver::Judge(const Job& job, const std::map<std::string, EngineState>& states) {
  const std::string job_id = job.status.job_id();
  const std::string& number = job.status.engine_job();
  const auto found = states.find(number);
  if (found != states.end() && !found->second.has_ended) {
    conductor_.Change([&](Queue& queue) {
      return queue.OnEngineReason(job_id, WaitText(engine_.name(), number, found->second),
                                  Conductor::NowMs());
    });
    return;
  }
  const std::string reason = found == states.end()
                                 ? fmt::format("{} does not know its job {} any more", engine_.name(), number)
                                 : EndText(engine_.name(), number, found->second);
  conductor_.Change(
      [&](Queue& queue) { return queue.OnEngineEnded(job_id, reason, Conductor::NowMs()); });
}

}  // namespace sekisho::qserver
