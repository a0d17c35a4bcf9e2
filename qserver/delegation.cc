// SPDX-License-Identifier: Apache-2.0
#include "qserver/delegation.h"

#include "common/log.h"
#include "qserver/credential_errors.h"
#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

proto::JobEvent::Delegated EventOf(const identity::Identity& who) {
  proto::JobEvent::Delegated delegated;
  delegated.set_until_ms(std::chrono::duration_cast<std::chrono::milliseconds>(who.not_after.time_since_epoch()).count());
  delegated.set_is_limited(who.is_limited);
  return delegated;
}

}  // namespace

absl::StatusOr<Delegated> JudgeDelegate(const Verified& verified, DelegationCourt court, identity::Time now) {
  const proto::RequestBody::Delegate& delegate = verified.body.delegate();
  RETURN_IF_ERROR(CheckFresh(verified, court.rules, now));
  const std::string& owner = verified.identity.subject;
  if (court.queue.FindOrArray(delegate.job_id(), owner) == nullptr) {
    return errors::NoSuchJob(Printable(delegate.job_id()));
  }
  RETURN_IF_ERROR(court.queue.CheckDelegate(delegate.job_id()));
  ASSIGN_OR_RETURN(
      identity::Credential credential,
      court.offers.Answer(delegate.job_id(), {delegate.chain().begin(), delegate.chain().end()}, now));
  const absl::StatusOr<identity::Identity> who = court.judge_chain(credential.chain);
  if (!who.ok()) {
    return errors::BadCredential(who.status());
  }
  if (who->subject != owner) {
    return errors::ForeignCredential(who->subject, owner);
  }
  return Delegated{std::move(credential), EventOf(*who)};
}

}  // namespace sekisho::qserver
