// SPDX-License-Identifier: Apache-2.0
// --many of run and submit.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "client/verbs/verbs.h"
#include "common/status.h"

namespace sekisho::client {

struct ManyVerb {
  std::string path;  // of the requests; "-": standard input
  std::string resource, request_id;
  bool is_json = false, is_quiet = false;
  bool waits = false;  // for the end of all, and fetches what they stage out
  std::chrono::seconds patience{0};
};

// InvalidArgument: of the options that were given one is not among those that go `with` --many.
absl::Status StandsAlone(const CLI::App& verb, const Invocation& invocation, const std::vector<std::string>& with);

int RunManyVerb(const ManyVerb& options);

}  // namespace sekisho::client
