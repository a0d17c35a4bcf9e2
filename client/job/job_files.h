// SPDX-License-Identifier: Apache-2.0
// A job's directory, from here: docs/protocol/17-staging.md, "ls, get, put".
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "client/site/session.h"
#include "rsl/job_description.h"

namespace sekisho::client {

using FileAccess = proto::RequestBody::FileAccess;

awaitable<absl::StatusOr<std::vector<proto::FileEntry>>> ListFiles(Session& session, std::string job_id,
                                                                   std::string path);

struct DownloadOptions {
  std::chrono::seconds patience{300};  // as UploadOptions'
  bool is_quiet = false;               // no bar
};

// Into a file of this machine, written aside and renamed; into what is there and no file, as it comes; "-": standard
// output.  A lost link is made again, and goes on where it was; a file that has changed meanwhile is fetched anew, or
// refused if it cannot be.  Cancelled: by Ctrl-C; nothing is left then.  `access` says which: its read or kept.
awaitable<absl::Status> Download(Session& session, FileAccess access, std::string local, DownloadOptions options);

// Says why it could not be; its exit code.
int ReportFetch(const absl::Status& status);

// What a job has staged out for this machine: each file to where `rsl`, as it was submitted, says; the site's word for
// that does not count.
awaitable<absl::Status> FetchStagedOut(Session& session, const proto::JobStatus& job, std::string rsl,
                                       DownloadOptions options);
// The same of what a restart of ours has redirected to files of this machine.  False: the site keeps more for its user.
awaitable<absl::StatusOr<bool>> FetchRedirected(Session& session, const proto::JobStatus& job,
                                                const rsl::JobDescription& restart, DownloadOptions options);
// The same into a directory of this machine, under its own name, or NAME.NUMBER; a file alone to any place.
awaitable<absl::Status> FetchStagedOutInto(Session& session, const proto::JobStatus& job, std::string place,
                                           DownloadOptions options);

}  // namespace sekisho::client
