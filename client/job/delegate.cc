// SPDX-License-Identifier: Apache-2.0
#include "client/job/delegate.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "client/job/follow.h"
#include "client/job/job_text.h"
#include "client/job/look_up.h"
#include "client/site/harmless.h"
#include "client/site/reach_again.h"
#include "client/site/saved_request.h"
#include "client/site/site_call.h"
#include "common/identity/delegation.h"
#include "common/identity/der_chain.h"
#include "common/identity/describe.h"
#include "common/identity/proxy.h"
#include "common/job_state.h"

namespace sekisho::client {
namespace {

constexpr std::chrono::hours kAsLongAsItsIssuer{24 * 366 * 10};  // which no proxy outlives

identity::Time Now() { return std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now()); }

absl::Status NotItsKey(const std::string& site, const absl::Status& why) {
  return Refuse(absl::StatusCode::kPermissionDenied, 7,
                fmt::format("{}: no credential was given, the key that came may be somebody else's: {}", Harmless(site),
                            Harmless(Message(why))),
                "see \"queue_server\" of the site in sites.json; if that is right, warn the site's administrator");
}

absl::Status CannotSign(const absl::Status& why) {
  return Refuse(absl::StatusCode::kUnauthenticated, 7,
                fmt::format("your credential signs none for the job: {}", Harmless(Message(why))),
                "make another: sekisho proxy init; a job that waits for it gets it by sekisho proxy refresh JOB");
}

// Aborted: another key is offered by now.
bool IsWorthAnotherTry(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kAborted;
}

absl::StatusOr<std::string> SpeakerOf(const std::string& site) {
  ASSIGN_OR_RETURN(const Sites known, Sites::Load());
  const auto found = known.speakers().find(site);
  if (found == known.speakers().end()) {
    return Refuse(absl::StatusCode::kInvalidArgument, 0,
                  fmt::format("who may ask for a credential for {}'s jobs is not known", Harmless(site)),
                  fmt::format(R"(ask its administrator for the queue server's subject, and say "queue_server": "/O=.../CN=HOST" )"
                              "of {} in sites.json",
                              Harmless(site)));
  }
  return found->second;
}

absl::Status Check(const identity::Offer& offer, const std::string& job_id, const std::string& speaker) {
  ASSIGN_OR_RETURN(const std::string directory, identity::FindTrustDirectory());
  ASSIGN_OR_RETURN(const auto trust, identity::TrustStore::LoadFor(directory, offer.chain));
  return identity::CheckOffer(offer, job_id, speaker, *trust, Now());
}

absl::StatusOr<identity::Chain> Certify(const std::string& request_der, Delegation what) {
  ASSIGN_OR_RETURN(const identity::Credential credential, identity::LoadUserCredential());
  identity::ProxyOptions options;
  options.kind =
      what == Delegation::kFull ? identity::CredentialKind::kFullProxy : identity::CredentialKind::kLimitedProxy;
  const identity::Description own = identity::DescribeChain(credential.chain);
  if (what == Delegation::kFull && own.is_limited) {
    return absl::InvalidArgumentError("it is limited, and -D asks for a full one");
  }
  if (own.is_proxy) {
    options.life = kAsLongAsItsIssuer;  // else, of a user's own certificate, as `proxy init` makes them
  }
  return identity::AnswerDelegation(credential, request_der, options, Now());
}

// A job of ours all the same, but another one: it is not to have a credential that was meant for this.
absl::Status CheckIsOurs(const proto::SubmitReply& reply, const std::string& request_id) {
  ASSIGN_OR_RETURN(const identity::Credential credential, identity::LoadUserCredential());
  const std::string self = identity::DescribeChain(credential.chain).identity;
  return reply.job_id() == JobIdFor(reply.site(), self, request_id)
             ? absl::OkStatus()
             : NotItsKey(reply.site(), absl::PermissionDeniedError("it is offered for another job than the one submitted"));
}

}  // namespace

absl::Status CheckDelegation(const Session& session, Delegation what) {
  const std::string& site = session.target().site;
  return what == Delegation::kNone || site.empty() ? absl::OkStatus() : SpeakerOf(site).status();
}

awaitable<absl::StatusOr<proto::SignedRequest>> SignDelegate(Session& session, std::string site, std::string job_id,
                                                             Delegation what) {
  if (!session.target().site.empty()) {
    site = session.target().site;  // whoever answers us may name himself as he likes
  }
  CO_ASSIGN_OR_RETURN(const std::string speaker, SpeakerOf(site));
  proto::DelegationRequest request;
  request.set_job_id(job_id);
  const auto offered = co_await session.Call<proto::DelegationRequest, proto::DelegationOffer>(
      &Session::Async::Delegation, request);
  CO_RETURN_IF_ERROR(offered.status());
  identity::Offer offer{offered->request(), offered->signature(), {}, identity::Time(std::chrono::seconds(offered->made_s()))};
  absl::StatusOr<identity::Chain> chain =
      identity::ParseDerChain({offered->chain().begin(), offered->chain().end()});
  absl::Status judged = chain.status();
  if (judged.ok()) {
    offer.chain = *std::move(chain);
    judged = Check(offer, job_id, speaker);
  }
  if (!judged.ok()) {
    co_return NotItsKey(site, judged);
  }
  const absl::StatusOr<identity::Chain> answer = Certify(offer.request, what);
  if (!answer.ok()) {
    co_return CannotSign(answer.status());
  }
  proto::RequestBody body;
  body.mutable_delegate()->set_job_id(job_id);
  for (std::string& der : identity::ToDerChain(*answer)) {
    body.mutable_delegate()->add_chain(std::move(der));
  }
  co_return session.Sign(std::move(body));
}

awaitable<absl::Status> Delegate(Session& session, std::string site, std::string job_id, Delegation what,
                                 Patience patience) {
  Outage outage(patience.time);
  for (;;) {
    const auto request = co_await SignDelegate(session, site, job_id, what);
    absl::Status status = request.status();
    if (request.ok()) {
      const auto reply =
          co_await session.Call<proto::SignedRequest, proto::CommandReply>(&Session::Async::Command, *request);
      status = reply.status();
    }
    if (status.ok() || !IsWorthAnotherTry(status)) {
      co_return status;
    }
    if (!co_await MayTryAgain(session, outage, patience.reopens)) {
      co_return status;
    }
  }
}

// An earlier try, whose answer was lost, has given it one, and it is over by now.
awaitable<bool> HasHadOne(Session& session, std::string job_id, Patience patience) {
  Outage outage(patience.time);
  for (;;) {
    const auto job = co_await LookUp(session, job_id);
    if (job.ok()) {
      co_return IsFinal(job->state()) && job->credential_until_ms() > 0;
    }
    if (!IsWorthAnotherTry(job.status()) || !co_await MayTryAgain(session, outage, patience.reopens)) {
      co_return false;
    }
  }
}

awaitable<int> DelegateOrCancel(Session& session, proto::SubmitReply reply, std::string request_id, Delegation what,
                                Patience patience) {
  absl::Status status = CheckIsOurs(reply, request_id);
  if (status.ok()) {
    status = co_await Delegate(session, reply.site(), reply.job_id(), what, patience);
  }
  if (status.ok()) {
    co_return 0;
  }
  const bool may_be_over = status.code() == absl::StatusCode::kFailedPrecondition;
  if (may_be_over && co_await HasHadOne(session, reply.job_id(), patience)) {
    co_return 0;
  }
  const int code = Report(status);
  if (reply.is_repeat()) {
    co_return code;
  }
  const auto cancelled = co_await Cancel(session, reply.job_id());
  if (!cancelled.ok() && cancelled.status().code() != absl::StatusCode::kFailedPrecondition) {
    Report(cancelled.status());
  }
  co_return code;
}

awaitable<int> RefreshCredential(Session& session, std::string job_id, RefreshOptions options) {
  std::string site = session.target().site;
  if (site.empty()) {  // the job was named by its contact
    const auto info =
        co_await session.Call<proto::SiteRequest, proto::SiteInfo>(&Session::Async::Site, proto::SiteRequest());
    if (!info.ok()) {
      co_return Report(info.status());
    }
    site = info->site();
  }
  const Delegation what = options.is_full ? Delegation::kFull : Delegation::kLimited;
  absl::Status status;
  if (options.save_request.empty()) {
    const Patience patience{.reopens = true};
    status = co_await Delegate(session, site, job_id, what, patience);
  } else {
    const auto request = co_await SignDelegate(session, site, job_id, what);
    status = request.ok() ? SaveRequest(*request, options.save_request) : request.status();
  }
  co_return status.ok() ? 0 : Report(status);
}

void AddDelegateOptions(CLI::App& verb, DelegateOptions& options) {
  verb.add_flag("--delegate", options.is_wanted, "Give its tasks a credential of yours, limited, as X509_USER_PROXY");
  verb.add_flag("-D,--full-proxy", options.is_full, "The same, a full one: tasks may submit jobs by it");
}

void PrintWarnings(const proto::SubmitReply& reply) {
  for (const std::string& warning : reply.warning()) {
    fmt::print(stderr, "sekisho: warning: {}\n", Harmless(warning));
  }
}

std::string EndingText(const std::string& name, int64_t until_ms, int64_t now_ms) {
  const identity::Time until{std::chrono::seconds(until_ms / 1000)};
  const std::string when = until_ms > now_ms ? fmt::format("ends at {}, in {}", identity::FormatTime(until), Age(until_ms - now_ms))
                                             : fmt::format("ended at {}", identity::FormatTime(until));
  return fmt::format("the job's credential {}; the job goes on. Renew it: sekisho proxy refresh {} (-D: a full one)", when, name);
}

}  // namespace sekisho::client
