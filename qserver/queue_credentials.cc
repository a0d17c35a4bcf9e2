// SPDX-License-Identifier: Apache-2.0
// The queue's part about jobs whose tasks have a credential of their user: docs/protocol/19-delegation.md.
#include "common/job_state.h"
#include "qserver/credential_errors.h"
#include "qserver/errors.h"
#include "qserver/queue.h"

namespace sekisho::qserver {
namespace {

// A credential that was put in place, and whose event was lost by a crash, is looked for so long.
constexpr int64_t kUntoldMs = 24 * 3'600'000;

}  // namespace

absl::Status Queue::CheckDelegate(const std::string& job_id) const {
  const Job* job = FindOrArray(job_id);
  if (job == nullptr) {
    return errors::NoSuchJob(job_id);
  }
  if (const auto element = SplitElementId(job_id)) {
    return errors::CredentialOfItsArray(job_id, element->first);
  }
  if (!job->awaits_credential) {
    return errors::NoCredentialWanted(job_id);
  }
  return IsFinal(job->status.state()) ? errors::NoCredentialAfter(job_id, StateName(job->status.state()))
                                      : absl::OkStatus();
}

Effects Queue::OnDelegated(const std::string& job_id, proto::JobEvent::Delegated delegated, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job != nullptr && !IsFinal(job->status.state())) {
    proto::JobEvent event;
    *event.mutable_delegated() = std::move(delegated);
    Emit(*job, std::move(event), now_ms, effects);
  }
  return effects;
}

void Queue::NoteCredential(Job& job, int64_t until_ms) {
  credentials_.erase({job.credential_until_ms, job.status.job_id()});
  job.credential_until_ms = until_ms;
  job.has_place = true;
  credentials_.emplace(until_ms, job.status.job_id());
}

Effects Queue::TellOfEndingCredentials(int64_t ahead_ms, int64_t now_ms) {
  Effects effects;
  while (!credentials_.empty() && credentials_.begin()->first - ahead_ms <= now_ms) {
    const auto [until_ms, job_id] = *credentials_.begin();
    proto::JobEvent event;
    event.mutable_credential_ending()->set_until_ms(until_ms);
    Emit(*FindMutable(job_id), std::move(event), now_ms, effects);
  }
  return effects;
}

std::optional<int64_t> Queue::NextCredentialEnd() const {
  return credentials_.empty() ? std::nullopt : std::optional(credentials_.begin()->first);
}

std::vector<std::string> Queue::LeftCredentials(int64_t now_ms) const {
  std::vector<std::string> jobs;
  for (const auto& [id, job] : jobs_) {
    const int64_t until_ms =
        job->credential_until_ms > 0 ? job->credential_until_ms : job->status.ended_ms() + kUntoldMs;
    if (job->awaits_credential && IsFinal(job->status.state()) && until_ms > now_ms) {
      jobs.push_back(id);
    }
  }
  return jobs;
}

}  // namespace sekisho::qserver
