// SPDX-License-Identifier: Apache-2.0
// The life of one job: state = fold(events).  docs/protocol/3-job-states.md.  Pure: no clock, no I/O.
#pragma once

#include <string>

#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho {

// Changes `status` by `event`.  FailedPrecondition, and no change, if the event cannot follow.
absl::Status Fold(const proto::JobEvent& event, proto::JobStatus& status);

// DONE, FAILED and CANCELLED: nothing follows.
bool IsFinal(proto::JobState state);

// GRAM's number for it: CANCELLED is FAILED (4) there.
int GramState(proto::JobState state);

// "PENDING", "CANCELLED", ...
std::string StateName(proto::JobState state);

// The same request always makes the same job, on every host that sees it: 13 characters of [a-z2-7],
// the first 65 bits of SHA-256 over site, subject and request id.
std::string JobIdFor(const std::string& site, const std::string& subject,
                     const std::string& request_id);
bool IsJobId(const std::string& text);  // of a job, or JOB[INDEX], an element of an array

// A job's exit as its tasks': the first that was not 0, by task number.
proto::Exit JobExit(const proto::JobStatus& status);

}  // namespace sekisho
