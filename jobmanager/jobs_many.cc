// SPDX-License-Identifier: Apache-2.0
// The jobs' work on many at a time: docs/protocol/18-arrays.md.  Nothing is recorded here before the queue server has
// said yes: who gets no answer asks again, and what was accepted meanwhile is found by its request id.
#include <fmt/format.h>

#include "common/job_state.h"
#include "common/log.h"
#include "jobmanager/errors.h"
#include "jobmanager/jobs.h"

namespace sekisho::jobmanager {
namespace {

using std::chrono::milliseconds;

constexpr int kManyMost = 10'000;
constexpr milliseconds kNewsTime{10'000};  // so long the events of what was accepted may take

}  // namespace

awaitable<absl::StatusOr<proto::ManyReply>> Jobs::SubmitMany(Caller caller, proto::SignedRequest request) {
  // Validate: the queue server judges each by itself.
  CO_ASSIGN_OR_RETURN(const proto::RequestBody body, ReadRequest(request, caller, here_));
  const int asked = body.submit_many().job_size();
  if (asked < 1 || asked > kManyMost) {
    co_return errors::Malformed(fmt::format("1 to {} submissions were expected, saw {}", kManyMost, asked));
  }

  // Act.
  const absl::Status reached = co_await queue_.Reach();
  if (!reached.ok()) {
    co_return errors::NothingSubmitted(reached);
  }
  auto reply = co_await queue_.SubmitMany(request);
  if (!reply.ok()) {
    co_return IsVerdict(reply.status()) ? reply.status() : errors::QueueServerLost(here_.site);
  }
  spdlog::info("jobs submitted count={} account={} peer={}", asked, caller.account, caller.peer);

  // Answer when their events have come: who asks for them now is to find them.
  const auto limit = std::chrono::steady_clock::now() + kNewsTime;
  for (const auto& each : reply->each()) {
    while (!each.is_refused() && !book_.Has(each.job_id()) && std::chrono::steady_clock::now() < limit) {
      co_await news_.WaitFor(milliseconds(1'000));
    }
  }
  trimmer_.Soon();
  co_return reply;
}

awaitable<absl::StatusOr<proto::ManyReply>> Jobs::CommandMany(Caller caller, proto::SignedRequest request) {
  CO_ASSIGN_OR_RETURN(const proto::RequestBody body, ReadRequest(request, caller, here_));
  const int asked = body.command_many().job_id_size();
  if (asked < 1 || asked > kManyMost) {
    co_return errors::Malformed(fmt::format("1 to {} jobs were expected, saw {}", kManyMost, asked));
  }
  CO_RETURN_IF_ERROR(co_await queue_.Reach());
  auto reply = co_await queue_.CommandMany(request);
  if (!reply.ok() && !IsVerdict(reply.status())) {
    co_return errors::QueueServerLost(here_.site);
  }
  co_return reply;
}

awaitable<void> Jobs::UntilMade(std::string job_id, std::string subject) {
  while (book_.IsUnmade(job_id, subject) && !IsFinal(book_.Status(job_id, subject).state())) {
    co_await news_.Wait();
  }
}

}  // namespace sekisho::jobmanager
