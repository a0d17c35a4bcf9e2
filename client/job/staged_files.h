// SPDX-License-Identifier: Apache-2.0
// The files of this machine that a job brings: docs/protocol/17-staging.md.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"
#include "rsl/job_description.h"

namespace sekisho::client {

using ClientFiles = google::protobuf::RepeatedPtrField<proto::RequestBody::ClientFile>;

// What the request says of them, each once.  Pure.
struct StagedSource {
  std::string url;  // as in the request
  std::string attribute;
  int gram_code = 0;
};
std::vector<StagedSource> StagedSources(const rsl::JobDescription& job);

// Where it is here: of client://PATH, or a path.
std::string LocalPath(const std::string& url);

// Reads each of them, for size and SHA-256.  InvalidArgument: one cannot be read, or is no file.
absl::StatusOr<ClientFiles> SumStagedFiles(const rsl::JobDescription& job);
absl::StatusOr<ClientFiles> SumStagedFiles(const std::string& rsl);  // of one job

// One file as it is now.
absl::StatusOr<proto::RequestBody::ClientFile> SumFile(const std::string& url);

// So that another command, run elsewhere, finds it too.
std::string FullPath(const std::string& path);

// "LOCAL" or "LOCAL=REMOTE" of --stage-in, as an element of file_stage_in.
std::string StageInPair(const std::string& option);

}  // namespace sekisho::client
