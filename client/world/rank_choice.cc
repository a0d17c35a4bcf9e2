// SPDX-License-Identifier: Apache-2.0
#include "client/world/rank_choice.h"

#include <algorithm>
#include <map>
#include <numeric>

#include <fmt/format.h>

#include "rankmap/evaluate.h"
#include "rankmap/portfolio.h"

namespace sekisho::client {
namespace {

constexpr int64_t kUnitNs = 100;
constexpr double kUnitSeconds = 1e-7;
constexpr int64_t kPieceBytes = 64 << 10;  // a long message counts once more for each: the way's windows are about so long
constexpr double kNoise = 1.5;
constexpr double kGain = 0.98;  // less than that is not worth another order

// What two slots have in common: their node (inside it), or their sites.
struct Relation {
  bool is_one_node = false;
  std::pair<int, int> sites;
  auto operator<=>(const Relation&) const = default;
};

int64_t Middle(std::vector<int64_t> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

class Distances {
 public:
  Distances(const TrafficReport& report, const std::vector<int>& site_of_slot) : report_(report), sites_(site_of_slot) {
    std::map<Relation, std::vector<int64_t>> seen;
    for (int a = 0; a < int(sites_.size()); ++a) {
      for (int b = a + 1; b < int(sites_.size()); ++b) {
        if (const int64_t ns = Measured(a, b); ns > 0) {
          seen[Between(a, b)].push_back(ns);
        }
      }
    }
    for (auto& [relation, values] : seen) {
      middle_[relation] = Middle(std::move(values));
    }
  }

  int64_t Units(int a, int b) const {
    const Relation relation = Between(a, b);
    const int64_t middle = MiddleOf(relation);
    const int64_t ns = Measured(a, b);
    const bool is_noise = ns <= 0 || (double(ns) < double(middle) * kNoise && double(ns) * kNoise > double(middle));
    return std::max<int64_t>(Bounded(relation, is_noise ? middle : ns) / kUnitNs, 1);
  }

 private:
  Relation Between(int a, int b) const {
    return {report_.NodeOf(a) == report_.NodeOf(b), std::minmax(sites_[size_t(a)], sites_[size_t(b)])};
  }
  int64_t Measured(int a, int b) const { return report_.RoundTrip(report_.NodeOf(a), report_.NodeOf(b)); }
  int64_t MiddleOf(const Relation& relation) const {
    const auto found = middle_.find(relation);
    return found == middle_.end() ? 0 : found->second;
  }
  // On a busy machine a message inside a node may seem to take longer than one to another site.
  int64_t Bounded(const Relation& relation, int64_t ns) const {
    const bool is_one_site = relation.sites.first == relation.sites.second;
    for (const auto& [other, middle] : middle_) {
      const bool is_wider = (relation.is_one_node && !other.is_one_node) ||
                            (is_one_site && other.sites.first != other.sites.second);
      const bool is_met = other.sites.first == relation.sites.first || other.sites.second == relation.sites.first;
      ns = is_wider && is_met ? std::min(ns, middle) : ns;
    }
    return ns;
  }

  const TrafficReport& report_;
  const std::vector<int>& sites_;
  std::map<Relation, int64_t> middle_;
};

// Paper 000 counts messages; of long ones also their length tells.
absl::StatusOr<rankmap::Pattern> InPieces(const TrafficReport& report) {
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, report.pattern());
  std::vector<rankmap::Message> messages(pattern.messages().begin(), pattern.messages().end());
  for (rankmap::Message& message : messages) {
    message.count += message.bytes / kPieceBytes;
  }
  return rankmap::Pattern::Create(pattern.ranks(), std::move(messages));
}

}  // namespace

absl::StatusOr<rankmap::Network> SlotNetwork(const TrafficReport& report, const std::vector<int>& site_of_slot) {
  const int slots = report.ranks();
  if (slots > kOrderedRanksMax) {
    return absl::InvalidArgumentError(fmt::format("--rankmap auto is for up to {} ranks", kOrderedRanksMax));
  }
  const Distances distances(report, site_of_slot);
  std::vector<int64_t> table(size_t(slots) * size_t(slots));
  for (int a = 0; a < slots; ++a) {
    for (int b = 0; b < slots; ++b) {
      table[size_t(a) * size_t(slots) + size_t(b)] = a == b ? 0 : distances.Units(a, b);
    }
  }
  return rankmap::Network::MakeMatrix(slots, std::move(table));
}

absl::StatusOr<RankChoice> ChooseRanks(const TrafficReport& report, const std::vector<int>& site_of_slot,
                                       std::chrono::milliseconds time) {
  ASSIGN_OR_RETURN(const rankmap::Network network, SlotNetwork(report, site_of_slot));
  ASSIGN_OR_RETURN(const rankmap::Pattern pattern, InPieces(report));
  rankmap::SolveOptions options;
  options.objective = rankmap::Objective::kQap;
  RETURN_IF_ERROR(rankmap::CheckProblem(pattern, network, options.objective));
  const rankmap::Problem problem(pattern, network, options);
  rankmap::Portfolio portfolio(problem, 1, nullptr);
  const auto began = std::chrono::steady_clock::now();
  const auto clock = [began] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  rankmap::Limits limits;
  limits.until = std::chrono::duration<double>(time).count();
  portfolio.Run(limits, clock, [] { return false; }, [](const rankmap::Standing&) {});
  const rankmap::Placement as_named(network.slots());
  rankmap::Placement best = portfolio.best();
  RankChoice choice;
  choice.seconds_before = problem.Value(as_named) * kUnitSeconds;
  choice.seconds = problem.Value(best) * kUnitSeconds;
  if (choice.seconds >= kGain * choice.seconds_before) {  // keep the user's own
    best = as_named;
    choice.seconds = choice.seconds_before;
  }
  for (int slot = 0; slot < report.ranks(); ++slot) {
    choice.rank_of_slot.push_back(int(best.rank_in(uint32_t(slot))));
  }
  return choice;
}

}  // namespace sekisho::client
