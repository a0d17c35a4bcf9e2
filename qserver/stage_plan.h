// SPDX-License-Identifier: Apache-2.0
// Which files a job brings, and where they go: docs/protocol/17-staging.md.  Pure.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"
#include "rsl/outgoing.h"

namespace sekisho::qserver {

struct StagingRules {
  std::vector<std::string> roots;  // besides the account's home
  uint64_t file_bytes_max = 0;     // of one; 0 = any
};

using ClientFiles = google::protobuf::RepeatedPtrField<proto::RequestBody::ClientFile>;

inline constexpr int kNotOfTheClient = -1;

struct StageIn {
  std::string source;  // as the description says
  int file = 0;        // of the request's files; kNotOfTheClient: of a web server, or of the site
  std::string target;  // absolute
  uint32_t mode = 0;
  bool is_shared = false;
};

// The job's own directory.
std::string JobPlace(const std::string& home, const std::string& job_id);

// Of a path that a job names: relative ones are below its directory.
std::string AbsolutePath(const std::string& path, const rsl::JobDescription& job, const std::string& home);

// Where the job's credential is, in a directory of its own, and how its tasks are told so.
std::string CredentialDirectory(const std::string& home, const std::string& job_id);
std::string CredentialPlace(const std::string& home, const std::string& job_id);
void NameCredential(rsl::Spec& evaluated, const std::string& home, const std::string& job_id);

// Executable and standard input that are URLs become files of the job's own directory, and are staged in as others are.
// The description changes with the request.  Nothing to do: false.
bool LocalizeStaged(rsl::Spec& evaluated, const rsl::JobDescription& job, const std::string& home,
                    const std::string& job_id);

// Its files in the order of the text.  Refused: a source that is unknown, or not in the signed request; a path that is
// not allowed.
absl::StatusOr<std::vector<StageIn>> PlanStageIn(const rsl::JobDescription& job, const ClientFiles& files,
                                                 const std::string& home, const StagingRules& rules);

struct StageOut {
  int number = 0;  // rsl::Outgoing's
  std::string attribute;
  int stream = rsl::kNoStream;
  uint64_t position = 0;    // of the stream: a web server has what is before
  std::string source;       // absolute; where all of the stream is put together first
  std::string destination;  // as the description says
  std::string target;       // where it goes at the site; empty: to a web server
  bool is_kept = false;     // for the client, which fetches it
};

// Where what is kept for the client is; `number`: of rsl::OutgoingOf(), from 0.
std::string KeptPlace(const std::string& home, const std::string& job_id, int number);

// One for each of rsl::OutgoingOf().
absl::StatusOr<std::vector<StageOut>> PlanStageOut(const rsl::JobDescription& job, const std::string& home,
                                                   const std::string& job_id, const StagingRules& rules,
                                                   const rsl::Redirections& redirections = {});
// What is removed after it.
absl::StatusOr<std::vector<std::string>> PlanCleanUp(const rsl::JobDescription& job, const std::string& home,
                                                     const StagingRules& rules);
// Its own directory below scratch_dir; empty: it wants none.
absl::StatusOr<std::string> PlanScratch(const rsl::JobDescription& job, const std::string& home,
                                        const std::string& job_id, const StagingRules& rules);
// It has something to do after the run.
bool HasStageOut(const rsl::JobDescription& job);

}  // namespace sekisho::qserver
