// SPDX-License-Identifier: Apache-2.0
// The options of run and submit that describe a job.
#pragma once

#include <CLI/CLI.hpp>

#include "client/request.h"

namespace sekisho::client {

void AddJobOptions(CLI::App& verb, JobOptions& options);

}  // namespace sekisho::client
