// SPDX-License-Identifier: Apache-2.0
// The conductor's half about agents.
#include <fmt/format.h>

#include "common/log.h"
#include "common/refusal.h"
#include "qserver/conductor.h"
#include "qserver/engine_driver.h"
#include "qserver/ranks.h"

namespace sekisho::qserver {

uint64_t Conductor::Attach(const proto::AgentMessage::Hello& hello,
                           std::function<void(proto::ServerMessage)> send) {
  const std::string& node = hello.node();
  NodeLink& link = nodes_[node];
  link.hello = hello;
  link.send = std::move(send);
  link.generation = next_generation_++;
  queue_.SetAttached(node, true);
  SiteChanged();

  proto::ServerMessage welcome;
  *welcome.mutable_welcome() = queue_.Welcome(node, hello);
  link.send(std::move(welcome));
  spdlog::info("node attached node={} processors={} held={}", node, hello.processors(),
               hello.held_size());
  const uint64_t generation = link.generation;
  Perform(queue_.OnAttached(node, hello, NowMs()));
  NoteReturn(hello);
  if (hello.has_pilot() && engine_ != nullptr) {
    engine_->OnPilot(hello);
  }
  WakeJobs();
  return generation;
}

void Conductor::Detach(const std::string& node, uint64_t generation) {
  const auto at = nodes_.find(node);
  if (at == nodes_.end() || at->second.generation != generation) {
    return;
  }
  if (!at->second.hello.has_pilot()) {  // pilots go with their jobs
    spdlog::warn("node lost node={}: its tasks keep their states until it attaches again", node);
  }
  const bool is_pilot = at->second.hello.has_pilot();
  nodes_.erase(at);
  queue_.SetAttached(node, false);
  SiteChanged();
  if (is_pilot && engine_ != nullptr) {
    engine_->OnDetached();
  }
  for (const auto& [trial, check] : checks_) {
    check->done.Notify();
  }
  WakeJobs();
  RequestPass();
}

bool Conductor::OnMessage(const std::string& node, uint64_t generation,
                          const proto::AgentMessage& message) {
  const auto at = nodes_.find(node);
  if (at == nodes_.end() || at->second.generation != generation) {
    return false;
  }
  switch (message.kind_case()) {
    case proto::AgentMessage::kStarted:
      if (!OnCheckEnded(node, message)) {
        Perform(queue_.OnStarted(node, message.started().task(), NowMs()));
      }
      return true;
    case proto::AgentMessage::kExited:
      if (!OnCheckEnded(node, message)) {
        Perform(queue_.OnExited(node, message.exited(), NowMs()));
      }
      return true;
    case proto::AgentMessage::kOutput:
      return OnOutput(node, message.output());
    case proto::AgentMessage::kLoad:
      at->second.load = message.load();
      return true;
    case proto::AgentMessage::kLaunch:
      Perform(queue_.OnLaunch(node, message.launch()));
      return true;
    case proto::AgentMessage::kLaunchInput:
      Perform(queue_.OnLaunchInput(node, message.launch_input()));
      return true;
    case proto::AgentMessage::kInputTaken:
      if (message.input_taken().task().task() >= kFirstHelper) {
        Perform(queue_.OnHelperInputTaken(node, message.input_taken()));
      } else {
        OnInputTaken(generation, message.input_taken());
      }
      return true;
    case proto::AgentMessage::kReady:
      Perform(queue_.OnReady(node, message.ready().task()));
      JobSignal(message.ready().task().job_id())->Notify();
      return true;
    case proto::AgentMessage::kFence:
      Perform(queue_.OnFence(node, message.fence(), NowMs()));
      JobSignal(message.fence().job_id())->Notify();
      return true;
    case proto::AgentMessage::kHello:
      OnHelloAgain(node, message.hello());
      return true;
    case proto::AgentMessage::kLinks:
      OnLinks(node, message.links());
      return true;
    case proto::AgentMessage::kLaunchTaken:
      Perform(queue_.OnLaunchTaken(node, message.launch_taken()));
      return true;
    default:
      return true;
  }
}

bool Conductor::OnOutput(const std::string& node, const proto::AgentMessage::Output& output) {
  const proto::TaskKey& key = output.task();
  if (key.task() >= kFirstHelper) {
    Perform(queue_.OnHelperOutput(node, output));
    return true;
  }
  const int stream = output.stream() == proto::OutputChunk::STDERR;
  uint64_t taken = output.offset() + output.data().size();
  const Job* job = queue_.Find(key.job_id());
  const bool is_ours = job != nullptr && job->has_processors &&
                       size_t(key.task()) < job->tasks.size() &&
                       job->tasks[key.task()].node == node;
  bool is_lost = is_ours && job->tasks[key.task()].is_output_lost;
  if (is_ours && !is_lost) {
    const absl::StatusOr<uint64_t> size =
        spool_.Append(key.job_id(), key.task(), stream, output.offset(), output.data());
    if (absl::IsResourceExhausted(size.status())) {
      spdlog::error("no room for output, ending the job job={}: {}", key.job_id(), Message(size.status()));
      Perform(queue_.OnSpoolFull(key, NowMs()));  // after which the job may be over, and have no tasks
      is_lost = true;
    } else if (!size.ok()) {
      spdlog::error("cannot spool output job={}: {}", key.job_id(), Message(size.status()));
      return false;  // the agent keeps it and comes again
    } else {
      taken = *size;
    }
  }
  if (is_lost && unpublished_.count(key.job_id()) > 0) {
    return true;  // its node gives nothing up before it is on disk that the job ends by this
  }
  proto::ServerMessage reply;
  *reply.mutable_output_taken()->mutable_task() = key;
  reply.mutable_output_taken()->set_stream(output.stream());
  reply.mutable_output_taken()->set_offset(taken);
  Send(node, std::move(reply));
  if (is_ours && queue_.Find(key.job_id()) != nullptr) {
    JobSignal(key.job_id())->Notify();
    Perform(queue_.OnSpooled(key, stream, taken, NowMs()));
  }
  return true;
}

// Trials are no jobs: they are over before long.
void Conductor::OnHelloAgain(const std::string& node, const proto::AgentMessage::Hello& hello) {
  proto::AgentMessage::Hello of_jobs = hello;
  of_jobs.clear_held();
  for (const proto::TaskKey& key : hello.held()) {
    if (checks_.count(key.job_id()) == 0) {
      *of_jobs.add_held() = key;
    }
  }
  Perform(queue_.OnHelloAgain(node, of_jobs, NowMs()));
}

// For the user's eyes: no job ends because there is no room for them.
void Conductor::OnLinks(const std::string& node, const proto::AgentMessage::Links& links) {
  const proto::TaskKey& key = links.task();
  const Job* job = queue_.Find(key.job_id());
  if (job == nullptr || !job->charter() || key.task() < 0 || size_t(key.task()) >= job->tasks.size() ||
      job->tasks[key.task()].node != node || links.offset() + links.data().size() > Spool::kLinksMost) {
    return;
  }
  const auto size =
      spool_.Append(key.job_id(), key.task(), Spool::kLinks, links.offset(), links.data());
  if (!size.ok()) {
    spdlog::warn("cannot keep what a rank connects to job={}: {}", key.job_id(), Message(size.status()));
  }
}

void Conductor::OnInputTaken(uint64_t generation, const proto::AgentMessage::InputTaken& taken) {
  const Job* job = queue_.Find(taken.task().job_id());
  if (job == nullptr || !job->has_processors || taken.task().task() != InputTask(job->charter())) {
    return;
  }
  InputProgress& progress = inputs_[taken.task().job_id()];
  if (progress.generation != generation) {  // what an earlier stream carried may be lost
    progress.generation = generation;
    progress.sent = 0;
  }
  progress.taken = taken.offset();
  progress.sent = std::max(progress.sent, progress.taken);
  progress.has_ended = taken.end();
  JobSignal(taken.task().job_id())->Notify();
}

bool Conductor::OnCheckEnded(const std::string& node, const proto::AgentMessage& message) {
  const proto::TaskKey& key =
      message.has_exited() ? message.exited().task() : message.started().task();
  const auto at = checks_.find(key.job_id());
  if (at == checks_.end()) {
    return false;
  }
  if (message.has_exited()) {
    spdlog::debug("dry run ended job={} node={}", key.job_id(), node);
    at->second->exited = message.exited();
    at->second->is_done = true;
    at->second->done.Notify();
  }
  return true;
}

}  // namespace sekisho::qserver
