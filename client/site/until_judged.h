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

template <typename Request, typename Reply>
using UnaryMethod = void (Session::Async::*)(grpc::ClientContext*, const Request*, Reply*,
                                             std::function<void(grpc::Status)>);
using Signed = std::function<absl::StatusOr<proto::SignedRequest>()>;

// What `make` makes, for each try again, over another connection each; Unavailable: nobody judged it in time.
template <typename Request, typename Reply>
awaitable<absl::StatusOr<Reply>> AskUntilJudged(Session& session, UnaryMethod<Request, Reply> method,
                                                std::function<absl::StatusOr<Request>()> make,
                                                std::chrono::seconds patience) {
  Outage outage(patience);
  for (;;) {
    CO_ASSIGN_OR_RETURN(const Request request, make());
    auto reply = co_await session.Call<Request, Reply>(method, request);
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

// A question, which changes nothing.
template <typename Request, typename Reply>
awaitable<absl::StatusOr<Reply>> Query(Session& session, UnaryMethod<Request, Reply> method, Request request) {
  std::function<absl::StatusOr<Request>()> same = [&request] { return absl::StatusOr<Request>(request); };
  co_return co_await AskUntilJudged(session, method, std::move(same), kCommandPatience);
}

// A command about a job that exists.  A queue server takes no signal that was signed before its start: each try is
// signed anew, and says the same.
awaitable<absl::StatusOr<proto::CommandReply>> Command(Session& session, proto::RequestBody body);

}  // namespace sekisho::client
