// SPDX-License-Identifier: Apache-2.0
// The conductor's half about nodes for jobs: what the allocator is asked, and those who wait for
// its answer.
#include <algorithm>

#include <fmt/format.h>

#include "common/job_state.h"
#include "common/log.h"
#include "qserver/conductor.h"
#include "qserver/engine_driver.h"
#include "qserver/errors.h"

namespace sekisho::qserver {
namespace {

constexpr std::chrono::milliseconds kReasonsEvery{1'000};

}  // namespace

// ---- Scheduling: one question to the allocator at a time, for all that came meanwhile

void Conductor::RequestPass() {
  is_pass_due_ = true;
  pass_wanted_.Notify();
}

awaitable<void> Conductor::Schedule() {
  for (;;) {
    while (!is_pass_due_) {
      co_await pass_wanted_.Wait();
    }
    is_pass_due_ = false;
    // Not in the condition: GCC 12 loses the frame of a coroutine that has no variable of its own.
    const bool is_decided = co_await Pass();
    if (!is_decided) {
      co_await Sleep(loop_, std::chrono::seconds(1));
      is_pass_due_ = true;
    }
  }
}

std::vector<Queue::NodeView> Conductor::Views() const {
  std::vector<Queue::NodeView> views;
  for (const auto& [name, link] : nodes_) {
    if (!link.hello.has_pilot()) {
      views.push_back({name, link.load.load(), link.hello.architecture(), link.hello.os(), link.hello.memory_mb(),
                       restrictions_.IsDrained(name)});
    }
  }
  return views;
}

// All that may matter, with new reasons for those that wait, no more than once a second; few in between, which is enough
// to give away what has become free.
Queue::Breadth Conductor::BreadthOfPass() {
  const auto now = std::chrono::steady_clock::now();
  if (now >= full_pass_at_) {
    full_pass_at_ = now + kReasonsEvery;
    return Queue::Breadth::kAll;
  }
  if (full_pass_.expiry() != full_pass_at_) {
    full_pass_.expires_at(full_pass_at_);
    full_pass_.async_wait([this](const std::error_code& error) {
      if (!error) {
        RequestPass();
      }
    });
  }
  return Queue::Breadth::kFew;
}

awaitable<bool> Conductor::Pass() {
  const std::vector<std::shared_ptr<Proposal>> proposals = std::exchange(proposals_, {});
  std::vector<const proto::Demand*> demands;
  for (const auto& proposal : proposals) {
    demands.push_back(&proposal->admitted.demand);
  }
  const Queue::Breadth breadth = BreadthOfPass();
  const proto::DecideRequest request = queue_.Ask(NowMs(), Views(), demands, breadth);
  if (request.pending().empty()) {
    co_return true;
  }

  absl::StatusOr<proto::DecideReply> reply = co_await allocator_.Decide(request);
  if (reply.ok() && reply->decision_size() != request.pending_size()) {
    reply = absl::InternalError("the allocator answered another question");
  }
  if (!reply.ok()) {
    spdlog::error("the allocator does not answer: {}", Message(reply.status()));
  }
  Batch batch;
  const std::string why_drained = restrictions_.WhyDrained("");
  for (int i = 0; reply.ok() && !why_drained.empty() && i < reply->decision_size(); ++i) {
    if (reply->decision(i).has_wait()) {
      reply->mutable_decision(i)->mutable_wait()->set_reason(why_drained);
    }
  }
  batch.effects.is_pass_due = reply.ok() && queue_.HasMoreToAsk(request, *reply);
  const int waiting = request.pending_size() - int(proposals.size());
  for (int i = 0; reply.ok() && i < waiting; ++i) {
    const proto::Decision& decision = reply->decision(i);
    if (decision.has_start() && !AreAttached(decision.start())) {
      batch.effects.is_pass_due = true;  // a node went while the allocator thought
      continue;
    }
    batch.effects.Add(queue_.OnDecision(decision, NowMs(), breadth));
  }
  for (size_t i = 0; i < proposals.size(); ++i) {
    Decided(proposals[i], reply.ok() ? &reply->decision(waiting + int(i)) : nullptr, batch);
  }
  Perform(std::move(batch));
  co_return reply.ok();
}

void Conductor::Decided(const std::shared_ptr<Proposal>& proposal, const proto::Decision* decision,
                        Batch& batch) {
  const Admitted& admitted = proposal->admitted;
  if (!admitted.is_dry_run) {
    undecided_.erase(admitted.job_id);
  }
  if (decision != nullptr && decision->has_never()) {
    proposal->result =
        errors::Never(decision->never().reason(),
                      decision->never().reason().find(" queue ") != std::string::npos);
  } else if (admitted.is_dry_run) {
    proposal->node =
        decision != nullptr && decision->has_start() ? decision->start().placement(0).node() : "";
  } else {
    if (decision != nullptr && decision->has_start() && !AreAttached(decision->start())) {
      decision = nullptr;
    }
    batch.effects.Add(queue_.Accept(admitted, decision, NowMs()));
  }
  batch.proposals.push_back(proposal);
}

bool Conductor::AreAttached(const proto::Lease& lease) const {
  return std::all_of(lease.placement().begin(), lease.placement().end(),
                     [&](const proto::Placement& place) { return nodes_.count(place.node()) > 0; });
}
// ---- New jobs

Conductor::Ticket Conductor::Propose(Admitted admitted) {
  const std::string job_id = admitted.job_id;
  if (const Job* job = queue_.Find(job_id)) {
    const bool is_same = job->status.account() == admitted.submitted.account() && job->asked == admitted.asked;
    return {is_same ? absl::OkStatus() : errors::OtherRequest(job_id), nullptr, true};
  }
  if (const auto at = undecided_.find(job_id); at != undecided_.end()) {
    const std::shared_ptr<Proposal> twin = at->second;  // the same request, on another way
    const bool is_same = twin->admitted.submitted.account() == admitted.submitted.account() &&
                         twin->admitted.asked == admitted.asked;
    return {is_same ? absl::OkStatus() : errors::OtherRequest(job_id), twin, true};
  }
  auto proposal = std::make_shared<Proposal>(loop_, std::move(admitted));
  if (IsEngineService(proposal->admitted.submitted.service())) {
    Perform(Batch{queue_.AcceptForEngine(proposal->admitted, NowMs()), {proposal}});
  } else {
    proposals_.push_back(proposal);
    undecided_[job_id] = proposal;
    RequestPass();
  }
  return {absl::OkStatus(), proposal, false};
}

awaitable<absl::StatusOr<bool>> Conductor::Redeem(Ticket ticket) {
  CO_RETURN_IF_ERROR(ticket.refusal);
  if (ticket.proposal == nullptr) {
    CO_RETURN_IF_ERROR(co_await store_.Flush());
    co_return ticket.is_repeat;
  }
  while (!ticket.proposal->is_done) {
    co_await ticket.proposal->done.Wait();
  }
  CO_RETURN_IF_ERROR(ticket.proposal->result);
  co_return ticket.is_repeat;
}

awaitable<absl::StatusOr<bool>> Conductor::Submit(Admitted admitted) {
  Ticket ticket = Propose(std::move(admitted));
  co_return co_await Redeem(std::move(ticket));
}

awaitable<std::vector<absl::StatusOr<bool>>> Conductor::SubmitMany(std::vector<Admitted> admitted) {
  std::vector<Ticket> tickets;
  for (Admitted& one : admitted) {
    tickets.push_back(Propose(std::move(one)));
  }
  std::vector<absl::StatusOr<bool>> results;
  for (Ticket& ticket : tickets) {
    absl::StatusOr<bool> result = co_await Redeem(std::move(ticket));
    results.push_back(std::move(result));
  }
  co_return results;
}

// The node that the job would start on; if it would wait, one that it could start on were the site empty.
awaitable<absl::StatusOr<std::string>> Conductor::NodeToCheckOn(std::shared_ptr<Proposal> proposal) {
  std::string node = proposal->node;
  std::string why;
  if (node.empty()) {
    proto::DecideRequest request;
    request.set_now_ms(NowMs());
    *request.mutable_node() = queue_.Ask(NowMs(), Views(), {}).node();
    *request.add_pending() = proposal->admitted.demand;
    CO_ASSIGN_OR_RETURN(const proto::DecideReply reply, co_await allocator_.Decide(request));
    const proto::Decision decision = reply.decision_size() == 1 ? reply.decision(0) : proto::Decision();
    node = decision.has_start() ? decision.start().placement(0).node() : "";
    why = decision.has_wait() ? ": " + decision.wait().reason() : "";
  }
  if (nodes_.count(node) == 0) {
    co_return errors::NoNodeToCheck(why);
  }
  co_return node;
}

awaitable<absl::Status> Conductor::CheckOnNode(Admitted admitted) {
  if (IsEngineService(admitted.submitted.service())) {
    co_return co_await engine_->Check(std::move(admitted));
  }
  // Could the site ever run it?
  auto proposal = std::make_shared<Proposal>(loop_, std::move(admitted));
  proposal->admitted.is_dry_run = true;
  proposals_.push_back(proposal);
  RequestPass();
  while (!proposal->is_done) {
    co_await proposal->done.Wait();
  }
  CO_RETURN_IF_ERROR(proposal->result);

  // Would its program start there?  One that is not there yet cannot be asked about.
  if (proposal->admitted.has_stage_in) {
    co_return absl::OkStatus();
  }
  CO_ASSIGN_OR_RETURN(const std::string node, co_await NodeToCheckOn(proposal));
  const proto::JobEvent::Submitted& submitted = proposal->admitted.submitted;
  const std::string trial =
      JobIdFor(submitted.site(), submitted.subject(),
               submitted.request_id() + " dry run " + std::to_string(NowMs()));
  Effects::Outgoing out = queue_.Trial(proposal->admitted, trial, node);
  auto check = std::make_shared<Check>(loop_);
  checks_[trial] = check;
  Send(node, std::move(out.message));
  const auto limit = std::chrono::steady_clock::now() + std::chrono::seconds(10);
  while (!check->is_done && std::chrono::steady_clock::now() < limit) {
    co_await check->done.WaitFor(std::chrono::milliseconds(10'000));
  }
  checks_.erase(trial);
  proto::ServerMessage forget;
  forget.mutable_forget()->set_job_id(trial);
  Send(node, std::move(forget));
  if (!check->is_done) {
    co_return errors::CheckUnanswered(node);
  }
  if (check->exited.gram_code() != 0) {
    co_return errors::CheckFailed(check->exited.gram_code(), check->exited.reason());
  }
  co_return absl::OkStatus();
}
}  // namespace sekisho::qserver
