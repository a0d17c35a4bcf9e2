// SPDX-License-Identifier: Apache-2.0
// The queue's part about files that go out after the run: docs/protocol/17-staging.md.
#include "common/job_state.h"
#include "qserver/queue.h"

namespace sekisho::qserver {

std::vector<std::string> Queue::StagingOutJobs() const { return {staging_out_.begin(), staging_out_.end()}; }

Effects Queue::OnStagedOut(const std::string& job_id, proto::StagedFile file, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job != nullptr && job->is_staging_out && !IsFinal(job->status.state())) {
    proto::JobEvent staged;
    *staged.mutable_staged_out()->mutable_file() = std::move(file);
    Emit(*job, std::move(staged), now_ms, effects);
  }
  return effects;
}

Effects Queue::Redirect(const std::string& job_id, proto::JobEvent::Redirected redirected, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  const bool is_one = redirected.has_standard_output() || redirected.has_standard_error();
  if (job != nullptr && is_one && !IsFinal(job->status.state())) {
    proto::JobEvent event;
    *event.mutable_redirected() = std::move(redirected);
    Emit(*job, std::move(event), now_ms, effects);
  }
  return effects;
}

Effects Queue::OnStillStagingOut(const std::string& job_id, const std::string& reason, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job != nullptr && job->is_staging_out && !IsFinal(job->status.state()) && job->status.reason() != reason) {
    proto::JobEvent staging_out;
    staging_out.mutable_staging_out()->set_reason(reason);
    Emit(*job, std::move(staging_out), now_ms, effects);
  }
  return effects;
}

}  // namespace sekisho::qserver
