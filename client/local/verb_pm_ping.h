// SPDX-License-Identifier: Apache-2.0
// sekisho pm ping: docs/operations/pm.md, "Looking and stopping".
#pragma once

#include <string>

#include "transport/pm/job_file.h"

namespace CLI {
class App;
}

namespace sekisho::client {

struct Invocation;

void AddPmPingVerb(CLI::App& pm, Invocation& invocation);

// HOST[:CTX]; an address of IPv6 that is followed by a context stands in brackets.
struct PmHost {
  std::string host;
  int context = -1;  // any
};
PmHost ParsePmHost(const std::string& text);

// The first node of the job at the host, or -1 and what is wrong.
int PmNodeAt(const pm::JobFile& job, const PmHost& at, std::string& wrong);

}  // namespace sekisho::client
