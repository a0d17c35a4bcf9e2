// SPDX-License-Identifier: Apache-2.0
// The options of run and submit that describe a job.
#pragma once

#include <string>
#include <vector>

#include "client/job/request.h"

namespace CLI {
class App;
}

namespace sekisho::client {

void AddJobOptions(CLI::App& verb, JobOptions& options);

// InvalidArgument if one of them is given: beside RSL it would be left out without a word.
absl::Status CheckNoneBesideRsl(const CLI::App& verb);

// A verb about jobs that exist.
CLI::App* JobVerb(CLI::App& app, const char* name, const char* help, std::vector<std::string>& jobs);

}  // namespace sekisho::client
