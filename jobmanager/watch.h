// SPDX-License-Identifier: Apache-2.0
// One client that looks on: a job's events and output, merged into one stream of updates.
#pragma once

#include <memory>

#include "common/rpc_server.h"
#include "jobmanager/jobs.h"
#include "proto/job_service.pb.h"

namespace sekisho::jobmanager {

// Until the job has ended and all was sent (or, without `follow`, all that there is).  The job must be the
// caller's.  `watcher` has seen the job's events from the first on, or is null: then they are read.
awaitable<absl::Status> ShowJob(Loop& loop, Jobs& jobs, rpc::Writer<proto::Update>& writer,
                                proto::AttachRequest request, std::shared_ptr<Watcher> watcher);

}  // namespace sekisho::jobmanager
