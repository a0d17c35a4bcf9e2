// SPDX-License-Identifier: Apache-2.0
#include "qserver/staging.h"

#include <unistd.h>

#include <utility>

#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "common/caught.h"
#include "common/job_state.h"
#include "common/log.h"
#include "qserver/cache_plan.h"
#include "qserver/errors.h"
#include "qserver/stage_order.h"
#include "qserver/staging_errors.h"

namespace sekisho::qserver {
namespace {

using asio::experimental::awaitable_operators::operator||;

struct SlotLimits {
  int of_account;
  int in_all;
};
constexpr SlotLimits kLimits[] = {{8, 64}, {4, 64}, {2, 16}};  // by Purpose
constexpr size_t kPieceMost = 256 << 10;
constexpr uint64_t kTakenEvery = 1 << 20;
constexpr uint64_t kSeenEvery = 64 << 20;  // so much more is taken of a file that has no room
constexpr std::chrono::minutes kLookForLate{1};
const std::string kTryingAgain = "its files cannot be put in place yet, trying again: ";

proto::UploadReply WantedReply(int file, uint64_t offset) {
  proto::UploadReply reply;
  reply.mutable_wanted()->set_file(file);
  reply.mutable_wanted()->set_offset(offset);
  return reply;
}

proto::UploadReply TakenReply(int file, uint64_t offset) {
  proto::UploadReply reply;
  reply.mutable_taken()->set_file(file);
  reply.mutable_taken()->set_offset(offset);
  return reply;
}

absl::Status CheckPiece(const proto::UploadRequest& request, int file, uint64_t at, uint64_t size) {
  const proto::UploadRequest::Piece& piece = request.piece();
  if (!request.has_piece() || piece.file() != file || piece.offset() != at) {
    return errors::BadPiece(fmt::format("expected file {} from {} on, saw file {} from {} on", file, at, piece.file(),
                                        piece.offset()));
  }
  if (piece.data().empty() || piece.data().size() > kPieceMost || piece.data().size() > size - at) {
    return errors::BadPiece(fmt::format("expected 1 to {} bytes, saw {}", std::min<uint64_t>(kPieceMost, size - at),
                                        piece.data().size()));
  }
  return absl::OkStatus();
}

bool AwaitsCredential(const Job& job) { return job.awaits_credential && job.credential_until_ms == 0; }

}  // namespace

Staging::Slot::~Slot() {
  if (is_taken_) {
    InUse& slots = staging_.slots_[purpose_];
    --slots.in_all;
    if (--slots.of_account[account_] == 0) {
      slots.of_account.erase(account_);
    }
    staging_.changed_.Notify();
  }
}

awaitable<void> Staging::Slot::Take() {
  const SlotLimits& limits = kLimits[size_t(purpose_)];
  InUse& slots = staging_.slots_[purpose_];
  while (slots.in_all >= limits.in_all || slots.of_account[account_] >= limits.of_account) {
    co_await staging_.changed_.Wait();
  }
  ++slots.in_all;
  ++slots.of_account[account_];
  is_taken_ = true;
}

void Staging::Run() {
  for (const std::string& job_id : conductor_.queue().StagingJobs()) {
    OnStaging(job_id);
  }
  for (const std::string& job_id : conductor_.queue().StagingOutJobs()) {
    OnStagingOut(job_id);
  }
  for (const std::string& job_id : conductor_.queue().LeftCredentials(Conductor::NowMs())) {
    OnCredentialUnneeded(job_id);
  }
  co_spawn(loop_, EndLate(), Vital("the limits of staging"));
  co_spawn(loop_, TellOfEndingCredentials(), Vital("the ends of credentials"));
}

void Staging::OnStaging(const std::string& job_id) {
  co_spawn(loop_, Advance(job_id, {}), Logged("staging job=" + job_id));
}

awaitable<void> Staging::EndLate() {
  for (;;) {
    conductor_.Change([&](Queue& queue) { return queue.EndUnstaged(settings_.wait.count(), Conductor::NowMs()); });
    co_await Sleep(loop_, kLookForLate);
  }
}

const Job* Staging::Find(const std::string& job_id) const {
  const Job* job = conductor_.queue().Find(job_id);
  return job != nullptr && job->is_staging && !IsFinal(job->status.state()) ? job : nullptr;
}

absl::StatusOr<std::vector<StageIn>> Staging::PlanOf(const Job& job) const {
  ASSIGN_OR_RETURN(const RunAs as, FindRunAs(job.status.account()));
  const auto described = rsl::ParseAndDescribe(job.status.rsl(), {});
  CHECK(described.ok());
  return PlanStageIn(*described, job.files, as.home, settings_.rules);
}

awaitable<absl::StatusOr<std::unique_ptr<StagerLink>>> Staging::StartStager(std::string job_id) {
  const Job* job = conductor_.queue().FindOrArray(job_id);
  if (job == nullptr) {
    co_return errors::NoSuchJob(job_id);
  }
  CO_ASSIGN_OR_RETURN(RunAs as, FindRunAs(job->status.account()));
  StagerOrder::Begin begin;
  begin.set_job_id(job_id);
  begin.set_home(as.home);
  *begin.mutable_root() = {settings_.rules.roots.begin(), settings_.rules.roots.end()};
  begin.set_cache_bytes(settings_.cache_bytes);
  if (const auto described = rsl::ParseAndDescribe(job->status.rsl(), {}); described.ok()) {
    CO_ASSIGN_OR_RETURN(const std::string cache, PlanCache(*described, as.home, settings_.rules));
    begin.set_cache(cache);
  }
  std::optional<RunAs> who;
  if (geteuid() == 0) {
    who = std::move(as);
  }
  co_return co_await StagerLink::Start(loop_, settings_.program, std::move(who), std::move(begin));
}

// What is not in the cache, in the order of the request.
awaitable<absl::StatusOr<std::vector<Staging::Missing>>> Staging::FindMissing(StagerLink& stager, std::string job_id) {
  const Job* job = Find(job_id);
  if (job == nullptr) {
    co_return std::vector<Missing>();
  }
  CO_ASSIGN_OR_RETURN(const std::vector<StageIn> plan, PlanOf(*job));
  std::map<int, Missing> wanted;
  for (const StageIn& item : plan) {
    if (item.file == kNotOfTheClient) {
      continue;
    }
    wanted[item.file] = {item.file, ContentOf(job->files[item.file]), item.source, 0};
  }
  StagerOrder order;
  order.mutable_look();
  for (const auto& [file, missing] : wanted) {
    *order.mutable_look()->add_content() = missing.content;
  }
  CO_ASSIGN_OR_RETURN(const StagerReply reply, co_await stager.Ask(std::move(order)));
  if (reply.looked().have_size() != int(wanted.size())) {
    co_return absl::UnavailableError("its stager answers another question");
  }
  std::vector<Missing> missing;
  int i = 0;
  for (auto& [file, entry] : wanted) {
    const StagerReply::Have& have = reply.looked().have(i++);
    if (!have.whole()) {
      entry.offset = have.offset();
      missing.push_back(std::move(entry));
    }
  }
  co_return missing;
}

// ---- In place

// Only one at a time for a job.
awaitable<void> Staging::Advance(std::string job_id, Seen seen) {
  while (advancing_.count(job_id) > 0) {
    co_await changed_.Wait();
  }
  absl::Status status;
  {
    const Turn turn(*this, advancing_, job_id);
    status = co_await Caught("staging job=" + job_id, TryAdvance(job_id, seen));
  }
  if (status.code() == absl::StatusCode::kUnavailable) {
    spdlog::error("cannot stage, trying again job={}: {}", job_id, Printable(Message(status)));
    conductor_.Change([&](Queue& queue) {
      return queue.OnStillStaging(job_id, kTryingAgain + Message(status), Conductor::NowMs());
    });
    if (const bool is_first = trying_again_.insert(job_id).second; is_first) {
      co_spawn(loop_, AdvanceLater(job_id), Logged("staging job=" + job_id));
    }
  } else if (!status.ok()) {
    conductor_.Change([&](Queue& queue) {
      return queue.OnStagingFailed(job_id, errors::CannotStage(status), Conductor::NowMs());
    });
  }
}

awaitable<void> Staging::AdvanceLater(std::string job_id) {
  co_await Sleep(loop_, settings_.try_again);
  trying_again_.erase(job_id);
  OnStaging(job_id);
}

// Whoever has sent the last file may go: nobody else would put them in place.
awaitable<void> Staging::AdvanceByItself(std::string job_id, Seen seen) {
  const auto end = std::make_shared<Event>(loop_);
  co_spawn(loop_, Advance(job_id, std::move(seen)), [end, job_id](const std::exception_ptr& thrown) {
    Logged("staging job=" + job_id)(thrown);
    end->Set();
  });
  co_await end->Wait();
}

awaitable<absl::Status> Staging::TryAdvance(std::string job_id, const Seen& seen) {
  const Job* job = Find(job_id);
  if (job == nullptr) {
    co_return absl::OkStatus();
  }
  Slot slot(*this, job->status.account());
  co_await slot.Take();
  CO_ASSIGN_OR_RETURN(const auto stager, co_await StartStager(job_id));
  absl::Status failure;
  for (;;) {
    CO_ASSIGN_OR_RETURN(const std::vector<Missing> missing, co_await FindMissing(*stager, job_id));
    job = Find(job_id);
    if (job == nullptr) {
      co_return absl::OkStatus();
    }
    if (!missing.empty()) {
      uint64_t bytes = 0;
      for (const Missing& file : missing) {
        bytes += file.content.size() - file.offset;
      }
      conductor_.Change([&](Queue& queue) {
        return queue.OnStillStaging(
            job_id, fmt::format("waits for {} of its user, {} bytes",
                                missing.size() == 1 ? "a file" : fmt::format("{} files", missing.size()), bytes),
            Conductor::NowMs());
      });
      co_return absl::OkStatus();
    }
    if (AwaitsCredential(*job)) {
      conductor_.Change([&](Queue& queue) {
        return queue.OnStillStaging(job_id, "waits for its user's credential: sekisho proxy refresh JOB",
                                    Conductor::NowMs());
      });
      co_return absl::OkStatus();
    }
    CO_RETURN_IF_ERROR(failure);  // all is there, and yet it could not be put in place
    CO_ASSIGN_OR_RETURN(const std::vector<StageIn> plan, PlanOf(*job));
    for (const StageIn& item : plan) {
      StagerOrder order = OrderFor(item, job->files, settings_.rules);
      const auto known = seen.find(order.place().content().sha256());
      if (order.has_place() && known != seen.end()) {
        *order.mutable_place()->mutable_seen() = known->second;
      }
      const bool is_elsewhere = order.has_fetch() || order.has_copy();
      const bool says_why = job->status.reason().starts_with(kTryingAgain);  // the server is away: said once
      if (is_elsewhere && !says_why) {
        conductor_.Change([&](Queue& queue) {
          return queue.OnStillStaging(job_id, "waits for " + item.source, Conductor::NowMs());
        });
      }
      failure = (co_await stager->Ask(std::move(order))).status();
      if (is_elsewhere && !failure.ok()) {
        co_return failure.code() == absl::StatusCode::kFailedPrecondition ? absl::UnavailableError(Message(failure))
                                                                         : failure;
      }
      job = Find(job_id);
      if (job == nullptr) {
        co_return absl::OkStatus();
      }
      if (!failure.ok()) {
        break;
      }
    }
    if (failure.ok()) {
      CO_RETURN_IF_ERROR(co_await MakeScratch(*stager, job_id));
      break;
    }
    // The cache may have lost it, or was spoilt: then it is asked for again.
  }
  conductor_.Change([&](Queue& queue) { return queue.OnStagedIn(job_id, Conductor::NowMs()); });
  co_return absl::OkStatus();
}

awaitable<absl::Status> Staging::MakeScratch(StagerLink& stager, std::string job_id) {
  const Job* job = Find(job_id);
  if (job == nullptr) {
    co_return absl::OkStatus();
  }
  CO_ASSIGN_OR_RETURN(const RunAs as, FindRunAs(job->status.account()));
  const auto described = rsl::ParseAndDescribe(job->status.rsl(), {});
  CHECK(described.ok());
  CO_ASSIGN_OR_RETURN(const std::string scratch, PlanScratch(*described, as.home, job_id, settings_.rules));
  if (scratch.empty()) {
    co_return absl::OkStatus();
  }
  StagerOrder order;
  order.mutable_make_directory()->set_path(scratch);
  CO_RETURN_IF_ERROR((co_await stager.Ask(std::move(order))).status());
  if (Find(job_id) == nullptr) {  // it ended meanwhile
    co_return co_await RemoveTree(stager, scratch);
  }
  co_return absl::OkStatus();
}

// ---- From the client

awaitable<absl::Status> Staging::Take(UploadCall& call, std::string job_id) {
  const NewestCall newest(takings_, loop_, job_id);
  const auto ended = co_await (TakeAll(call, job_id) || newest.UntilTakenOver());
  const absl::Status* taken = std::get_if<absl::Status>(&ended);
  co_return taken != nullptr ? *taken : errors::UploadTakenOver(job_id);
}

awaitable<absl::Status> Staging::TakeAll(UploadCall& call, std::string job_id) {
  Seen seen;
  if (const Job* job = Find(job_id)) {
    Slot slot(*this, job->status.account());
    co_await slot.Take();
    CO_ASSIGN_OR_RETURN(const auto stager, co_await StartStager(job_id));
    CO_ASSIGN_OR_RETURN(const std::vector<Missing> missing, co_await FindMissing(*stager, job_id));
    for (const Missing& file : missing) {
      call.Push(WantedReply(file.file, file.offset));
    }
    for (const Missing& file : missing) {
      CO_ASSIGN_OR_RETURN(seen[file.content.sha256()], co_await TakeFile(call, *stager, file, job_id));
    }
  }
  co_await AdvanceByItself(job_id, std::move(seen));
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr) {
    co_return errors::NoSuchJob(job_id);
  }
  if (const Job* staging = Find(job_id);
      staging != nullptr && !AwaitsCredential(*staging) && !staging->status.reason().starts_with(kTryingAgain)) {
    co_return absl::UnavailableError("the cache has lost a file");  // it is sent again
  }
  CO_RETURN_IF_ERROR(co_await conductor_.Durable());
  job = conductor_.queue().Find(job_id);
  if (job != nullptr && job->is_staging && IsFinal(job->status.state())) {  // it ended before they were in place
    co_return errors::NotStaging(job_id, StateName(job->status.state()) + ": " + job->status.reason());
  }
  co_await call.Drain();
  co_return absl::OkStatus();
}

// Has the stager been able to write all that it was told?
awaitable<absl::StatusOr<bool>> Staging::IsThere(StagerLink& stager, Content content, uint64_t size) {
  StagerOrder look;
  *look.mutable_look()->add_content() = std::move(content);
  CO_ASSIGN_OR_RETURN(const StagerReply reply, co_await stager.Ask(std::move(look)));
  co_return reply.looked().have_size() == 1 && (reply.looked().have(0).whole() || reply.looked().have(0).offset() >= size);
}

awaitable<absl::StatusOr<Stamp>> Staging::TakeFile(UploadCall& call, StagerLink& stager, const Missing& missing,
                                                   std::string job_id) {
  StagerOrder open;
  *open.mutable_open()->mutable_content() = missing.content;
  const auto opened = co_await stager.Ask(std::move(open));
  if (!opened.ok()) {
    co_return absl::IsUnavailable(opened.status()) ? opened.status() : errors::CannotTake(missing.source, opened.status());
  }
  uint64_t at = opened->opened().offset();
  if (at != missing.offset) {
    co_return absl::UnavailableError("an earlier call had more on its way");  // the next asks from there
  }
  uint64_t told = at;
  uint64_t seen = at;
  while (at < missing.content.size()) {
    if (at - seen >= kSeenEvery) {
      CO_ASSIGN_OR_RETURN(const bool is_all_there, co_await IsThere(stager, missing.content, at));
      if (!is_all_there) {
        break;  // it says why when it is asked to close
      }
      seen = at;
    }
    proto::UploadRequest request;
    const bool is_read = co_await call.Read(request);
    if (!is_read) {
      co_return absl::CancelledError("the client has gone");
    }
    if (!job_id.empty() && Find(job_id) == nullptr) {
      co_return errors::NotStaging(job_id, StateName(conductor_.queue().StatusOf(job_id).state()));
    }
    CO_RETURN_IF_ERROR(CheckPiece(request, missing.file, at, missing.content.size()));
    at += request.piece().data().size();
    StagerOrder order;
    order.set_data(std::move(*request.mutable_piece()->mutable_data()));
    CO_RETURN_IF_ERROR(co_await stager.Tell(std::move(order)));
    if (at - told >= kTakenEvery || at == missing.content.size()) {
      call.Push(TakenReply(missing.file, at));
      told = at;
    }
  }
  StagerOrder close;
  close.mutable_close();
  const auto closed = co_await stager.Ask(std::move(close));
  if (closed.status().code() == absl::StatusCode::kDataLoss) {
    co_return errors::OtherContent(missing.source, Message(closed.status()));
  }
  if (!closed.ok()) {
    co_return absl::IsUnavailable(closed.status()) ? closed.status() : errors::CannotTake(missing.source, closed.status());
  }
  if (!closed->closed().whole()) {
    co_return absl::UnavailableError("some of it is not there");  // it is sent again
  }
  co_return closed->closed().seen();
}

}  // namespace sekisho::qserver
