// SPDX-License-Identifier: Apache-2.0
// Many jobs at a time over one connection: docs/protocol/18-arrays.md.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/session.h"

namespace sekisho::client {

// The requests of a file, one a line; blank lines and those that begin with # are none.  Pure.
// InvalidArgument "NAME:LINE: ...", if one of them describes no job.
struct OneOfFile {
  std::string rsl;
  int line = 0;
};
absl::StatusOr<std::vector<OneOfFile>> ParseMany(const std::string& text, const std::string& name);
// "-": standard input.
absl::StatusOr<std::vector<OneOfFile>> ReadMany(const std::string& path);

struct ManyOptions {
  std::string file;        // its name, for messages
  std::string request_id;  // empty: a new one
  bool is_json = false;
  bool is_quiet = false;   // names are not printed
};
// Prints the jobs' names in the file's order; what is refused is said on standard error.  `ids`: of those that were
// accepted.  The exit code: 0 if all were.
awaitable<int> SubmitMany(Session& session, const std::vector<OneOfFile>& jobs, const ManyOptions& options,
                          std::vector<std::string>& ids);

// Until all have ended; `changed`, if given, sees each status that comes.  The exit code of the first of them, in
// their order, that is not 0.
awaitable<int> WaitForAll(Session& session, std::vector<std::string> ids,
                          std::function<void(const proto::JobStatus&)> changed = nullptr);

// Their statuses, in their order.
awaitable<absl::StatusOr<std::vector<proto::JobStatus>>> StatusOfAll(Session& session, std::vector<std::string> ids);

// One signal to all (1 cancels).  The exit code of the first refusal; each is said.
awaitable<int> SignalAll(Session& session, std::vector<std::string> ids, int number, const std::string& argument);

// Jobs by the site that their names begin with; one connection a site.  The first exit code that is not 0.
int ForEachSite(const std::vector<std::string>& jobs,
                const std::function<awaitable<int>(Session&, std::vector<std::string>)>& ask);

}  // namespace sekisho::client
