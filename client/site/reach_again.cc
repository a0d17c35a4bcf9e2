// SPDX-License-Identifier: Apache-2.0
#include "client/site/reach_again.h"

#include <fmt/format.h>

#include "client/site/harmless.h"
#include "common/refusal.h"

namespace sekisho::client {

awaitable<absl::Status> ReachAgain(Session& session, Outage& outage, absl::Status why, const bool& gives_up,
                                   Signal& woken) {
  for (;;) {
    const auto pause = outage.NextPause(Outage::Clock::now());
    if (pause.count() == 0) {
      co_return why;
    }
    co_await woken.WaitFor(pause);
    if (gives_up) {
      co_return absl::CancelledError("left");
    }
    const absl::Status opened = co_await session.OpenAgain();
    if (opened.code() != absl::StatusCode::kUnavailable) {
      co_return opened;
    }
    why = opened;
  }
}

awaitable<absl::Status> ReachAgain(Session& session, Outage& outage, absl::Status why) {
  const bool gives_up = false;
  Signal never(session.loop());
  co_return co_await ReachAgain(session, outage, std::move(why), gives_up, never);
}

awaitable<bool> MayTryAgain(Session& session, Outage& outage, bool reopens) {
  outage.Begin(Outage::Clock::now());
  const auto pause = outage.NextPause(Outage::Clock::now());
  if (pause.count() == 0) {
    co_return false;
  }
  co_await Sleep(session.loop(), pause);
  if (reopens) {
    (co_await session.OpenAgain()).IgnoreError();  // the call says why not
  }
  co_return true;
}

void SayLost(const std::string& what, std::chrono::seconds patience) {
  fmt::print(stderr, "sekisho: lost the connection to the site; {} goes on, trying for {} s to come back to it\n", what,
             patience.count());
}

void SayUnanswered(const absl::Status& why, std::chrono::seconds patience) {
  fmt::print(stderr, "sekisho: no answer yet, trying for {} s: {}\n", patience.count(), Harmless(Message(why)));
}

absl::Status NotReachedAgain(const std::string& what, const absl::Status& why, const std::string& remedy) {
  return Refuse(absl::StatusCode::kNotFound, GramCode(why),
                fmt::format("could not come back to {}; its state is not known: {}", what, Message(why)), remedy);
}

}  // namespace sekisho::client
