// SPDX-License-Identifier: Apache-2.0
// The service's part about leaders of worlds: docs/protocol/15-mpirun.md, "Orders and reports".
#include <asio/experimental/awaitable_operators.hpp>

#include "common/identity/leader_key.h"
#include "common/log.h"
#include "qserver/errors.h"
#include "qserver/queue_service.h"
#include "qserver/ranks.h"

namespace sekisho::qserver {
namespace {

constexpr size_t kLinksOfPartMost = 3 << 20;  // one message carries them

// Also when the call is cut and its coroutine is torn down: a leader that counts for ever would never be missed.
class Led {
 public:
  Led(Conductor& conductor, std::string job_id) : conductor_(conductor), job_id_(std::move(job_id)) {
    conductor_.SetLed(job_id_, true);
  }
  ~Led() { conductor_.SetLed(job_id_, false); }
  Led(const Led&) = delete;
  Led& operator=(const Led&) = delete;

 private:
  Conductor& conductor_;
  const std::string job_id_;
};

}  // namespace

using asio::experimental::awaitable_operators::operator||;

grpc::ServerBidiReactor<proto::PartDown, proto::PartUp>* QueueService::Part(
    grpc::CallbackServerContext* context) {
  return rpc::Converse<proto::PartDown, proto::PartUp>(
      loop_, [this, context](PartCall& call) { return HandlePart(*context, call); });
}

awaitable<absl::Status> QueueService::HandlePart(grpc::CallbackServerContext& context,
                                                 PartCall& call) {
  // Validate.
  CO_RETURN_IF_ERROR(judges_.caller(context).status());
  proto::PartDown first;
  const bool has_first = co_await call.Read(first);
  if (!has_first || !first.has_job_id()) {
    co_return errors::BadRequest("expected a job's id");
  }

  // Look up.
  const std::string job_id = first.job_id();
  CO_ASSIGN_OR_RETURN(const Job* job, FindFor(context, job_id));
  if (!job->charter()) {
    co_return errors::NotAPart(job_id);
  }

  // Act, until the job has ended or the leader has gone.
  const Led led(conductor_, job_id);
  const auto ended = co_await (TakeOrders(call, job_id) || SendReports(call, job_id));
  co_return std::visit([](const absl::Status& status) { return status; }, ended);
}

// Whoever carries them: what counts is the signature by the key that the user's charter names.
awaitable<absl::Status> QueueService::TakeOrders(PartCall& call, std::string job_id) {
  proto::PartDown down;
  for (;;) {
    const bool is_read = co_await call.Read(down);
    if (!is_read) {
      co_return absl::OkStatus();
    }
    const Job* job = conductor_.queue().Find(job_id);
    if (job == nullptr) {
      co_return errors::NoSuchJob(job_id);
    }
    const proto::SignedOrder& sent = down.order();
    proto::Order order;
    if (!identity::IsOrderSigned(sent.body(), sent.signature(), job->charter()->leader_key()) ||
        !order.ParseFromString(sent.body()) || order.job_id() != job_id ||
        order.world() != job->charter()->world()) {
      co_return errors::NotTheLeader(job_id);
    }
    absl::Status status;
    conductor_.Change([&](Queue& queue) {
      auto effects = queue.OnOrder(job_id, order, Conductor::NowMs());
      status = effects.status();
      return effects.ok() ? *std::move(effects) : Effects();
    });
    CO_RETURN_IF_ERROR(status);
  }
}

awaitable<absl::Status> QueueService::SendReports(PartCall& call, std::string job_id) {
  const auto changed = conductor_.JobSignal(job_id);
  call.Push(proto::PartUp());  // we are there, also if there is nothing to report
  for (size_t next = 0;;) {
    const Job* job = conductor_.queue().Find(job_id);
    if (job == nullptr) {
      co_return errors::NoSuchJob(job_id);
    }
    if (next == job->part->reports.size() || !conductor_.IsPublished(job_id)) {
      co_await changed->Wait();
      continue;
    }
    proto::PartUp up;
    *up.mutable_report() = job->part->reports[next++];
    const bool is_last = up.report().has_ended();
    call.Push(std::move(up));
    if (is_last) {
      co_await call.Drain();
      co_return absl::OkStatus();
    }
  }
}

grpc::ServerUnaryReactor* QueueService::Links(grpc::CallbackServerContext* context,
                                              const proto::LinksRequest* request,
                                              proto::LinksReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleLinks(*context, *request, *reply); });
}

// What ranks connected to, as their porters wrote it: read by nobody here.
awaitable<absl::Status> QueueService::HandleLinks(grpc::CallbackServerContext& context,
                                                  const proto::LinksRequest& request,
                                                  proto::LinksReply& reply) {
  // Look up.
  CO_ASSIGN_OR_RETURN(const Job* job, FindFor(context, request.job_id()));
  if (!job->charter()) {
    co_return errors::NotAPart(request.job_id());
  }

  // Answer.
  reply.set_world(job->charter()->world());
  reply.set_site(rules_.site);
  reply.set_has_relay(!job->charter()->relay().empty());
  *reply.mutable_part() = job->part->release.part();
  size_t bytes = 0;
  for (const proto::TaskStatus& task : job->status.task()) {
    proto::LinksReply::Rank& rank = *reply.add_rank();
    rank.set_rank(RankOf(*job->charter(), job->part->release, task.task()));
    rank.set_node(task.node());
    auto records =
        conductor_.spool().Read(request.job_id(), task.task(), Spool::kLinks, 0, Spool::kLinksMost);
    bytes += records.ok() ? records->size() : 0;
    if (bytes > kLinksOfPartMost) {
      reply.set_is_cut(true);
    } else if (records.ok()) {
      rank.set_records(*std::move(records));
    }
  }
  co_return absl::OkStatus();
}

}  // namespace sekisho::qserver
