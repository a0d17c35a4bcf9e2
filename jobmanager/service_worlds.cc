// SPDX-License-Identifier: Apache-2.0
// The service's part about worlds: leading one, and being a part of one.
// docs/protocol/15-mpirun.md.
#include <algorithm>

#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "jobmanager/errors.h"
#include "jobmanager/part_check.h"
#include "jobmanager/service.h"

namespace sekisho::jobmanager {
namespace {

using asio::experimental::awaitable_operators::operator||;

constexpr std::chrono::seconds kInsideWithin{5};
constexpr int64_t kReadyMostMs = int64_t{30} * 24 * 3600 * 1000;

}  // namespace

grpc::ServerBidiReactor<proto::LeadRequest, proto::LeadUpdate>* Service::Lead(Context* context) {
  return rpc::Converse<proto::LeadRequest, proto::LeadUpdate>(
      loop_, [this, caller = CallerOf(*context)](LeadCall& call) { return DoLead(caller, call); });
}

awaitable<absl::Status> Service::DoLead(absl::StatusOr<Caller> caller, LeadCall& call) {
  CO_RETURN_IF_ERROR(caller.status());
  proto::LeadRequest request;
  const bool has_first = co_await call.Read(request);
  if (!has_first || !request.has_prepare()) {
    co_return errors::Malformed("a leader's preparation was expected");
  }

  // One that was cut off, or we were started again.
  if (const auto leader = leaders_.Find(request.prepare().world(), caller->subject)) {
    co_return co_await TellNews(leader, call);
  }

  // The key is made here and its secret half stays; the user names the open half in charters.
  const identity::LeaderKey key = identity::MakeLeaderKey();
  proto::LedWorld led;
  led.set_name(request.prepare().world());
  led.set_subject(caller->subject);
  led.set_secret(key.secret);
  led.set_open(key.open);
  proto::LeadUpdate prepared;
  prepared.mutable_prepared()->set_leader_key(key.open);
  call.Push(std::move(prepared));
  const bool has_second = co_await call.Read(request);
  if (!has_second || !request.has_begin()) {
    co_return errors::Malformed("the parts of a world were expected");
  }
  const int parts = request.begin().part_size();
  if (parts < 1 || parts > kPartsMost) {
    co_return errors::Malformed(fmt::format("a world has 1 to {} parts, saw {}", kPartsMost, parts));
  }
  for (int number = 0; number < parts; ++number) {
    CO_RETURN_IF_ERROR(CheckPart(request.begin().part(number), led.name(), number, request.begin().hold()));
  }
  proto::RequestBody first;
  first.ParseFromString(request.begin().part(0).submit().body());
  // Their clock need not be ours: it is a time from when it was signed.
  const int64_t ready_by_ms = first.submit().charter().ready_by_ms();
  if (first.time_ms() < 0 || ready_by_ms < first.time_ms()) {
    co_return errors::Malformed("the time in which its parts are to stand ready was expected");
  }
  const int64_t within_ms = ready_by_ms - first.time_ms();
  led.set_ready_by_ms(NowMs() + std::min(within_ms, kReadyMostMs));
  *led.mutable_begin() = std::move(*request.mutable_begin());

  // From here on the caller may go.
  CO_ASSIGN_OR_RETURN(const std::shared_ptr<Leader> leader,
                      co_await leaders_.Begin(std::move(led)));
  co_return co_await TellNews(leader, call);
}

// From the first on, to the last.
awaitable<absl::Status> Service::TellNews(std::shared_ptr<Leader> leader, LeadCall& call) {
  const auto changed = leader->changed();
  for (size_t next = 0;;) {
    if (next == leader->updates().size()) {
      co_await changed->Wait();
      continue;
    }
    proto::LeadUpdate update = leader->updates()[next++];
    const bool is_last = update.has_ended();
    call.Push(std::move(update));
    if (is_last) {
      co_await call.Drain();
      co_return absl::OkStatus();
    }
  }
}

grpc::ServerUnaryReactor* Service::Coallocate(Context* context,
                                              const proto::CoallocRequest* request,
                                              proto::CoallocReply* reply) {
  return rpc::Unary(
      loop_, context,
      [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
        CO_RETURN_IF_ERROR(caller.status());
        const auto leader = leaders_.Find(request->world(), caller->subject);
        if (leader == nullptr) {
          co_return errors::NoSuchWorld(request->world());
        }
        CO_RETURN_IF_ERROR(co_await Leader::Edit(leader, *request));
        *reply = leader->View();
        co_return absl::OkStatus();
      });
}

grpc::ServerBidiReactor<proto::PartDown, proto::PartUp>* Service::Part(Context* context) {
  return rpc::Converse<proto::PartDown, proto::PartUp>(
      loop_,
      [this, caller = CallerOf(*context, true)](PartCall& call) { return DoPart(caller, call); });
}

// Carries between the leader and the queue server, which alone judges what the leader may.
awaitable<absl::Status> Service::DoPart(absl::StatusOr<Caller> caller, PartCall& call) {
  CO_RETURN_IF_ERROR(caller.status());
  proto::PartDown first;
  const bool has_first = co_await call.Read(first);
  proto::RequestBody body;
  if (!has_first || !body.ParseFromString(first.submit().body()) || !body.submit().has_charter()) {
    co_return errors::Malformed("a part's submission with its charter was expected");
  }
  CO_ASSIGN_OR_RETURN(const proto::SubmitReply reply,
                      co_await jobs_.Submit(*caller, first.submit()));
  proto::PartUp up;
  *up.mutable_submitted() = reply;
  call.Push(std::move(up));

  // What follows is the queue server's to say.  A leader that hears nothing asks again, and gives up in the end.
  const auto submitted =
      co_await (jobs_.UntilSubmitted(reply.job_id()) || Sleep(loop_, kInsideWithin));
  if (submitted.index() == 0 && !std::get<0>(submitted)) {
    const proto::JobStatus* ended = jobs_.book().FindAny(reply.job_id());
    const std::string reason = ended != nullptr ? ended->reason() : "";
    co_return errors::AlreadyEnded(reply.job_id(), reason);
  }
  CO_RETURN_IF_ERROR(co_await jobs_.queue().Reach());
  if (submitted.index() != 0) {
    co_return errors::QueueServerLost(jobs_.here().site);
  }

  const auto inside = jobs_.queue().Part();
  proto::PartDown job;
  job.set_job_id(reply.job_id());
  inside->Push(std::move(job));
  const auto ended = co_await (PassOrders(call, inside) || PassReports(call, inside));
  co_return std::visit([](const absl::Status& status) { return status; }, ended);
}

awaitable<absl::Status> Service::PassOrders(PartCall& call, QueueServer::PartCall inside) {
  proto::PartDown down;
  for (;;) {
    const bool is_read = co_await call.Read(down);
    if (!is_read) {
      co_return absl::OkStatus();
    }
    inside->Push(std::move(down));
    co_await inside->Drain();
  }
}

awaitable<absl::Status> Service::PassReports(PartCall& call, QueueServer::PartCall inside) {
  proto::PartUp up;
  for (;;) {
    const bool is_read = co_await inside->Read(up);
    if (!is_read) {
      const absl::Status status = co_await inside->Finish();
      co_await call.Drain();
      co_return status.ok() || IsVerdict(status) ? status
                                                 : errors::QueueServerLost(jobs_.here().site);
    }
    call.Push(std::move(up));
    co_await call.Drain();
  }
}

grpc::ServerUnaryReactor* Service::Links(Context* context, const proto::LinksRequest* request,
                                         proto::LinksReply* reply) {
  return rpc::Unary(loop_, context,
                    [this, caller = CallerOf(*context), request, reply]() -> awaitable<absl::Status> {
                      CO_RETURN_IF_ERROR(caller.status());
                      if (jobs_.book().Find(request->job_id(), caller->subject) == nullptr) {
                        co_return errors::NoSuchJob(request->job_id());
                      }
                      CO_RETURN_IF_ERROR(co_await jobs_.queue().Reach());
                      CO_ASSIGN_OR_RETURN(*reply, co_await jobs_.queue().Links(*request));
                      co_return absl::OkStatus();
                    });
}

}  // namespace sekisho::jobmanager
