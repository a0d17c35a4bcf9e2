// SPDX-License-Identifier: Apache-2.0
#include "client/site/until_judged.h"

namespace sekisho::client {

bool IsUnjudged(const absl::Status& status) {
  return status.code() == absl::StatusCode::kUnavailable || status.code() == absl::StatusCode::kDeadlineExceeded;
}

awaitable<absl::StatusOr<proto::CommandReply>> Command(Session& session, proto::RequestBody body) {
  Signed anew = [&session, &body] { return session.Sign(body); };
  co_return co_await AskUntilJudged(session, &Session::Async::Command, std::move(anew), kCommandPatience);
}

}  // namespace sekisho::client
