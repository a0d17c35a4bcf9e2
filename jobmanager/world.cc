// SPDX-License-Identifier: Apache-2.0
#include "jobmanager/world.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/job_state.h"
#include "common/refusal.h"

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

proto::Order World::OrderTo(int part) const {
  proto::Order order;
  order.set_world(name_);
  order.set_job_id(parts_[part].job_id);
  return order;
}

World::Effects World::OnSubmitted(int part, const std::string& job_id) {
  Effects effects;
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
  end.set_reason(
      fmt::format("part {} at {} was refused: {}", part, parts_[part].site, Message(refusal)));
  end.set_remedy(Remedy(refusal));
  Fail(std::move(end), part, effects);
  return effects;
}

World::Effects World::OnReport(int part, const proto::Report& report) {
  Effects effects;
  State& state = parts_[part];
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
      if (is_released_ && IsWhole()) {  // we were started again since
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
    effects.updates.emplace_back().mutable_released();
  }
  ToAll(effects);
  return effects;
}

bool World::IsWhole() const {
  return std::all_of(parts_.begin(), parts_.end(),
                     [](const State& each) { return each.ready.has_value(); });
}

// A node's ranks may stand anywhere in the order: its place is that of its part and in that.
std::vector<int> World::NodesOfRanks() const {
  std::vector<int> nodes;
  for (const State& each : parts_) {
    nodes.resize(nodes.size() + size_t(each.count));
  }
  int first = 0;
  int node = 0;
  for (const State& each : parts_) {
    int process = 0;
    for (const proto::Placement& place : each.ready->placement()) {
      for (int i = 0; i < place.processes() && process < each.count; ++i, ++process) {
        const size_t rank = size_t(each.ranks.empty() ? first + process : each.ranks[process]);
        if (rank < nodes.size()) {
          nodes[rank] = node;
        }
      }
      ++node;
    }
    first += each.count;
  }
  return nodes;
}

void World::ReleaseIfWhole(Effects& effects) {
  if (failure_ || is_released_ || !IsWhole()) {
    return;
  }
  const size_t size = ProcessMapping(NodesOfRanks()).size();
  const bool has_order = std::any_of(parts_.begin(), parts_.end(),
                                     [](const State& each) { return !each.ranks.empty(); });
  if (has_order && size > kMappingMost) {
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
  State& state = parts_[part];
  if (state.job_id.empty() || state.has_ended) {
    return effects;
  }
  if (failure_) {
    proto::Order order = OrderTo(part);
    order.mutable_cancel()->set_reason(failure_->reason());
    effects.orders.emplace_back(part, std::move(order));
    return effects;
  }
  if (is_released_ && IsWhole()) {
    proto::Order order = OrderTo(part);
    order.mutable_release()->set_process_mapping(ProcessMapping(NodesOfRanks()));
    effects.orders.emplace_back(part, std::move(order));
  }
  return effects;
}

void World::OnFence(int part, const proto::Fence& fence, Effects& effects) {
  if (failure_) {
    return;
  }
  Collective& collective = collectives_[fence.id()];
  const auto tell = [&](int to) {
    proto::Order order = OrderTo(to);
    order.mutable_fence()->set_id(fence.id());
    order.mutable_fence()->set_data(*collective.result);
    effects.orders.emplace_back(to, std::move(order));
  };
  if (collective.result) {
    tell(part);  // its connection broke, and it says it again
    return;
  }
  collective.given[part] = fence.data();
  if (collective.given.size() < parts_.size()) {
    return;
  }
  std::string& result = collective.result.emplace();
  for (const auto& [number, data] : collective.given) {
    result += data;
  }
  collective.given.clear();
  if (result.size() > kFenceMost) {
    proto::WorldEnded end;
    end.set_state(proto::FAILED);
    end.set_reason(fmt::format("the ranks exchange {} bytes at once, more than {}", result.size(),
                               kFenceMost));
    end.set_remedy("use fewer ranks");
    Fail(std::move(end), -1, effects);
    return;
  }
  for (int to = 0; to < int(parts_.size()); ++to) {
    tell(to);
  }
}

void World::OnRankFailed(int part, const proto::Report::RankFailed& failed, Effects& effects) {
  proto::WorldEnded end;
  *end.mutable_exit() = failed.exit();
  end.set_state(failed.exit().signal() != 0 || failed.exit().code() == 0 ? proto::FAILED
                                                                         : proto::DONE);
  end.set_reason(fmt::format(
      "rank {} on {} at {} {}", failed.rank(), failed.node(), parts_[part].site,
      failed.reason().empty() ? HowItEnded(failed.exit()) : "ended: " + failed.reason()));
  Fail(std::move(end), part, effects);
}

void World::OnEnded(int part, const proto::WorldEnded& ended, Effects& effects) {
  parts_[part].has_ended = true;
  if (ended.state() != proto::DONE || ended.exit().code() != 0 || !is_released_) {
    proto::WorldEnded end = ended;
    end.set_reason(fmt::format("part {} at {} ended: {}", part, parts_[part].site, ended.reason()));
    Fail(std::move(end), part, effects);
    return;
  }
  EndIfComplete(effects);
}

World::Effects World::Abort(const std::string& reason, const std::string& remedy) {
  Effects effects;
  proto::WorldEnded end;
  end.set_state(proto::FAILED);
  end.set_reason(reason);
  end.set_remedy(remedy);
  Fail(std::move(end), -1, effects);
  return effects;
}

World::Effects World::OnLost(int part, int seconds) {
  if (has_ended_ || parts_[part].has_ended || parts_[part].is_lost) {
    return {};
  }
  parts_[part].is_lost = true;
  return Abort(
      fmt::format("no word from {} for {} s", parts_[part].site, seconds),
      fmt::format("see what is wrong there: sekisho doctor {}; its ranks are ended once it is back",
                  parts_[part].site));
}

World::Effects World::OnLate(int seconds) {
  if (is_released_) {
    return {};
  }
  for (const State& state : parts_) {
    if (!state.ready) {
      return Abort(fmt::format("{} does not stand ready within {} s{}", state.site, seconds,
                               state.waiting.empty() ? "" : ": " + state.waiting),
                   "try again later, or with fewer ranks there");
    }
  }
  return {};
}

// The first failure counts; all other parts are told.
void World::Fail(proto::WorldEnded end, int except, Effects& effects) {
  if (!failure_ && !has_ended_) {
    failure_ = std::move(end);
    ToAll(effects, except);
  }
  EndIfComplete(effects);
}

void World::EndIfComplete(Effects& effects) {
  if (has_ended_ || std::any_of(parts_.begin(), parts_.end(), [](const State& part) {
        return !part.has_ended && !part.is_lost;
      })) {
    return;
  }
  has_ended_ = true;
  if (failure_) {
    end_ = *failure_;
  } else {
    end_.set_state(proto::DONE);
  }
  *effects.updates.emplace_back().mutable_ended() = end_;
}

}  // namespace sekisho::jobmanager
