// SPDX-License-Identifier: Apache-2.0
#include "glue/facts.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace sekisho::glue {
namespace {

Fact FromNumber(std::optional<int64_t> number) { return number ? Fact(*number) : Fact(); }

template <typename Read>
std::vector<std::string> Words(const std::vector<const Environment*>& environments, Read read) {
  std::set<std::string> words;
  for (const Environment* environment : environments) {
    if (!read(*environment).empty()) {
      words.insert(read(*environment));
    }
  }
  return {words.begin(), words.end()};
}

// The most that any of them has.
template <typename Read>
Fact Most(const std::vector<const Environment*>& environments, Read read) {
  std::optional<int64_t> most;
  for (const Environment* environment : environments) {
    if (const std::optional<int64_t> value = read(*environment)) {
      most = std::max(most.value_or(0), *value);
    }
  }
  return FromNumber(most);
}
template <typename Read>
Fact Sum(const std::vector<const Environment*>& environments, Read read) {
  std::optional<int64_t> sum;
  for (const Environment* environment : environments) {
    if (const std::optional<int64_t> value = read(*environment)) {
      sum = sum.value_or(0) + *value;
    }
  }
  return FromNumber(sum);
}
// All of them are so.
template <typename Read>
Fact All(const std::vector<const Environment*>& environments, Read read) {
  bool is_all = true;
  for (const Environment* environment : environments) {
    const std::optional<bool> value = read(*environment);
    if (!value) {
      return {};
    }
    is_all &= *value;
  }
  return environments.empty() ? Fact() : Fact(is_all);
}

}  // namespace

Facts FactsOf(const Offer& offer, const Share& share, int64_t now_s) {
  const std::vector<const Environment*> environments = offer.Of(share);
  Facts facts;
  facts["site"] = std::vector<std::string>{offer.site};
  facts["contact"] = std::vector<std::string>{offer.contact};
  facts["service"] = std::vector<std::string>{share.service};
  facts["queue"] = std::vector<std::string>{share.queue};
  facts["health"] = std::vector<std::string>{offer.health};
  facts["state"] = std::vector<std::string>{share.serving_state};
  facts["mpi"] = offer.mpi;
  facts["freeslots"] = FromNumber(share.free_slots);
  facts["usedslots"] = FromNumber(share.used_slots);
  facts["slotsperjob"] = FromNumber(share.slots_per_job);
  facts["running"] = FromNumber(share.running);
  facts["waiting"] = FromNumber(share.waiting);
  facts["walltime"] = FromNumber(share.wall_time_max_s);
  facts["wait"] = FromNumber(share.wait_s);
  facts["age"] = Fact(offer.created_s == 0 ? int64_t{0} : now_s - offer.created_s);
  facts["totalslots"] = Sum(environments, [](const Environment& e) { return e.total_slots; });
  facts["nodes"] = Sum(environments, [](const Environment& e) { return e.nodes; });
  facts["clock"] = Most(environments, [](const Environment& e) { return e.clock_mhz; });
  facts["memory"] = Most(environments, [](const Environment& e) { return e.memory_mb; });
  facts["arch"] = Words(environments, [](const Environment& e) { return e.platform; });
  facts["os"] = Words(environments, [](const Environment& e) { return e.os; });
  facts["in"] = All(environments, [](const Environment& e) { return e.reached; });
  facts["out"] = All(environments, [](const Environment& e) { return e.reaches_out; });
  std::set<std::string> tags;
  for (const Environment* environment : environments) {
    tags.insert(environment->tags.begin(), environment->tags.end());
  }
  facts["tags"] = std::vector<std::string>(tags.begin(), tags.end());
  return facts;
}

const std::vector<std::string>& FactNames() {
  static const std::vector<std::string> names = [] {
    std::vector<std::string> found;
    for (const auto& [name, fact] : FactsOf({}, {}, 0)) {
      found.push_back(name);
    }
    return found;
  }();
  return names;
}

std::string ToText(const Fact& fact) {
  if (const auto* number = std::get_if<int64_t>(&fact)) return std::to_string(*number);
  if (const auto* truth = std::get_if<bool>(&fact)) return *truth ? "true" : "false";
  if (const auto* words = std::get_if<std::vector<std::string>>(&fact); words != nullptr && !words->empty()) {
    return fmt::format("{}", fmt::join(*words, ","));
  }
  return "not said";
}

}  // namespace sekisho::glue
