// SPDX-License-Identifier: Apache-2.0
// The service's part about jobs' credentials: docs/protocol/19-delegation.md.
#include "common/identity/proxy.h"
#include "common/log.h"
#include "qserver/credential_errors.h"
#include "qserver/errors.h"
#include "qserver/queue_service.h"
#include "qserver/staging.h"

namespace sekisho::qserver {
namespace {

proto::JobEvent::Delegated EventOf(const identity::Identity& who) {
  proto::JobEvent::Delegated delegated;
  delegated.set_until_ms(std::chrono::duration_cast<std::chrono::milliseconds>(who.not_after.time_since_epoch()).count());
  delegated.set_is_limited(who.is_limited);
  return delegated;
}

}  // namespace

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

// Fresh, by the job's owner, and for the key that stands: nobody else can make such a request, and nobody can send it
// again.
absl::StatusOr<identity::Credential> QueueService::JudgeDelegate(const Verified& verified,
                                                                 proto::JobEvent::Delegated& delegated) const {
  const proto::RequestBody::Delegate& delegate = verified.body.delegate();
  RETURN_IF_ERROR(CheckFresh(verified, rules_, judges_.now()));
  const Job* job = conductor_.queue().Find(delegate.job_id());
  if (job == nullptr) {
    return errors::NoSuchJob(Printable(delegate.job_id()));
  }
  const std::string& owner = job->status.subject();
  if (owner != verified.identity.subject) {
    return errors::NotYourJob(delegate.job_id());
  }
  RETURN_IF_ERROR(conductor_.queue().CheckDelegate(delegate.job_id()));
  if (offers_ == nullptr || staging_ == nullptr) {
    return errors::NoCredentialWanted(delegate.job_id());
  }
  ASSIGN_OR_RETURN(identity::Credential credential,
                   offers_->Answer(delegate.job_id(), {delegate.chain().begin(), delegate.chain().end()},
                                   judges_.now()));
  const absl::StatusOr<identity::Identity> who = judges_.chain(credential.chain);
  if (!who.ok()) {
    return errors::BadCredential(who.status());
  }
  if (who->subject != owner) {
    return errors::ForeignCredential(who->subject, owner);
  }
  delegated = EventOf(*who);
  return credential;
}

awaitable<absl::Status> QueueService::HandleDelegate(Verified verified, proto::CommandReply& reply) {
  // Validate.
  proto::JobEvent::Delegated delegated;
  CO_ASSIGN_OR_RETURN(const identity::Credential credential, JudgeDelegate(verified, delegated));
  const std::string job_id = verified.body.delegate().job_id();
  offers_->Spend(job_id);

  // Act.
  CO_RETURN_IF_ERROR(co_await staging_->PlaceCredential(job_id, identity::ProxyFileText(credential), delegated));
  spdlog::info("job has a credential job={} until={}", job_id, delegated.until_ms() / 1000);

  // Answer.
  reply.set_state(conductor_.queue().StatusOf(job_id).state());
  co_return absl::OkStatus();
}

}  // namespace sekisho::qserver
