// SPDX-License-Identifier: Apache-2.0
#include "client/job/submitted.h"

#include <fmt/format.h>

#include "client/job/commit.h"
#include "client/job/upload.h"
#include "client/site/any_site.h"
#include "client/site/reach_again.h"
#include "client/site/site_call.h"

namespace sekisho::client {

absl::StatusOr<ClientFiles> PrepareJob(const Session& session, const std::string& rsl, Delegation delegation) {
  ASSIGN_OR_RETURN(ClientFiles files, SumStagedFiles(rsl));
  RETURN_IF_ERROR(CheckDelegation(session, delegation));
  return files;
}

bool IsLost(const absl::Status& status) {
  const bool may_be = status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded;
  return may_be && !IsRefusal(status);
}

awaitable<absl::StatusOr<proto::SubmitReply>> SendSubmission(Session& session, proto::SignedRequest request,
                                                             std::string request_id) {
  Outage outage(kSubmitPatience);
  for (;;) {
    auto reply = co_await session.Call<proto::SignedRequest, proto::SubmitReply>(&Session::Async::Submit, request);
    if (reply.ok() || !IsLost(reply.status())) {
      co_return reply;
    }
    if (outage.Begin(Outage::Clock::now())) {
      SayUnanswered(reply.status(), kSubmitPatience);
    }
    const absl::Status reached = co_await ReachAgain(session, outage, reply.status());
    if (!reached.ok()) {
      co_return StillUnknown(reached, request_id);
    }
  }
}

absl::Status StillUnknown(const absl::Status& why, const std::string& request_id) {
  return Refuse(why.code(), GramCode(why), Message(why),
                fmt::format("to go on, without a job made twice: the same command with --request-id {}", request_id));
}

awaitable<int> GiveWhatItAwaits(Session& session, proto::SubmitReply reply, std::string request_id, Awaited awaited) {
  if (reply.dry_run()) {
    co_return 0;
  }
  if (awaited.commits && reply.commit_within_s() > 0) {
    const Patience patience{std::chrono::seconds(reply.commit_within_s()), true};
    const absl::Status committed = co_await Commit(session, reply.job_id(), patience);
    if (!committed.ok()) {
      co_return Report(committed);
    }
  }
  if (awaited.delegation != Delegation::kNone) {
    const Patience patience{.reopens = true};
    const int code = co_await DelegateOrCancel(session, reply, request_id, awaited.delegation, patience);
    if (code != 0) {
      co_return code;
    }
  }
  if (!awaited.files.empty()) {
    const UploadOptions options{.reopens = true, .bar = std::make_shared<TransferBar>(!awaited.is_quiet)};
    const absl::Status sent = co_await Upload(session, reply.job_id(), awaited.files, options);
    co_return sent.ok() ? 0 : Report(sent);
  }
  co_return 0;
}

}  // namespace sekisho::client
