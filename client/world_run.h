// SPDX-License-Identifier: Apache-2.0
// A world from its submission to its end, as `sekisho mpirun` sees it: the first part's site leads,
// every part's output comes from its own site.  docs/protocol/15-mpirun.md.
#pragma once

#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "client/session.h"
#include "client/world_plan.h"

namespace sekisho::client {

struct WorldPart {
  RankRange ranks;
  Session* session = nullptr;  // of its site; parts of one site share it
  std::string site;
  std::string rsl;
};

struct WorldOptions {
  std::string relay;  // "" if all parts are at one site
  std::string relay_site;
  bool feeds_input = false;  // our standard input goes to rank 0
  bool tags_output = false;
  bool is_batch = false;  // leave once the leader has it
  bool is_verbose = false;
  std::chrono::seconds ready_within{300};
};

// The exit code of the command.
awaitable<int> RunWorld(std::vector<WorldPart> parts, WorldOptions options);

}  // namespace sekisho::client
