// SPDX-License-Identifier: Apache-2.0
// From a job's description to what the allocator is asked.  Pure.
#pragma once

#include <string>

#include "proto/allocation.pb.h"
#include "rsl/job_description.h"

namespace sekisho::qserver {

// `wall_time_max_s`: the site's limit for any job, 0 = none.
proto::Demand MakeDemand(const std::string& job_id, const rsl::JobDescription& job,
                         int64_t wall_time_max_s);

}  // namespace sekisho::qserver
