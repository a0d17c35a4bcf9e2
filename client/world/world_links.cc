// SPDX-License-Identifier: Apache-2.0
#include "client/world/world_links.h"

#include <algorithm>
#include <sstream>

#include <fmt/format.h>

#include "client/job/job_text.h"

namespace sekisho::client {
namespace {

constexpr size_t kColumnsMax = 64;

struct Way {
  LinkWay way;
  const char* name;    // also as porters write it
  const char* letter;
};
constexpr Way kWays[] = {{LinkWay::kShared, "shared memory", "m"},
                         {LinkWay::kDirect, "direct", "d"},
                         {LinkWay::kReversed, "reversed", "v"},
                         {LinkWay::kRelayed, "relayed", "r"}};

// A rank and what it is known by to those who look for pairs.
struct Known {
  RankPlace place;
  size_t part = 0;
  bool has_porter = false;
  std::vector<std::pair<LinkWay, std::string>> made;  // to an address
};

// Who listens at an address: of overlapping sites several.
using Listeners = std::multimap<std::string, int>;

void ReadRecords(const std::string& text, int index, Known& rank, Listeners& listeners) {
  std::istringstream lines(text);
  for (std::string word, address; lines >> word >> address;) {
    if (word == "listens") {
      listeners.emplace(address, index);
    }
    for (const Way& way : kWays) {
      if (word == way.name) {
        rank.made.emplace_back(way.way, address);
      }
    }
  }
}

// Who was meant: a direct connection stays in its site, others leave it.  -1: no rank, or more than one.
int MeantBy(const std::vector<Known>& ranks, int from, LinkWay way, const std::string& address,
            const Listeners& listeners) {
  const auto is_near = [&](int rank) { return ranks[rank].place.site == ranks[from].place.site; };
  std::set<int> near, far;
  for (auto [at, end] = listeners.equal_range(address); at != end; ++at) {
    (is_near(at->second) ? near : far).insert(at->second);
  }
  const std::set<int>& first = way == LinkWay::kDirect ? near : far;
  const std::set<int>& second = way == LinkWay::kDirect ? far : near;
  const std::set<int>& meant = first.empty() ? second : first;
  return meant.size() == 1 ? *meant.begin() : -1;
}

std::string LettersOf(const WorldLinks& links, int one, int other) {
  const auto found = links.ways.find(std::minmax(one, other));
  std::string letters;
  for (const Way& way : kWays) {
    if (found != links.ways.end() && found->second.count(way.way) > 0) {
      letters += way.letter;
    }
  }
  return letters.empty() ? (one == other ? "." : "-") : letters;
}

}  // namespace

WorldLinks LinksOf(const std::vector<proto::LinksReply>& parts) {
  WorldLinks links;
  std::vector<Known> ranks;
  std::vector<const std::string*> records;
  for (size_t part = 0; part < parts.size(); ++part) {
    links.world = parts[part].world();
    links.is_cut = links.is_cut || parts[part].is_cut();
    for (const proto::LinksReply::Rank& rank : parts[part].rank()) {
      ranks.push_back({{rank.rank(), parts[part].site(), rank.node()}, part, parts[part].has_relay(), {}});
      records.push_back(&rank.records());
    }
  }
  Listeners listeners;
  for (size_t i = 0; i < ranks.size(); ++i) {
    ReadRecords(*records[i], int(i), ranks[i], listeners);
  }

  std::vector<int> order(ranks.size());
  for (size_t i = 0; i < order.size(); ++i) {
    order[i] = int(i);
  }
  std::sort(order.begin(), order.end(),
            [&](int a, int b) { return ranks[a].place.rank < ranks[b].place.rank; });
  std::vector<int> index_of(ranks.size());
  for (size_t i = 0; i < order.size(); ++i) {
    index_of[order[i]] = int(i);
    links.ranks.push_back(ranks[order[i]].place);
  }

  // Ranks of one part on one node have shared memory, whatever else they opened; without porters all others are
  // direct.
  const auto is_shared = [&](int a, int b) {
    return ranks[a].part == ranks[b].part && ranks[a].place.node == ranks[b].place.node;
  };
  for (int a = 0; a < int(ranks.size()); ++a) {
    for (int b = a + 1; b < int(ranks.size()); ++b) {
      if (is_shared(a, b)) {
        links.ways[std::minmax(index_of[a], index_of[b])] = {LinkWay::kShared};
      } else if (!ranks[a].has_porter && !ranks[b].has_porter) {
        links.ways[std::minmax(index_of[a], index_of[b])] = {LinkWay::kDirect};
      }
    }
    for (const auto& [way, address] : ranks[a].made) {
      const int b = MeantBy(ranks, a, way, address, listeners);
      if (b >= 0 && b != a && !is_shared(a, b)) {
        links.ways[std::minmax(index_of[a], index_of[b])].insert(way);
      }
    }
  }
  return links;
}

nlohmann::json ToJson(const WorldLinks& links) {
  nlohmann::json ranks = nlohmann::json::array();
  for (const RankPlace& place : links.ranks) {
    ranks.push_back({{"rank", place.rank}, {"site", place.site}, {"node", place.node}});
  }
  nlohmann::json pairs = nlohmann::json::array();
  for (const auto& [pair, ways] : links.ways) {
    nlohmann::json names = nlohmann::json::array();
    for (const Way& way : kWays) {
      if (ways.count(way.way) > 0) {
        names.push_back(way.name);
      }
    }
    pairs.push_back({{"between", {links.ranks[pair.first].rank, links.ranks[pair.second].rank}},
                     {"ways", std::move(names)}});
  }
  return {{"world", links.world}, {"ranks", ranks}, {"links", pairs}, {"is_cut", links.is_cut}};
}

std::string Describe(const WorldLinks& links) {
  const bool has_columns = links.ranks.size() <= kColumnsMax;
  std::vector<std::vector<std::string>> rows = {{"RANK", "SITE", "NODE"}};
  for (size_t i = 0; i < links.ranks.size(); ++i) {
    const RankPlace& place = links.ranks[i];
    if (has_columns) {
      rows[0].push_back(std::to_string(place.rank));
    }
    std::vector<std::string>& row =
        rows.emplace_back(std::vector<std::string>{std::to_string(place.rank), place.site, place.node});
    for (size_t j = 0; has_columns && j < links.ranks.size(); ++j) {
      row.push_back(LettersOf(links, int(i), int(j)));
    }
  }
  std::string text = Columns(std::move(rows));
  for (const Way& way : kWays) {
    const auto count = std::count_if(links.ways.begin(), links.ways.end(), [&](const auto& pair) {
      return pair.second.count(way.way) > 0;
    });
    text += fmt::format("{} {}: {} pair{}\n", way.letter, way.name, count, count == 1 ? "" : "s");
  }
  const auto met = size_t(std::count_if(links.ways.begin(), links.ways.end(),
                             [](const auto& pair) { return !pair.second.empty(); }));
  const size_t count = links.ranks.size();
  const size_t pairs = count == 0 ? 0 : count * (count - 1) / 2;
  text += fmt::format("- have not met: {} pair{}\n", pairs - met, pairs - met == 1 ? "" : "s");
  if (links.is_cut) {
    text += "there are more records than a site may send at once: some pairs are left out\n";
  }
  return text;
}

}  // namespace sekisho::client
