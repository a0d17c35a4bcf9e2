// SPDX-License-Identifier: Apache-2.0
// What each pair of a world's ranks used, from what the porters at its sites have recorded:
// docs/protocol/15-mpirun.md, "Links".  Pure.
#pragma once

#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "proto/links.pb.h"

namespace sekisho::client {

struct RankPlace {
  int rank = 0;
  std::string site;
  std::string node;
};

enum class LinkWay { kShared, kDirect, kReversed, kRelayed };

struct WorldLinks {
  std::string world;
  std::vector<RankPlace> ranks;  // by rank
  // By the indices of two ranks, the smaller first; empty or not there: they have not met.
  std::map<std::pair<int, int>, std::set<LinkWay>> ways;
  bool is_cut = false;  // a site has told less than it knows
};

// `parts`: the answers of all parts' sites, or of those that gave one.
WorldLinks LinksOf(const std::vector<proto::LinksReply>& parts);

// {"world", "ranks": [{"rank", "site", "node"}], "links": [{"between": [0, 2], "ways": ["relayed"]}],
// "is_cut"}.
nlohmann::json ToJson(const WorldLinks& links);

// A row a rank and, up to 64 of them, a column a rank; then how many pairs used which way.
std::string Describe(const WorldLinks& links);

}  // namespace sekisho::client
