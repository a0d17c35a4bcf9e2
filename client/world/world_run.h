// SPDX-License-Identifier: Apache-2.0
// A world from its submission to its end, as `sekisho mpirun` sees it: the first part's site leads,
// every part's output comes from its own site.  docs/protocol/15-mpirun.md.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "client/world/world_part.h"

namespace sekisho::client {

// A leader that is asked for before its parts are known: a round trip that passes while something else does.
struct Preparation;
std::shared_ptr<Preparation> PrepareLeader(Session& leader);

struct WorldOptions {
  std::string relay;  // "" if all parts are at one site
  std::string relay_site;
  bool encrypts = false;
  std::map<std::string, std::string> speakers;  // then: site -> subject of its queue server
  bool feeds_input = false;  // our standard input goes to rank 0
  bool tags_output = false;
  bool is_batch = false;  // leave once the leader has it
  bool is_held = false;   // it runs when its user says so later; leave as well
  bool is_verbose = false;
  std::chrono::seconds ready_within{300};
  std::shared_ptr<Preparation> prepared = nullptr;  // if its leader is the first part's site; for one world
  // Takes the ranks' output in place of the terminal; true: that is enough, the world is ended.
  std::function<bool(int rank, bool is_error, std::string_view data)> reads = nullptr;
};

// The exit code of the command; 0 also of one that was ended because enough was read.
awaitable<int> RunWorld(std::vector<WorldPart> parts, WorldOptions options);

// Of one that is led already, at the site of `leader`.  Parts without a session are not shown.
awaitable<int> FollowWorld(Session& leader, std::string world, std::vector<WorldPart> parts,
                           WorldOptions options);

}  // namespace sekisho::client
