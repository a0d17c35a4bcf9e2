// SPDX-License-Identifier: Apache-2.0
// Which files a job brings, and where they go: docs/protocol/17-staging.md.  Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"
#include "rsl/job_description.h"

namespace sekisho::qserver {

struct StagingRules {
  std::vector<std::string> roots;  // besides the account's home
  uint64_t file_bytes_max = 0;     // of one; 0 = any
};

using ClientFiles = google::protobuf::RepeatedPtrField<proto::RequestBody::ClientFile>;

struct StageIn {
  std::string source;  // as the description says
  int file = 0;        // of the request's files
  std::string target;  // absolute
  uint32_t mode = 0;
  bool is_shared = false;
};

// The job's own directory.
std::string JobPlace(const std::string& home, const std::string& job_id);

// Executable and standard input that are URLs become files of the job's own directory, and are staged in as others are.
// The description changes with the request.  Nothing to do: false.
bool LocalizeStaged(rsl::Spec& evaluated, const rsl::JobDescription& job, const std::string& home,
                    const std::string& job_id);

// Its files in the order of the text.  Refused: a source that is unknown, or not in the signed request; a path that is
// not allowed.
absl::StatusOr<std::vector<StageIn>> PlanStageIn(const rsl::JobDescription& job, const ClientFiles& files,
                                                 const std::string& home, const StagingRules& rules);

}  // namespace sekisho::qserver
