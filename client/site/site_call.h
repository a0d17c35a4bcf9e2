// SPDX-License-Identifier: Apache-2.0
// What verbs that ask a site something have in common: resolve, connect, ask, print the error.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "client/site/session.h"

namespace sekisho::client {

// Opens a session with the site that `text` names and runs `ask` in it; errors are printed.
int WithSite(const std::string& text, const std::function<awaitable<int>(Session&)>& ask);

// The same for one that is resolved.
int WithTarget(const Target& target, const std::function<awaitable<int>(Session&)>& ask);

// The same for the site of a job.
int WithJob(const std::string& text,
            const std::function<awaitable<int>(Session&, const std::string& job_id)>& ask);

// For each job that is named, one after the other; the first exit code that is not 0.
int ForEachJob(const std::vector<std::string>& jobs,
               const std::function<awaitable<int>(Session&, const std::string& job_id)>& ask);

// Prints it to stderr; its exit code.
int Report(const absl::Status& error);

int64_t NowMs();

}  // namespace sekisho::client
