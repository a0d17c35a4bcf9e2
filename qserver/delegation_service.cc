// SPDX-License-Identifier: Apache-2.0
// The service's part about jobs' credentials: docs/protocol/19-delegation.md.
#include "common/identity/proxy.h"
#include "common/log.h"
#include "qserver/credential_errors.h"
#include "qserver/delegation.h"
#include "qserver/errors.h"
#include "qserver/queue_service.h"
#include "qserver/staging.h"

namespace sekisho::qserver {

grpc::ServerUnaryReactor* QueueService::Delegation(grpc::CallbackServerContext* context,
                                                   const proto::DelegationRequest* request,
                                                   proto::DelegationOffer* reply) {
  return rpc::Unary(loop_, context, [=, this] { return HandleDelegation(*context, *request, *reply); });
}

awaitable<absl::Status> QueueService::HandleDelegation(grpc::CallbackServerContext& context,
                                                       const proto::DelegationRequest& request,
                                                       proto::DelegationOffer& reply) {
  // Validate.  Whose job it is the answer tells: a public key is nobody's secret.
  CO_RETURN_IF_ERROR(FindFor(context, request.job_id()).status());
  CO_RETURN_IF_ERROR(conductor_.queue().CheckDelegate(request.job_id()));
  if (offers_ == nullptr || staging_ == nullptr) {
    co_return errors::NoCredentialWanted(request.job_id());
  }

  // Answer.
  CO_ASSIGN_OR_RETURN(reply, offers_->For(request.job_id(), judges_.now()));
  co_return absl::OkStatus();
}

awaitable<absl::Status> QueueService::HandleDelegate(Verified verified, proto::CommandReply& reply) {
  // Validate.
  const std::string job_id = verified.body.delegate().job_id();
  if (offers_ == nullptr || staging_ == nullptr) {
    co_return errors::NoCredentialWanted(job_id);
  }
  const DelegationCourt court{conductor_.queue(), *offers_, rules_, judges_.chain};
  CO_ASSIGN_OR_RETURN(const Delegated delegated, JudgeDelegate(verified, court, judges_.now()));
  offers_->Spend(job_id);

  // Act.
  CO_RETURN_IF_ERROR(co_await staging_->PlaceCredential(job_id, identity::ProxyFileText(delegated.credential), delegated.event));
  spdlog::info("job has a credential job={} until={}", job_id, delegated.event.until_ms() / 1000);

  // Answer.
  reply.set_state(conductor_.queue().StatusOf(job_id).state());
  co_return absl::OkStatus();
}

}  // namespace sekisho::qserver
