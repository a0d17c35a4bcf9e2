// SPDX-License-Identifier: Apache-2.0
// What a submission asks for, told from another under the same request id.  Pure.
#pragma once

#include <cstdint>
#include <string>

#include "proto/job.pb.h"

namespace sekisho {

// Of what the user has signed: a site makes other RSL of it.  The same in every version, as it is stored.
uint64_t AskedBy(const proto::RequestBody::Submit& submit);

// Of the job that came of it; of one of many, whose request another job keeps, as the queue server says.
uint64_t AskedBy(const proto::JobEvent::Submitted& submitted);

// What whoever sends a submission again is told beside the job's id.
std::string KnownAlready(const std::string& site, const std::string& job_id);

}  // namespace sekisho
