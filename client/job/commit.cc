// SPDX-License-Identifier: Apache-2.0
#include "client/job/commit.h"

#include "client/site/site_call.h"

namespace sekisho::client {
namespace {

constexpr int kCommitRequest = 5;  // of GRAM's signals

// NotFound: the queue server may not have it yet.
bool IsWorthAnotherTry(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kNotFound;
}

}  // namespace

awaitable<absl::Status> Commit(Session& session, std::string job_id, Patience patience) {
  Outage outage(patience.time);
  for (;;) {
    proto::RequestBody body;
    body.mutable_signal()->set_job_id(job_id);
    body.mutable_signal()->set_number(kCommitRequest);
    CO_ASSIGN_OR_RETURN(const proto::SignedRequest request, session.Sign(std::move(body)));
    const auto reply = co_await session.Call<proto::SignedRequest, proto::CommandReply>(&Session::Async::Command, request);
    if (reply.ok() || !IsWorthAnotherTry(reply.status()) || !co_await MayTryAgain(session, outage, patience.reopens)) {
      co_return reply.status();
    }
  }
}

awaitable<void> CommitOrSay(Session& session, std::string job_id, Patience patience) {
  const absl::Status status = co_await Commit(session, std::move(job_id), patience);
  if (!status.ok()) {
    Report(status);
  }
}

}  // namespace sekisho::client
