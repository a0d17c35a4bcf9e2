// SPDX-License-Identifier: Apache-2.0
// The queue's part about jobs whose files come first: docs/protocol/17-staging.md.
#include <vector>

#include "common/job_state.h"
#include "qserver/credential_errors.h"
#include "qserver/queue.h"
#include "qserver/staging_errors.h"

namespace sekisho::qserver {

std::vector<std::string> Queue::StagingJobs() const { return {staging_.begin(), staging_.end()}; }

Effects Queue::OnStillStaging(const std::string& job_id, const std::string& reason, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job != nullptr && job->is_staging && !IsFinal(job->status.state()) && job->status.reason() != reason) {
    proto::JobEvent staging;
    staging.mutable_staging_in()->set_reason(reason);
    Emit(*job, std::move(staging), now_ms, effects);
  }
  return effects;
}

Effects Queue::OnStagedIn(const std::string& job_id, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job != nullptr && job->is_staging && !IsFinal(job->status.state())) {
    proto::JobEvent staged;
    staged.mutable_staged_in();
    Emit(*job, std::move(staged), now_ms, effects);
    if (!job->waits_for.empty()) {
      proto::JobEvent waiting;
      waiting.mutable_waiting()->set_reason(WhyItWaits(*job));
      Emit(*job, std::move(waiting), now_ms, effects);
    }
    effects.is_pass_due = !job->has_engine;
  }
  return effects;
}

Effects Queue::OnStagingFailed(const std::string& job_id, const absl::Status& why, int64_t now_ms) {
  Effects effects;
  EndStaging(job_id, why, now_ms, effects);
  return effects;
}

void Queue::EndStaging(const std::string& job_id, const absl::Status& why, int64_t now_ms, Effects& effects) {
  Job* job = FindMutable(job_id);
  if (job != nullptr && job->is_staging && !IsFinal(job->status.state())) {
    proto::JobEvent::Ended ended;
    ended.set_state(proto::FAILED);
    ended.set_gram_code(GramCode(why) != 0 ? GramCode(why) : errors::kStageInFailed);
    ended.set_reason(Message(why));
    ended.set_remedy(Remedy(why));
    End(*job, std::move(ended), now_ms, effects);
  }
}

Effects Queue::EndUnstaged(int64_t wait_ms, int64_t now_ms) {
  Effects effects;
  for (const std::string& job_id : StagingJobs()) {
    const Job* job = Find(job_id);
    if (job->status.submitted_ms() + wait_ms < now_ms) {
      const int64_t hours = wait_ms / 3'600'000;
      const bool lacks_credential = job->awaits_credential && job->credential_until_ms == 0;
      EndStaging(job_id, lacks_credential ? errors::CredentialDidNotCome(hours) : errors::FilesDidNotCome(hours), now_ms,
                 effects);
    }
  }
  return effects;
}

}  // namespace sekisho::qserver
