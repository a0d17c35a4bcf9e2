// SPDX-License-Identifier: Apache-2.0
#include "qserver/queue.h"

#include <algorithm>

#include <fmt/format.h>

#include "common/job_state.h"
#include "common/refusal.h"
#include "qserver/demand.h"
#include "qserver/engine.h"
#include "qserver/ranks.h"
#include "rsl/outgoing.h"

namespace sekisho::qserver {
namespace {

// Of the jobs that wait at one resource the allocator sees so many: what is behind them cannot
// start before them, and a question stays small however long the queue is.
constexpr int kWindow = 64;
// So many at the head of the queue have every change of their reason recorded; those behind, the
// first.
constexpr int kReasonsRecorded = 32;
// Of jobs that ask alike so many are asked about when few are to be, and one more for each four that run.
constexpr int kAlikeAtLeast = 4;
// More descriptions than this: those that no job has any more are looked for.
constexpr size_t kDemandsKept = 1'000;

// Those of a kind, at the same moment, all start or all wait: the allocator sees no difference.
using Kind = std::pair<const proto::Demand*, const std::string*>;
Kind KindOf(const Job& job) { return {job.demand.get(), job.resource}; }

}  // namespace

bool HasNode(const proto::JobStatus& status, const std::string& node) {
  return std::any_of(status.placement().begin(), status.placement().end(),
                     [&](const proto::Placement& place) { return place.node() == node; });
}

const Job* Queue::Find(const std::string& job_id) const {
  const auto at = jobs_.find(job_id);
  return at == jobs_.end() ? nullptr : at->second.get();
}

Job* Queue::FindMutable(const std::string& job_id) { return const_cast<Job*>(Find(job_id)); }

proto::JobStatus Queue::StatusOf(const std::string& job_id) const {
  if (const Job* job = FindOrArray(job_id)) {
    return job->status.job_id() == job_id ? job->status : UnmadeElement(job->status, SplitElementId(job_id)->second);
  }
  proto::JobStatus unknown;
  unknown.set_job_id(job_id);
  unknown.set_reason("this site's queue server knows no such job");
  return unknown;
}

// ---- The allocator

proto::DecideRequest Queue::Ask(int64_t now_ms, const std::vector<NodeView>& attached,
                                const std::vector<const proto::Demand*>& proposed, Breadth breadth) const {
  proto::DecideRequest request;
  request.set_now_ms(now_ms);
  for (const auto& [id, job] : holding_) {
    if (job->has_engine || job->is_staging_out) {
      continue;
    }
    proto::Lease& lease = *request.add_running();
    lease.set_job_id(id);
    lease.set_resource(job->status.resource());
    *lease.mutable_placement() = job->status.placement();
    lease.set_ends_ms(job->ends_ms);
    lease.set_exclusive(job->demand->exclusive());
  }
  for (const NodeView& view : attached) {
    proto::NodeState& node = *request.add_node();
    node.set_name(view.name);
    node.set_is_up(true);
    node.set_load(view.load);
    node.set_architecture(view.architecture);
    node.set_os(view.os);
    node.set_memory_mb(view.memory_mb);
    node.set_is_drained(view.is_drained);
  }
  const int alike_most = breadth == Breadth::kAll ? kWindow : kAlikeAtLeast + int(holding_.size()) / 4;
  std::map<const std::string*, int> seen;  // by resource
  std::map<Kind, int> alike;
  std::optional<Kind> full;  // the last that had no room: a long queue is mostly one kind
  for (const auto& [order, job] : pending_) {
    const Kind kind = KindOf(*job);
    if (job->has_engine || kind == full) {
      continue;
    }
    int& before = seen[job->resource];
    int& before_alike = alike[kind];
    const int room = std::min(kWindow - before, alike_most - before_alike);
    if (room <= 0) {
      full = kind;
      continue;
    }
    const int asked = request.pending_size();
    if (job->status.has_array()) {
      AskForElements(*job, room, request);
    } else if (!HasItsFill(*job)) {
      AddDemand(*job, job->status.job_id(), request);
    }
    before += request.pending_size() - asked;
    before_alike += request.pending_size() - asked;
  }
  for (const proto::Demand* demand : proposed) {
    *request.add_pending() = *demand;
  }
  return request;
}

bool Queue::HasMoreToAsk(const proto::DecideRequest& request, const proto::DecideReply& reply) const {
  std::map<const std::string*, int> asked;
  std::set<Kind> started;
  std::set<Kind> waiting;
  bool is_window_full = false;
  for (int i = 0; i < reply.decision_size(); ++i) {
    const Job* job = FindOrArray(request.pending(i).job_id());
    if (job == nullptr) {
      continue;
    }
    is_window_full |= ++asked[job->resource] >= kWindow;
    (reply.decision(i).has_start() ? started : waiting).insert(KindOf(*job));
  }
  return !started.empty() && (is_window_full || std::any_of(started.begin(), started.end(), [&](const Kind& kind) {
    return waiting.count(kind) == 0;
  }));
}

std::shared_ptr<const proto::Demand> Queue::ShareDemand(proto::Demand demand) {
  demand.clear_job_id();
  demand.clear_resource();
  if (demands_.size() > kDemandsKept) {
    std::erase_if(demands_, [](const auto& entry) { return entry.second.expired(); });
  }
  std::weak_ptr<const proto::Demand>& known = demands_[demand.SerializeAsString()];
  std::shared_ptr<const proto::Demand> shared = known.lock();
  if (shared == nullptr) {
    known = shared = std::make_shared<const proto::Demand>(std::move(demand));
  }
  return shared;
}

void Queue::WaitAt(Job& job, const std::string& resource) {
  job.resource = resource.empty() ? nullptr : &*resources_.insert(resource).first;
}

void Queue::AddDemand(const Job& job, std::string job_id, proto::DecideRequest& request) {
  proto::Demand& demand = *request.add_pending();
  demand = *job.demand;
  demand.set_job_id(std::move(job_id));
  if (job.resource != nullptr) {
    demand.set_resource(*job.resource);
  }
}

std::map<std::string, int> Queue::BusyByNode() const {
  std::map<std::string, int> busy;
  for (const auto& [id, job] : holding_) {
    if (!job->has_engine && !job->is_staging_out) {
      for (const proto::Placement& place : job->status.placement()) {
        busy[place.node()] += place.processes();
      }
    }
  }
  return busy;
}

Effects Queue::Accept(const Admitted& admitted, const proto::Decision* decision, int64_t now_ms) {
  CHECK(Find(admitted.job_id) == nullptr);
  Effects effects;
  auto owned = std::make_unique<Job>();
  Job& job = *owned;
  jobs_[admitted.job_id] = std::move(owned);

  proto::JobEvent submitted;
  *submitted.mutable_submitted() = admitted.submitted;
  job.status.clear_job_id();
  submitted.set_job_id(admitted.job_id);
  submitted.set_time_ms(now_ms);
  CHECK(Fold(job, submitted).ok());
  job.bytes = submitted.submitted().ByteSizeLong();
  effects.events.push_back(std::move(submitted));
  Adopt(job, admitted);
  proto::RequestBody body;
  if (job.charter() && body.ParseFromString(admitted.submitted.request().body())) {
    job.part->charter.set_ready_by_ms(ReadyBy(body, now_ms));
  }

  proto::JobEvent queued;
  queued.mutable_queued();
  Emit(job, std::move(queued), now_ms, effects);
  if (admitted.has_stage_in) {
    proto::JobEvent staging;
    staging.mutable_staging_in()->set_reason("waits for its files");
    Emit(job, std::move(staging), now_ms, effects);
  }
  if (admitted.is_held) {
    proto::JobEvent held;
    held.mutable_held();
    Emit(job, std::move(held), now_ms, effects);
  }
  if (admitted.commit_within_s > 0) {
    proto::JobEvent uncommitted;
    uncommitted.mutable_uncommitted()->set_until_ms(now_ms + admitted.commit_within_s * 1000);
    Emit(job, std::move(uncommitted), now_ms, effects);
  }
  if (const absl::Status follows = CheckAfter(admitted); !follows.ok()) {  // one has failed while the allocator thought
    proto::JobEvent::Ended ended;
    ended.set_state(proto::FAILED);
    ended.set_gram_code(17);
    ended.set_reason(Message(follows));
    ended.set_remedy(Remedy(follows));
    End(job, std::move(ended), now_ms, effects);
    effects.is_pass_due = true;
    return effects;
  }
  if (!job.waits_for.empty() && !job.is_staging && job.commit_by_ms == 0) {
    proto::JobEvent waiting;
    waiting.mutable_waiting()->set_reason(WhyItWaits(job));
    Emit(job, std::move(waiting), now_ms, effects);
  }
  if (IsKeptBack(job)) {
    effects.is_pass_due = true;  // what was decided for it is for others
    return effects;
  }
  if (decision != nullptr && decision->has_start() && job.status.has_array()) {
    const int first = *ElementFrom(job.status.array().what(), 0);
    Start(MakeElement(job, first, now_ms, effects), decision->start(), now_ms, effects);
    effects.is_pass_due = true;  // for the others
    return effects;
  }
  if (decision != nullptr && decision->has_start()) {
    Start(job, decision->start(), now_ms, effects);
    return effects;
  }
  proto::JobEvent waiting;
  waiting.mutable_waiting()->set_reason(decision != nullptr && decision->has_wait()
                                            ? decision->wait().reason()
                                            : "waits for the site's allocator to answer");
  Emit(job, std::move(waiting), now_ms, effects);
  if (decision != nullptr && decision->has_wait()) {
    WaitAt(job, decision->wait().resource());
  } else {
    effects.is_pass_due = true;
  }
  return effects;
}

Effects::Outgoing Queue::Trial(const Admitted& admitted, const std::string& trial_id,
                               const std::string& node) const {
  proto::JobStatus status;
  status.set_job_id(trial_id);
  status.set_account(admitted.submitted.account());
  proto::Placement& place = *status.add_placement();
  place.set_node(node);
  place.set_processes(1);
  const auto described = rsl::ParseAndDescribe(admitted.submitted.rsl(), {});
  CHECK(described.ok());
  Effects::Outgoing out;
  out.node = node;
  *out.message.mutable_start() =
      MakeStarts(status, *described, false, JobContact(admitted.gatekeeper_subject, trial_id), 0,
                 settings_)[0];
  out.message.mutable_start()->set_check_only(true);
  return out;
}

Effects Queue::OnDecision(const proto::Decision& decision, int64_t now_ms, Breadth breadth) {
  Effects effects;
  Job* job = FindMutable(decision.job_id());
  if (job == nullptr) {
    OnElementDecision(decision, breadth, now_ms, effects);
    return effects;
  }
  if (pending_.count(OrderOf(*job)) == 0 || HasItsFill(*job)) {
    effects.is_pass_due = decision.has_start();  // it waits no more, or was held, while the allocator thought
    return effects;
  }
  if (decision.has_start()) {
    Start(*job, decision.start(), now_ms, effects);
    return effects;
  }
  RecordWait(*job, decision, breadth, now_ms, effects);
  return effects;
}

void Queue::RecordWait(Job& job, const proto::Decision& decision, Breadth breadth, int64_t now_ms, Effects& effects) {
  std::string reason;
  if (decision.has_wait()) {
    WaitAt(job, decision.wait().resource());
    reason = decision.wait().reason();
  } else {
    WaitAt(job, "");
    reason = "cannot run on the site as it is now: " + decision.never().reason();
  }
  if (breadth == Breadth::kFew && !job.status.reason().empty()) {
    return;  // whose reason changes with every job that starts is told now and then
  }
  if (reason == job.status.reason() || job.status.cancelling() || job.status.state() != proto::PENDING) {
    return;
  }
  const auto rank = std::distance(pending_.begin(), pending_.find(OrderOf(job)));
  if (rank < kReasonsRecorded) {
    proto::JobEvent waiting;
    waiting.mutable_waiting()->set_reason(reason);
    Emit(job, std::move(waiting), now_ms, effects);
  } else {
    job.status.set_reason(reason);
  }
}

void Queue::Start(Job& job, const proto::Lease& lease, int64_t now_ms, Effects& effects) {
  proto::JobEvent allocated;
  allocated.mutable_allocated()->set_resource(lease.resource());
  *allocated.mutable_allocated()->mutable_placement() = lease.placement();
  for (const proto::Placement& place : lease.placement()) {
    const auto boot = boots_.find(place.node());
    if (boot != boots_.end() && !boot->second.empty()) {
      (*allocated.mutable_allocated()->mutable_boot_id())[place.node()] = boot->second;
    }
  }
  Emit(job, std::move(allocated), now_ms, effects);
  SendStarts(job, "", false, effects);
}

void Queue::GiveProcessors(Job& job) {
  const auto described = rsl::ParseAndDescribe(RslOf(job), {});
  CHECK(described.ok());  // it was, when it was accepted
  job.tasks.clear();
  for (std::string& node : TaskNodes(*described, job.status.placement())) {
    job.tasks.emplace_back().node = std::move(node);
  }
  job.are_starts_held = job.tasks.size() > 1 &&
                        (!rsl::WrittenByTasks(described->standard_output).empty() ||
                         !rsl::WrittenByTasks(described->standard_error).empty());
}

bool Queue::IsHeldBack(const Job& job, int task) {
  return job.are_starts_held && task > 0 && !job.tasks[0].is_started;
}

void Queue::SendStarts(const Job& job, const std::string& node, bool only_unstarted,
                       Effects& effects) const {
  const auto described = rsl::ParseAndDescribe(RslOf(job), {});
  CHECK(described.ok());
  std::vector<proto::ServerMessage::Start> starts =
      MakeStarts(job.status, *described, job.has_input,
                 JobContact(*job.gatekeeper_subject, job.status.job_id()), job.demand->wall_time_s(), settings_);
  if (job.charter()) {
    MakeRanks(*job.charter(), *described, job.status, job.part->is_released, settings_, starts);
  }
  for (proto::ServerMessage::Start& start : starts) {
    const Task& task = job.tasks[start.task().task()];
    if ((node.empty() || task.node == node) && !IsHeldBack(job, start.task().task()) &&
        !(only_unstarted && (task.is_started || task.is_ended))) {
      Effects::Outgoing& out = effects.messages.emplace_back();
      out.node = task.node;
      *out.message.mutable_start() = std::move(start);
    }
  }
}

// ---- Retention

std::vector<std::string> Queue::EndedBefore(int64_t before_ms, size_t most, const PassesOver& passes_over) const {
  std::vector<std::string> ids;
  for (auto at = ended_.begin(); at != ended_.end() && at->first < before_ms && ids.size() < most; ++at) {
    if (passes_over == nullptr || !passes_over(at->second)) {
      ids.push_back(at->second);
    }
  }
  return ids;
}

void Queue::Forget(const std::string& job_id) {
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) {
    return;
  }
  while (!job->second->elements.empty()) {
    Forget(job->second->elements.begin()->second->status.job_id());
  }
  if (Job* array = job->second->array) {
    array->elements.erase(job->second->status.element().index());
  }
  const auto [first, last] = ended_.equal_range(job->second->status.ended_ms());
  const auto entry = std::find_if(first, last, [&](const auto& one) { return one.second == job_id; });
  if (entry != last) {
    ended_.erase(entry);
  }
  const auto usage = usage_.find(job->second->status.subject());
  usage->second.bytes -= job->second->bytes;
  if (usage->second.live == 0 && usage->second.bytes == 0) {
    usage_.erase(usage);
  }
  jobs_.erase(job);
}

Queue::Usage Queue::UsageOf(const std::string& subject) const {
  const auto at = usage_.find(subject);
  return at == usage_.end() ? Usage() : at->second;
}

}  // namespace sekisho::qserver
