// SPDX-License-Identifier: Apache-2.0
// The half of staging about jobs' credentials: a file of the account, from the delegation to the job's end.
// docs/protocol/19-delegation.md.
#include <algorithm>

#include "common/job_state.h"
#include "common/log.h"
#include "qserver/credential_errors.h"
#include "qserver/errors.h"
#include "qserver/staging.h"

namespace sekisho::qserver {
namespace {

constexpr int64_t kLookAgainMs = 3'600'000;

}  // namespace

awaitable<absl::Status> Staging::PlaceCredential(std::string job_id, std::string text,
                                                 proto::JobEvent::Delegated delegated) {
  while (giving_credential_.count(job_id) > 0) {  // one after the other: the last told is the one in place
    co_await changed_.Wait();
  }
  absl::Status kept;
  {
    const Turn turn(*this, giving_credential_, job_id);
    kept = co_await KeepCredential(job_id, std::move(text));
    if (kept.ok()) {
      conductor_.Change([&](Queue& queue) { return queue.OnDelegated(job_id, delegated, Conductor::NowMs()); });
    }
  }
  CO_RETURN_IF_ERROR(co_await conductor_.Durable());
  const absl::Status still = conductor_.queue().CheckDelegate(job_id);
  if (!still.ok()) {  // it ended meanwhile.  Also a stager that was killed may have put it in place
    OnCredentialUnneeded(job_id);
    co_return still;
  }
  if (!kept.ok()) {
    co_return errors::CredentialNotKept(kept);
  }
  if (Find(job_id) != nullptr) {
    OnStaging(job_id);
  }
  co_return absl::OkStatus();
}

awaitable<absl::Status> Staging::KeepCredential(std::string job_id, std::string text) {
  const Job* job = conductor_.queue().Find(job_id);
  if (job == nullptr) {
    co_return errors::NoSuchJob(job_id);
  }
  CO_ASSIGN_OR_RETURN(const RunAs as, FindRunAs(job->status.account()));
  Slot slot(*this, job->status.account(), Purpose::kCredential);
  co_await slot.Take();
  CO_ASSIGN_OR_RETURN(const auto stager, co_await StartStager(job_id));
  StagerOrder order;
  order.mutable_keep()->set_path(CredentialPlace(as.home, job_id));
  order.mutable_keep()->set_content(std::move(text));
  co_return (co_await stager->Ask(std::move(order))).status();
}

void Staging::OnCredentialUnneeded(const std::string& job_id) {
  co_spawn(loop_, RemoveCredential(job_id), Logged("removing the credential of job=" + job_id));
}

// As long as it could be of use to somebody.
awaitable<void> Staging::RemoveCredential(std::string job_id) {
  for (;;) {
    const Job* job = conductor_.queue().Find(job_id);
    if (job == nullptr) {
      co_return;
    }
    const absl::StatusOr<RunAs> as = FindRunAs(job->status.account());
    if (!as.ok()) {  // there is no such account any more
      co_return;
    }
    absl::Status status;
    {
      Slot slot(*this, job->status.account(), Purpose::kCredential);
      co_await slot.Take();
      const auto stager = co_await StartStager(job_id);
      status = stager.status();
      if (stager.ok()) {
        status = co_await RemoveTree(**stager, CredentialDirectory(as->home, job_id));
      }
    }
    if (status.ok()) {
      co_return;
    }
    spdlog::error("the credential of an ended job stays, trying again job={}: {}", job_id, Printable(Message(status)));
    co_await Sleep(loop_, settings_.try_again);
    const auto left = conductor_.queue().LeftCredentials(Conductor::NowMs());
    if (std::find(left.begin(), left.end(), job_id) == left.end()) {
      co_return;
    }
  }
}

awaitable<void> Staging::TellOfEndingCredentials() {
  const int64_t ahead_ms = settings_.credential_notice.count();
  for (;;) {
    const int64_t now_ms = Conductor::NowMs();
    const std::optional<int64_t> next = conductor_.queue().NextCredentialEnd();
    if (next && *next - ahead_ms <= now_ms) {
      conductor_.Change([&](Queue& queue) { return queue.TellOfEndingCredentials(ahead_ms, now_ms); });
      continue;
    }
    const int64_t wait_ms = next ? std::min(*next - ahead_ms - now_ms, kLookAgainMs) : kLookAgainMs;
    co_await conductor_.site_changed().WaitFor(std::chrono::milliseconds(wait_ms));
  }
}

}  // namespace sekisho::qserver
