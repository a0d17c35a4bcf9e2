// SPDX-License-Identifier: Apache-2.0
// What a site's administrators ask: docs/protocol/5-queue.md, "Administration".
#include <fmt/format.h>

#include "common/log.h"
#include "qserver/errors.h"
#include "qserver/queue_service.h"

namespace sekisho::qserver {

grpc::ServerUnaryReactor* QueueService::Administer(grpc::CallbackServerContext* context,
                                                   const proto::QueueRequest* request,
                                                   proto::AdministerReply* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleAdminister(*context, *request, *reply); });
}

awaitable<absl::Status> QueueService::HandleAdminister(grpc::CallbackServerContext& context,
                                                       const proto::QueueRequest& request,
                                                       proto::AdministerReply& reply) {
  // Validate.
  CO_RETURN_IF_ERROR(JudgeCaller(context, request.account()));
  CO_ASSIGN_OR_RETURN(const Verified verified, judges_.request(request));
  if (!verified.body.administer().has_lost()) {
    co_return errors::BadRequest("expected what an administrator may ask");
  }
  CO_RETURN_IF_ERROR(CheckAdministrator(verified, rules_, judges_.now()));
  const std::string node = verified.body.administer().lost().node();
  const std::string& subject = verified.identity.subject;
  if (conductor_.nodes().count(node) > 0) {
    co_return errors::NodeIsThere(node);
  }

  // Act once: a recorded word must not end what runs there when the node has come back and gone again.
  CO_ASSIGN_OR_RETURN(const bool is_new, commands_.Accept(RequestOf(verified), "node " + node, judges_.now()));
  if (!is_new) {
    co_return absl::OkStatus();
  }
  const std::vector<std::string> jobs = conductor_.queue().JobsOn(node);
  spdlog::warn("node declared lost node={} by=\"{}\" jobs={}", Printable(node), Printable(subject), jobs.size());
  conductor_.Change([&](Queue& queue) {
    return queue.DeclareLost(node, fmt::format("node {} was declared lost by {}", node, subject), Conductor::NowMs());
  });

  // Answer.
  CO_RETURN_IF_ERROR(co_await conductor_.Durable());
  reply.mutable_job_id()->Assign(jobs.begin(), jobs.end());
  co_return absl::OkStatus();
}

}  // namespace sekisho::qserver
