// SPDX-License-Identifier: Apache-2.0
// The queue's part about parts of worlds: ranks stand ready, are released together, exchange what
// they need to find each other, and end together.  docs/protocol/15-mpirun.md.
#include <algorithm>

#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/queue.h"
#include "qserver/ranks.h"

namespace sekisho::qserver {
namespace {

constexpr char kOthers[] = "";  // no node of ours: what the other parts give, and the first of what is given
constexpr size_t kFenceMost = 3 << 20;  // of a part: one message carries it
// The leader gives up first: what it has released must not end as if it had not.
constexpr int64_t kLeaderFirstMs = 30'000;

constexpr int64_t kUnheardMs = 12'000;  // an agent that is restarted is back long before
constexpr int64_t kReturnMs = 60'000;   // all of a large site come back after our own restart

constexpr int kRanksMost = 1 << 27;  // of 1024 parts, 100,000 each

std::set<std::string> NodesOf(const Job& job) {
  std::set<std::string> nodes;
  for (const Task& task : job.tasks) {
    nodes.insert(task.node);
  }
  return nodes;
}

proto::ServerMessage ReleaseMessage(const Job& job) {
  proto::ServerMessage message;
  message.mutable_release()->set_job_id(job.status.job_id());
  message.mutable_release()->set_process_mapping(job.part->release.process_mapping());
  message.mutable_release()->set_first_rank(job.part->release.first_rank());
  message.mutable_release()->set_ranks(job.part->release.ranks());
  return message;
}

proto::ServerMessage ResultMessage(const Job& job, const std::string& id, const PartFence& fence) {
  proto::ServerMessage message;
  message.mutable_fence()->set_job_id(job.status.job_id());
  message.mutable_fence()->mutable_fence()->set_id(id);
  message.mutable_fence()->mutable_fence()->set_data(fence.result);
  return message;
}

}  // namespace

// To all nodes if `node` is empty.
void Queue::SendToRanks(const Job& job, const std::string& node,
                        const proto::ServerMessage& message, Effects& effects) const {
  for (const std::string& each : NodesOf(job)) {
    if (node.empty() || each == node) {
      effects.messages.push_back({each, message});
    }
  }
}

Effects Queue::OnReady(const std::string& node, const proto::TaskKey& key) {
  Effects effects;
  Job* job = FindMutable(key.job_id());
  if (job == nullptr || !job->charter() || !job->has_processors ||
      size_t(key.task()) >= job->tasks.size() || job->tasks[key.task()].node != node) {
    return effects;
  }
  if (job->part->is_released) {  // it has missed the word
    SendToRanks(*job, node, ReleaseMessage(*job), effects);
    return effects;
  }
  job->part->ready.insert(key.task());
  if (job->part->ready.size() == job->tasks.size()) {
    ReportReady(*job);
  }
  return effects;
}

Effects Queue::OnFence(const std::string& node, const proto::RankFence& given, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(given.job_id());
  if (job == nullptr || !job->charter() || !job->has_processors || job->status.cancelling()) {
    return effects;
  }
  const std::set<std::string> nodes = NodesOf(*job);
  const bool is_ours = node != kOthers;
  PartFence& fence = job->part->fences[given.fence().id()];
  if (is_ours && nodes.count(node) == 0) {
    return effects;
  }
  if (fence.is_done) {
    if (is_ours) {
      SendToRanks(*job, node, ResultMessage(*job, given.fence().id(), fence), effects);
    }
    return effects;
  }
  const bool is_new = fence.given.try_emplace(node, given.fence().data()).second;
  const bool has_others = fence.given.count(kOthers) > 0;
  if (!is_new || fence.given.size() < nodes.size() + has_others) {
    return effects;
  }
  std::string whole;
  for (const auto& [name, data] : fence.given) {
    whole += data;
  }
  if (whole.size() > kFenceMost) {
    auto cancelled =
        Cancel(given.job_id(),
               fmt::format("its ranks exchange more than {} bytes at once", kFenceMost), now_ms);
    return cancelled.ok() ? *std::move(cancelled) : effects;
  }
  if (is_ours) {
    proto::Fence& own = *job->part->reports.emplace_back().mutable_fence();
    own.set_id(given.fence().id());
    own.set_data(whole.substr(has_others ? fence.given[kOthers].size() : 0));
  }
  if (has_others) {
    fence.is_done = true;
    fence.given.clear();
    fence.result = std::move(whole);
    SendToRanks(*job, "", ResultMessage(*job, given.fence().id(), fence), effects);
  }
  return effects;
}

absl::StatusOr<Effects> Queue::OnOrder(const std::string& job_id, const proto::Order& order,
                                       int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr || !job->part) {
    return errors::NoSuchJob(job_id);
  }
  if (IsFinal(job->status.state())) {
    return effects;
  }
  if (order.has_cancel()) {
    return Cancel(job_id, order.cancel().reason(), now_ms);
  }
  if (job->status.cancelling()) {
    return effects;
  }
  if (order.has_release() && !job->part->is_released) {
    if (!job->has_processors || job->part->ready.size() != job->tasks.size()) {
      return errors::NotReady(job_id);
    }
    const int64_t behind = int64_t{order.release().first_rank()} + int64_t(job->tasks.size());
    if (order.release().ranks() != 0 &&
        (order.release().first_rank() < 0 || behind > order.release().ranks() || order.release().ranks() > kRanksMost)) {
      return errors::BadRelease(job_id, order.release().first_rank(), order.release().ranks());
    }
    proto::JobEvent released;
    *released.mutable_released()->mutable_order() = order.release();
    Emit(*job, std::move(released), now_ms, effects);
    SendToRanks(*job, "", ReleaseMessage(*job), effects);
  } else if (order.has_fence()) {  // maybe before our own ranks have given theirs
    proto::RankFence others;
    others.set_job_id(job_id);
    *others.mutable_fence() = order.fence();
    return OnFence(kOthers, others, now_ms);
  }
  return effects;
}

void Queue::ReportReady(Job& job) {
  if (std::none_of(job.part->reports.begin(), job.part->reports.end(),
                   [](const proto::Report& report) { return report.has_ready(); })) {
    proto::Report::Ready& ready = *job.part->reports.emplace_back().mutable_ready();
    *ready.mutable_placement() = job.status.placement();
    ready.set_adds_own(true);
  }
}

// The first of a part; what follows is its consequence.
void Queue::ReportFailure(Job& job, int task, const proto::AgentMessage::Exited& exited) {
  if (!job.charter() ||
      std::any_of(job.part->reports.begin(), job.part->reports.end(),
                  [](const proto::Report& report) { return report.has_failed(); })) {
    return;
  }
  proto::Report::RankFailed& failed = *job.part->reports.emplace_back().mutable_failed();
  failed.set_rank(RankOf(*job.charter(), job.part->release, task));
  failed.set_node(job.tasks[task].node);
  *failed.mutable_exit() = exited.exit();
  failed.set_reason(exited.reason());
}

// Of its reports only this one counts from now on.
void Queue::ReportEnd(Job& job, const proto::JobEvent::Ended& ended) {
  job.part->fences.clear();
  job.part->ready.clear();
  for (proto::Report& report : job.part->reports) {
    if (report.has_fence()) {
      report.mutable_fence()->clear_data();
    }
  }
  proto::WorldEnded& last = *job.part->reports.emplace_back().mutable_ended();
  last.set_state(ended.state());
  *last.mutable_exit() = ended.exit();
  last.set_reason(ended.reason());
  last.set_remedy(ended.remedy());
  last.set_gram_code(ended.gram_code());
}

// Only here silence decides: its ranks keep those of other sites waiting, who have nobody else to tell them.
Effects Queue::EndUnheard(int64_t steady_ms, int64_t now_ms) {
  const int64_t from_ms = steady_ms + (std::exchange(looks_for_unheard_, true) ? 0 : kReturnMs);
  std::set<std::pair<std::string, std::string>> lost;  // job, node
  for (const auto& [job_id, job] : holding_) {
    if (!job->charter() || job->charter()->relay().empty() || job->has_engine ||
        (!job->part->is_released && !job->status.cancelling())) {
      continue;
    }
    for (const Task& task : job->tasks) {
      if (!task.is_ended && attached_.count(task.node) == 0 &&
          steady_ms >= unheard_.try_emplace(task.node, from_ms).first->second + kUnheardMs) {
        lost.emplace(job_id, task.node);
      }
    }
  }
  Effects effects;
  for (const auto& [job_id, node] : lost) {
    LoseNode(*FindMutable(job_id), node, fmt::format("node {} has been silent for more than {} s", node, kUnheardMs / 1000),
             now_ms, effects);
  }
  return effects;
}

Effects Queue::EndUnreleased(int64_t now_ms) {
  Effects effects;
  for (const auto& [job_id, job] : jobs_) {
    if (!job->charter() || job->part->is_released || IsFinal(job->status.state()) ||
        job->status.cancelling() || now_ms <= job->charter()->ready_by_ms() + kLeaderFirstMs) {
      continue;
    }
    CancelInto(job_id, "its leader did not release it in time", now_ms, effects);
  }
  return effects;
}

void Queue::SetLed(const std::string& job_id, bool is_led) {
  if (Job* const job = FindMutable(job_id); job != nullptr && job->part) {
    job->part->leaders += is_led ? 1 : -1;
    job->part->unled_from_ms.reset();
  }
}

// What its silence means cannot be known here: its site may be dead for good, or its host be started again; so there is
// time for that.
Effects Queue::EndUnled(int64_t steady_ms, int64_t now_ms) {
  std::vector<std::string> unled;
  for (const auto& [job_id, job] : holding_) {
    if (job->charter() && job->part->is_released && job->part->leaders == 0 && !job->status.cancelling()) {
      int64_t& from_ms = job->part->unled_from_ms.emplace(job->part->unled_from_ms.value_or(steady_ms));
      if (steady_ms - from_ms >= settings_.leader_silence_s * 1000) {
        unled.push_back(job->status.job_id());
      }
    }
  }
  Effects effects;
  for (const std::string& job_id : unled) {
    CancelInto(job_id,
               fmt::format("the leader of {} has been silent for more than {} s; its site or the way to it is down",
                           FindMutable(job_id)->charter()->world(), settings_.leader_silence_s),
               now_ms, effects);
  }
  return effects;
}

void Queue::CancelInto(const std::string& job_id, const std::string& reason, int64_t now_ms, Effects& effects) {
  auto ended = Cancel(job_id, reason, now_ms);
  if (ended.ok()) {
    std::move(ended->events.begin(), ended->events.end(), std::back_inserter(effects.events));
    std::move(ended->messages.begin(), ended->messages.end(), std::back_inserter(effects.messages));
    effects.is_pass_due |= ended->is_pass_due;
  }
}

}  // namespace sekisho::qserver
