// SPDX-License-Identifier: Apache-2.0
// Requests that are made again until somebody has judged them: docs/operations/cli.md, "A connection that is lost".
#pragma once

#include <functional>

#include "client/site/reach_again.h"
#include "client/site/session.h"

namespace sekisho::client {

inline constexpr std::chrono::seconds kCommandPatience{20};

// Nobody has said yes or no.
bool IsUnjudged(const absl::Status& status);

using Signed = std::function<absl::StatusOr<proto::SignedRequest>()>;

// What `sign` makes, for each try again, over another connection each; Unavailable: nobody judged it in time.
template <typename Reply>
awaitable<absl::StatusOr<Reply>> AskUntilJudged(Session& session,
                                                void (Session::Async::*method)(grpc::ClientContext*,
                                                                               const proto::SignedRequest*, Reply*,
                                                                               std::function<void(grpc::Status)>),
                                                Signed sign, std::chrono::seconds patience) {
  Outage outage(patience);
  for (;;) {
    CO_ASSIGN_OR_RETURN(const proto::SignedRequest request, sign());
    auto reply = co_await session.Call<proto::SignedRequest, Reply>(method, request);
    if (reply.ok() || !IsUnjudged(reply.status())) {
      co_return reply;
    }
    if (outage.Begin(Outage::Clock::now())) {
      SayUnanswered(reply.status(), patience);
    }
    const absl::Status reached = co_await ReachAgain(session, outage, reply.status());
    CO_RETURN_IF_ERROR(reached);
  }
}

// A command about a job that exists.  A queue server takes no signal that was signed before its start: each try is
// signed anew, and says the same.
awaitable<absl::StatusOr<proto::CommandReply>> Command(Session& session, proto::RequestBody body);

}  // namespace sekisho::client
