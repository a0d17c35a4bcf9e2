// SPDX-License-Identifier: Apache-2.0
// Many jobs at a time over one connection: docs/protocol/18-arrays.md.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "client/job/many_file.h"
#include "client/site/session.h"

namespace sekisho::client {

// An exit code for each job, in their order.
using Codes = std::vector<int>;
int FirstBad(const Codes& codes);  // the first that is not 0

struct ManyOptions {
  std::string file;        // its name, for messages
  std::string request_id;  // empty: a new one
  bool is_json = false;
  bool is_quiet = false;   // names are not printed
};
struct Submitted {
  std::string id;
  size_t index = 0;  // among those of the file
};
// Prints the jobs' names in the file's order; what is refused is said on standard error.  `submitted`: what was
// accepted.  The exit code: 0 if all were.
awaitable<int> SubmitMany(Session& session, const std::vector<OneOfFile>& jobs, const ManyOptions& options,
                          std::vector<Submitted>& submitted);

// Until all have ended; `changed`, if given, sees each status that comes.  A site that is lost is tried again for
// `patience`; then what is not known to have ended is unknown.
awaitable<Codes> WaitForAll(Session& session, std::vector<std::string> ids, std::chrono::seconds patience,
                            std::function<void(const proto::JobStatus&)> changed = nullptr);

// Their statuses, in their order.
awaitable<absl::StatusOr<std::vector<proto::JobStatus>>> StatusOfAll(Session& session, std::vector<std::string> ids);

// One signal to all (1 cancels); each refusal is said.
awaitable<Codes> SignalAll(Session& session, std::vector<std::string> ids, int number, std::string argument);

}  // namespace sekisho::client
