// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/world.h"

#include <algorithm>
#include <functional>

#include <fmt/format.h>

#include "common/job_state.h"
#include "common/part_name.h"
#include "common/refusal.h"
#include "jobmanager/mpi_versions.h"

namespace sekisho::jobmanager {
namespace {

constexpr size_t kFenceMost = 3 << 20;  // one message carries it
constexpr size_t kMappingMost = 1024;   // a value of PMI's

std::string HowItEnded(const proto::Exit& exit) {
  if (exit.signal() != 0) {
    return fmt::format("was killed by signal {}", exit.signal());
  }
  // Under a launcher of its own a signal looks like this.
  return exit.code() > 128 && exit.code() <= 128 + 64
             ? fmt::format("exited with code {} (signal {})", exit.code(), exit.code() - 128)
             : fmt::format("exited with code {}", exit.code());
}

}  // namespace

std::string ProcessMapping(const std::vector<int>& node_of_rank) {
  struct Block {
    int first = 0;
    int nodes = 1;
    int ranks = 0;  // of each
  };
  std::vector<Block> blocks;
  for (size_t rank = 0; rank < node_of_rank.size();) {
    Block block{node_of_rank[rank]};
    for (; rank < node_of_rank.size() && node_of_rank[rank] == block.first; ++rank) {
      ++block.ranks;
    }
    if (!blocks.empty() && blocks.back().first + blocks.back().nodes == block.first &&
        blocks.back().ranks == block.ranks) {
      ++blocks.back().nodes;
    } else {
      blocks.push_back(block);
    }
  }
  std::string mapping = "(vector";
  for (const Block& block : blocks) {
    mapping += fmt::format(",({},{},{})", block.first, block.nodes, block.ranks);
  }
  return mapping + ")";
}

World::World(std::string name, const std::vector<Part>& parts, const std::set<int>& dropped,
             Hold hold)
    : name_(std::move(name)), hold_(hold) {
  for (const Part& part : parts) {
    Append(part);
    if (dropped.count(int(parts_.size()) - 1) > 0) {
      parts_.back().dropped = "it was dropped before the release";
    }
  }
}

void World::Append(const Part& part) {
  State& state = parts_.emplace_back();
  state.site = part.site;
  state.count = part.count;
  state.start = part.start;
  state.replaces = part.replaces;
  state.ranks = part.ranks;
  state.label = part.label;
  state.is_independent = part.is_independent;
  auto place = order_.end();
  if (part.replaces) {
    place = std::find(order_.begin(), order_.end(), *part.replaces);
  }
  order_.insert(place, int(parts_.size()) - 1);
}

std::string World::NameOf(int part) const {
  return fmt::format("{} at {}", PartName(part, parts_[part].label), parts_[part].site);
}

proto::Order World::OrderTo(int part) const {
  proto::Order order;
  order.set_world(name_);
  order.set_job_id(parts_[part].job_id);
  return order;
}

World::Effects World::OnSubmitted(int part, const std::string& job_id) {
  Effects effects;
  parts_[part].trouble.clear();
  if (parts_[part].job_id.empty()) {
    parts_[part].job_id = job_id;
    proto::LeadUpdate::Submitted& submitted = *effects.updates.emplace_back().mutable_submitted();
    submitted.set_part(part);
    submitted.set_job_id(job_id);
    submitted.set_site(parts_[part].site);
  }
  return effects;
}

World::Effects World::OnRefused(int part, const absl::Status& refusal) {
  Effects effects;
  if (parts_[part].has_ended) {
    return effects;
  }
  parts_[part].has_ended = true;
  proto::WorldEnded end;
  end.set_state(proto::FAILED);
  end.set_gram_code(GramCode(refusal));
  end.set_reason(fmt::format("{} was refused: {}", NameOf(part), Message(refusal)));
  end.set_remedy(Remedy(refusal));
  FailPart(part, std::move(end), effects);
  return effects;
}

World::Effects World::OnReport(int part, const proto::Report& report) {
  Effects effects;
  State& state = parts_[part];
  state.trouble.clear();
  if (has_ended_ || state.has_ended) {
    return effects;
  }
  switch (report.kind_case()) {
    case proto::Report::kWaiting:
      if (state.waiting != report.waiting().reason()) {
        state.waiting = report.waiting().reason();
        proto::LeadUpdate::Waiting& waiting = *effects.updates.emplace_back().mutable_waiting();
        waiting.set_part(part);
        waiting.set_reason(state.waiting);
      }
      break;
    case proto::Report::kReady:
      state.ready = report.ready();
      if (state.starts_alone() || state.dropped) {
        effects = OnConnected(part);
      } else if (is_released_ && IsWhole()) {  // we were started again since
        ToAll(effects);
      } else {
        ReleaseIfWhole(effects);
      }
      break;
    case proto::Report::kFence:
      OnFence(part, report.fence(), effects);
      break;
    case proto::Report::kFailed:
      OnRankFailed(part, report.failed(), effects);
      break;
    case proto::Report::kEnded:
      OnEnded(part, report.ended(), effects);
      break;
    default:
      break;
  }
  return effects;
}

World::Effects World::Release() {
  Effects effects;
  if (failure_ || has_ended_) {
    return effects;
  }
  if (!is_released_) {
    is_released_ = true;
    const std::vector<int> first = FirstRanks();
    effects.updates.emplace_back().mutable_released()->mutable_first_rank()->Add(first.begin(),
                                                                                 first.end());
  }
  ToAll(effects);
  return effects;
}

std::vector<int> World::FirstRanks() const {
  std::vector<int> first(parts_.size(), -1);
  int next = 0;
  for (const int part : order_) {
    if (parts_[part].is_member()) {
      first[part] = next;
      next += parts_[part].count;
    }
  }
  return first;
}

bool World::IsWhole() const {
  return std::all_of(parts_.begin(), parts_.end(), [](const State& each) {
    return !each.is_awaited() || each.ready.has_value();
  });
}

std::vector<int> World::Members(int part) const {
  std::vector<int> members;
  for (const int each : order_) {
    if (each == part || (!parts_[part].is_alone() && parts_[each].is_member())) {
      members.push_back(each);
    }
  }
  return members;
}

// The numbers of an order that its user gave stand in the charters.
proto::Order World::ReleaseOf(int part) const {
  proto::Order order = OrderTo(part);
  proto::Order::Release& release = *order.mutable_release();
  const std::vector<int> members = Members(part);
  release.set_process_mapping(ProcessMapping(NodesOfRanks(members)));
  if (!parts_[part].ranks.empty()) {
    return order;
  }
  for (const int each : members) {
    if (each == part) {
      release.set_first_rank(release.ranks());
    }
    release.set_ranks(release.ranks() + parts_[each].count);
  }
  return order;
}

// A node's ranks may stand anywhere in the order: its place is that of its part and in that.
std::vector<int> World::NodesOfRanks(const std::vector<int>& members) const {
  std::vector<int> nodes;
  for (const int each : members) {
    nodes.resize(nodes.size() + size_t(parts_[each].count));
  }
  int first = 0;
  int node = 0;
  for (const int each : members) {
    const State& part = parts_[each];
    int process = 0;
    for (const proto::Placement& place : part.ready->placement()) {
      const int before = process;
      for (int i = 0; i < place.processes() && process < part.count; ++i, ++process) {
        const size_t rank = size_t(part.ranks.empty() ? first + process : part.ranks[process]);
        if (rank < nodes.size()) {
          nodes[rank] = node;
        }
      }
      node += process > before ? 1 : 0;  // a mapping passes over none
    }
    first += part.count;
  }
  return nodes;
}

void World::ReleaseIfWhole(Effects& effects) {
  const bool is_any_awaited = std::any_of(parts_.begin(), parts_.end(), std::mem_fn(&State::is_awaited));
  if (!is_any_awaited || failure_ || is_released_ || hold_ == Hold::kHeld || !IsWhole()) {
    return;
  }
  const bool has_order = std::any_of(parts_.begin(), parts_.end(),
                                     [](const State& each) { return !each.ranks.empty(); });
  std::vector<int> members;
  std::copy_if(order_.begin(), order_.end(), std::back_inserter(members),
               [&](int part) { return parts_[part].is_member(); });
  const size_t size = has_order ? ProcessMapping(NodesOfRanks(members)).size() : 0;
  if (size > kMappingMost) {
    effects = Abort(fmt::format("the order of its ranks takes {} bytes to say, and MPI reads {}", size, kMappingMost),
                    "keep the ranks of a node together in --rankmap, or use fewer");
    return;
  }
  effects.is_release_due = true;
}

void World::ToAll(Effects& effects, int except) {
  for (int part = 0; part < int(parts_.size()); ++part) {
    if (part != except) {
      Effects one = OnConnected(part);
      std::move(one.orders.begin(), one.orders.end(), std::back_inserter(effects.orders));
    }
  }
}

World::Effects World::OnConnected(int part) {
  Effects effects;
  for (auto& [key, collective] : collectives_) {
    collective.told.erase(part);  // it says again what it gave
  }
  State& state = parts_[part];
  if (state.job_id.empty() || state.has_ended) {
    return effects;
  }
  if (failure_ || state.dropped) {
    proto::Order order = OrderTo(part);
    order.mutable_cancel()->set_reason(failure_ ? failure_->reason() : *state.dropped);
    effects.orders.emplace_back(part, std::move(order));
  } else if (state.starts_alone() ? state.ready.has_value() : is_released_ && IsWhole()) {
    effects.orders.emplace_back(part, ReleaseOf(part));
  }
  return effects;
}

// A part is told what all others gave as soon as they have: its own gift it knows.  So nobody waits for a round trip.
// An older queue server is told the whole.
void World::OnFence(int part, const proto::Fence& fence, Effects& effects) {
  if (failure_ || parts_[part].dropped) {
    return;
  }
  const std::vector<int> members = Members(part);
  Collective& collective = collectives_[{members.front(), fence.id()}];
  collective.given[part] = fence.data();
  if (const std::string mpi = MpiVersionIn(fence.data()); !mpi.empty()) {
    parts_[part].mpi = mpi;
  }
  if (collective.given.size() == members.size()) {
    WarnOfVersions(members, effects);
  }
  size_t size = 0;
  for (const auto& [number, data] : collective.given) {
    size += data.size();
  }
  if (size > kFenceMost) {
    proto::WorldEnded end;
    end.set_state(proto::FAILED);
    end.set_reason(fmt::format("the ranks exchange {} bytes at once, more than {}", size, kFenceMost));
    end.set_remedy("use fewer ranks");
    Fail(std::move(end), -1, effects);
    return;
  }
  for (const int to : members) {
    const bool adds_own = parts_[to].ready && parts_[to].ready->adds_own();
    const bool misses_own = adds_own && collective.given.count(to) == 0;
    const bool is_whole = collective.given.size() + misses_own == members.size();
    if (!is_whole || !collective.told.insert(to).second) {
      continue;
    }
    proto::Order order = OrderTo(to);
    order.mutable_fence()->set_id(fence.id());
    for (const auto& [number, data] : collective.given) {
      *order.mutable_fence()->mutable_data() += number != to || !adds_own ? data : "";
    }
    effects.orders.emplace_back(to, std::move(order));
  }
}

void World::WarnOfVersions(const std::vector<int>& members, Effects& effects) {
  std::set<std::pair<std::string, std::string>> versions;
  for (const int part : members) {
    if (!parts_[part].mpi.empty()) {
      versions.emplace(parts_[part].site, parts_[part].mpi);
    }
  }
  const std::string different = DifferentMpis(versions);
  if (different.empty() || std::exchange(has_warned_, true)) {
    return;
  }
  proto::LeadUpdate::Warning& warning = *effects.updates.emplace_back().mutable_warning();
  warning.set_text("the sites run different versions of MPI: " + different);
  warning.set_remedy("if ranks do not meet, or what they compute is wrong, that may be why");
}

void World::OnRankFailed(int part, const proto::Report::RankFailed& failed, Effects& effects) {
  proto::WorldEnded end;
  *end.mutable_exit() = failed.exit();
  end.set_state(failed.exit().signal() != 0 || failed.exit().code() == 0 ? proto::FAILED
                                                                         : proto::DONE);
  end.set_reason(fmt::format(
      "rank {} on {} at {} {}", failed.rank(), failed.node(), parts_[part].site,
      failed.reason().empty() ? HowItEnded(failed.exit()) : "ended: " + failed.reason()));
  FailPart(part, std::move(end), effects);
}

void World::OnEnded(int part, const proto::WorldEnded& ended, Effects& effects) {
  parts_[part].has_ended = true;
  const bool may_end = is_released_ || parts_[part].starts_alone();
  if (ended.state() != proto::DONE || ended.exit().code() != 0 || !may_end) {
    proto::WorldEnded end = ended;
    end.set_reason(fmt::format("{} ended: {}", NameOf(part), ended.reason()));
    FailPart(part, std::move(end), effects);
    return;
  }
  EndIfComplete(effects);
}

}  // namespace sekisho::jobmanager
