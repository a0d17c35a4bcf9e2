// SPDX-License-Identifier: Apache-2.0
// Sends a job the files that it waits for: docs/protocol/17-staging.md.
#pragma once

#include <chrono>
#include <memory>
#include <string>

#include "client/job/staged_files.h"
#include "client/job/transfer_bar.h"
#include "client/site/session.h"

namespace sekisho::client {

struct UploadOptions {
  std::chrono::seconds patience{300};  // so long a broken link is tried again without a byte getting through
  bool reopens = false;                // we make the connection again; else somebody else does
  std::shared_ptr<TransferBar> bar = nullptr;  // if one is to be shown, also of several uploads at once
};

// Done when all are there and the job is on its way, or is not to be had any more.
awaitable<absl::Status> Upload(Session& session, std::string job_id, ClientFiles files, UploadOptions options);

// One file into a job's directory, at `path`.
awaitable<absl::Status> PutFile(Session& session, std::string job_id, proto::RequestBody::ClientFile file,
                                std::string path, UploadOptions options);

// For a command that follows the job: what goes wrong is printed, and ends the job.  Its exit code; 0 if the job is over.
awaitable<int> UploadOrCancel(Session& session, std::string job_id, ClientFiles files, UploadOptions options);

}  // namespace sekisho::client
