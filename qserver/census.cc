// SPDX-License-Identifier: Apache-2.0
#include "qserver/census.h"

#include <algorithm>

#include "common/identity/dn.h"
#include "common/job_state.h"
#include "qserver/engine.h"

namespace sekisho::qserver {
namespace {

constexpr double kWeightOfNewest = 0.1;

}  // namespace

std::string Census::ServiceOf(const proto::JobStatus& job) {
  const std::string service =
      IsEngineService(job.service()) ? std::string(kEngineService) : "jobmanager-agent";
  return job.queue().empty() ? service : service + "-" + job.queue();
}

void Census::Count(const proto::JobStatus& job, bool has_processors, int64_t time_ms, Mark& mark) {
  if (mark.share == nullptr) {
    mark.share = &shares_.try_emplace(ServiceOf(job)).first->first;
    mark.slots = std::max(1, job.count());
    mark.is_public = !public_subjects_.empty() && public_subjects_.count(identity::NormalizeDn(job.subject())) > 0;
  }
  Add(mark, -1);
  const Mark::As before = mark.as;
  const bool is_begun_array = job.has_array() && job.state() != proto::PENDING && job.state() != proto::UNSUBMITTED;
  mark.as = IsFinal(job.state()) || is_begun_array ? Mark::As::kNothing  // its elements speak for it
            : !has_processors                      ? Mark::As::kWaiting
            : job.state() == proto::SUSPENDED      ? Mark::As::kSuspended
                                                   : Mark::As::kRunning;
  Add(mark, +1);
  if (before == Mark::As::kWaiting && mark.as == Mark::As::kRunning) {
    Share& share = shares_[*mark.share];
    const double waited = double(std::max<int64_t>(0, time_ms - job.submitted_ms()));
    share.average_wait_ms = share.began++ == 0 ? waited
                                               : share.average_wait_ms +
                                                     kWeightOfNewest * (waited - share.average_wait_ms);
  }
  if (mark.is_public) {
    Show(job, mark);
  }
}

void Census::Show(const proto::JobStatus& job, const Mark& mark) {
  if (IsFinal(job.state())) {
    activities_.erase(job.job_id());
    return;
  }
  if (activities_.size() >= kPublicMost && activities_.count(job.job_id()) == 0) {
    return;
  }
  proto::ActivityState& activity = activities_[job.job_id()];
  activity.set_job_id(job.job_id());
  activity.set_subject(job.subject());
  activity.set_service(*mark.share);
  activity.set_queue(job.queue());
  activity.set_state(job.state());
  activity.set_slots(mark.slots);
  activity.set_submitted_ms(job.submitted_ms());
  activity.set_started_ms(job.started_ms());
}

void Census::Add(const Mark& mark, int sign) {
  Share& share = shares_[*mark.share];
  switch (mark.as) {
    case Mark::As::kNothing:
      break;
    case Mark::As::kWaiting:
      share.waiting += sign;
      share.slots_requested += sign * mark.slots;
      break;
    case Mark::As::kSuspended:
      share.suspended += sign;
      [[fallthrough]];
    case Mark::As::kRunning:
      share.running += sign;
      share.slots_used += sign * mark.slots;
      break;
  }
}

}  // namespace sekisho::qserver
