// SPDX-License-Identifier: Apache-2.0
#include "client/job/commit.h"

#include <algorithm>

#include "client/site/site_call.h"

namespace sekisho::client {
namespace {

constexpr int kCommitRequest = 5;  // of GRAM's signals
constexpr std::chrono::milliseconds kPauseMin{200};
constexpr std::chrono::milliseconds kPauseMost{5'000};

// NotFound: the queue server may not have it yet.
bool IsWorthAnotherTry(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded ||
         status.code() == absl::StatusCode::kNotFound;
}

}  // namespace

awaitable<absl::Status> Commit(Session& session, std::string job_id, std::chrono::seconds within) {
  proto::RequestBody body;
  body.mutable_signal()->set_job_id(job_id);
  body.mutable_signal()->set_number(kCommitRequest);
  CO_ASSIGN_OR_RETURN(const proto::SignedRequest request, session.Sign(std::move(body)));
  const auto end = std::chrono::steady_clock::now() + within;
  for (auto pause = kPauseMin;; pause = std::min(pause * 2, kPauseMost)) {
    const auto reply = co_await session.Call<proto::SignedRequest, proto::CommandReply>(&Session::Async::Command, request);
    if (reply.ok() || !IsWorthAnotherTry(reply.status()) || std::chrono::steady_clock::now() + pause > end) {
      co_return reply.status();
    }
    co_await Sleep(session.loop(), pause);
  }
}

awaitable<void> CommitOrSay(Session& session, std::string job_id, std::chrono::seconds within) {
  const absl::Status status = co_await Commit(session, std::move(job_id), within);
  if (!status.ok()) {
    Report(status);
  }
}

}  // namespace sekisho::client
