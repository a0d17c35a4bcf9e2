// SPDX-License-Identifier: Apache-2.0
// What the queue server says of our jobs, beside what their events have told: docs/protocol/3-job-states.md,
// "Reconciliation".
#include <algorithm>

#include "common/job_state.h"
#include "common/log.h"
#include "jobmanager/errors.h"
#include "jobmanager/jobs.h"

namespace sekisho::jobmanager {
namespace {

constexpr size_t kAskedAtOnce = 1'000;

bool Agree(const proto::JobStatus& one, const proto::JobStatus& other) {
  return one.state() == other.state() && one.cancelling() == other.cancelling() && one.is_held() == other.is_held();
}

}  // namespace

awaitable<void> Jobs::Reconcile() {
  Behind fetched;  // since the last round
  for (;;) {
    const bool is_round = !co_await stands_.WaitFor(queue_.options().compare);
    if (is_round) {
      fetched.clear();
    }
    Behind behind = co_await Compare();
    if (behind.empty()) {
      continue;
    }
    co_await Sleep(loop_, queue_.options().settle);
    uint64_t after = book_.position();
    bool is_due = false;
    for (const auto& [id, last] : behind) {
      // Nothing of it has come meanwhile, and it was not asked for in vain: else a long stream would begin again and again.
      if (book_.LastSequence(id) == last && fetched.emplace(id, last).second) {
        spdlog::warn("events of a job are missing, asking for them again job={} after={}", id, last);
        after = std::min(after, last);
        is_due = true;
      }
    }
    if (is_due) {
      follow_after_ = after;
      queue_.FollowAnew();
    }
  }
}

// Which jobs stand elsewhere there.  Those that are not known there are ended: its database was lost, or put back
// from a copy.
awaitable<Jobs::Behind> Jobs::Compare() {
  Behind behind;
  const std::vector<std::string> alive = book_.AliveInside();
  for (size_t begin = 0; begin < alive.size(); begin += kAskedAtOnce) {
    std::vector<std::string> some(alive.begin() + long(begin),
                                  alive.begin() + long(std::min(alive.size(), begin + kAskedAtOnce)));
    const auto states = co_await queue_.States(std::move(some));
    if (!states.ok()) {
      break;  // asked again when the stream stands again
    }
    for (const proto::JobStatus& inside : states->job()) {
      const proto::JobStatus* job = book_.FindAny(inside.job_id());
      if (job == nullptr || IsFinal(job->state())) {
        continue;  // ended meanwhile
      }
      if (inside.state() == proto::UNKNOWN) {
        EndLost(inside.job_id());
      } else if (!Agree(*job, inside)) {
        behind[inside.job_id()] = book_.LastSequence(inside.job_id());
      }
    }
  }
  co_return behind;
}

void Jobs::EndLost(const std::string& job_id) {
  spdlog::error("the queue server has lost a job job={}", job_id);
  proto::JobEvent ended;
  ended.set_job_id(job_id);
  ended.set_time_ms(NowMs());
  ended.mutable_ended()->set_state(proto::FAILED);
  ended.mutable_ended()->set_gram_code(errors::kExecutionFailed);
  ended.mutable_ended()->set_reason("the queue server does not know this job any more: its database was lost, or "
                                "put back from a copy");
  ended.mutable_ended()->set_remedy("submit it again");
  Record(ended);
}

}  // namespace sekisho::jobmanager
