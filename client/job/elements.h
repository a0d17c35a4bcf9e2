// SPDX-License-Identifier: Apache-2.0
// Elements of arrays, as users name them: JOB[3-7] are five jobs.  Pure.
#pragma once

#include <string>
#include <vector>

#include "common/status.h"
#include "proto/job.pb.h"

namespace sekisho::client {

// Ends with [...]: an element, or several.
bool NamesElements(const std::string& job);

// Each of `jobs`, or the elements that it names, in their order.
absl::StatusOr<std::vector<std::string>> ExpandElements(const std::vector<std::string>& jobs);

// The ids of all elements of an array.
std::vector<std::string> ElementIds(const proto::JobStatus& array);

}  // namespace sekisho::client
