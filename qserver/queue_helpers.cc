// SPDX-License-Identifier: Apache-2.0
// The queue's half about helpers: what a site's mpirun starts on the job's other nodes by
// sekisho-rsh, in place of ssh.  They live in memory only: a launcher that loses its helpers'
// output has lost its job.  Their numbers are not given twice: what nodes hold from before a
// restart counts.
#include <algorithm>

#include <fmt/format.h>

#include "qserver/errors.h"
#include "qserver/queue.h"

namespace sekisho::qserver {
namespace {

constexpr int kMaxHelpers = 10'000;  // of one job

void Refuse(const std::string& node, uint64_t id, const std::string& reason, Effects& effects) {
  proto::ServerMessage::LaunchEnded& ended = *effects.To(node).mutable_launch_ended();
  ended.set_id(id);
  ended.mutable_exit()->set_code(255);  // as ssh says it
  ended.set_reason(reason);
}

void SendTaken(const std::string& node, const proto::TaskKey& key, proto::OutputChunk::Stream stream,
               uint64_t offset, Effects& effects) {
  proto::ServerMessage::OutputTaken& taken = *effects.To(node).mutable_output_taken();
  *taken.mutable_task() = key;
  taken.set_stream(stream);
  taken.set_offset(offset);
}

}  // namespace

Effects Queue::OnLaunch(const std::string& node, const proto::AgentMessage::Launch& launch) {
  Effects effects;
  Job* job = FindMutable(launch.job_id());
  if (const auto known = launches_.find({node, launch.id()}); known != launches_.end()) {
    const Helper& helper = FindMutable(known->second.first)->helpers[known->second.second];
    if (helper.passed_on != helper.taken) {
      Refuse(node, launch.id(), "the connection was lost while the helper's output was on its way", effects);
    } else {
      EndHelperIfComplete(helper, effects);  // the word may have been lost
    }
    return effects;
  }
  if (launch.again()) {  // numbers are given anew after a restart: it must not meet another's helper
    Refuse(node, launch.id(), "the queue server was restarted and has lost this helper", effects);
    return effects;
  }
  if (job == nullptr || !job->has_processors || !HasNode(job->status, node)) {
    Refuse(node, launch.id(), fmt::format("job {} does not run on node {}", launch.job_id(), node),
           effects);
    return effects;
  }
  if (!HasNode(job->status, launch.node())) {
    Refuse(node, launch.id(),
           fmt::format("node {} is not one of job {}'s nodes", launch.node(), launch.job_id()),
           effects);
    return effects;
  }
  if (job->status.cancelling() || int(job->helpers.size()) >= kMaxHelpers) {
    Refuse(node, launch.id(), "the job is being cancelled, or has too many helpers", effects);
    return effects;
  }
  if (attached_.count(launch.node()) == 0) {
    Refuse(node, launch.id(), fmt::format("node {} cannot be reached now", launch.node()), effects);
    return effects;
  }

  const int number = job->next_helper++;
  Helper& helper = job->helpers[number];
  helper.node = launch.node();
  helper.asking_node = node;
  helper.id = launch.id();
  launches_[{node, launch.id()}] = {launch.job_id(), number};

  proto::ServerMessage::Start& start = *effects.To(launch.node()).mutable_start();
  start.mutable_task()->set_job_id(launch.job_id());
  start.mutable_task()->set_task(number);
  start.set_account(job->status.account());
  *start.mutable_argument() = launch.argument();
  *start.mutable_environment() = launch.environment();
  (*start.mutable_environment())["SEKISHO_JOB_ID"] = launch.job_id();
  start.set_directory(launch.directory());
  start.set_umask(022);
  start.set_has_input(true);
  start.set_is_helper(true);
  return effects;
}

Effects Queue::OnLaunchInput(const std::string& node,
                             const proto::AgentMessage::LaunchInput& input) {
  Effects effects;
  const auto at = launches_.find({node, input.id()});
  if (at == launches_.end()) {
    return effects;
  }
  const auto [job_id, number] = at->second;
  Helper& helper = FindMutable(job_id)->helpers[number];
  helper.is_left = helper.is_left || input.cancel();
  if (helper.is_left && helper.is_ended) {
    ForgetLeft(job_id, number, effects);
    return effects;
  }
  proto::ServerMessage::Input& out = *effects.To(helper.node).mutable_input();
  out.mutable_task()->set_job_id(job_id);
  out.mutable_task()->set_task(number);
  out.set_offset(helper.input_offset);
  out.set_data(input.data());
  out.set_end(input.end() || input.cancel());
  helper.input_offset += input.data().size();
  return effects;
}

// A helper leaves no trace, here or on its node, before its job ends: there may be many, one after another.
void Queue::ForgetLeft(const std::string& job_id, int number, Effects& effects) {
  Job* job = FindMutable(job_id);
  const auto helper = job->helpers.find(number);
  proto::ServerMessage::Forget& forget = *effects.To(helper->second.node).mutable_forget();
  forget.set_job_id(job_id);
  forget.set_task(number);
  launches_.erase({helper->second.asking_node, helper->second.id});
  job->helpers.erase(helper);
}

Helper* Queue::FindHelper(const std::string& node, const proto::TaskKey& key) {
  Job* job = FindMutable(key.job_id());
  if (job == nullptr) {
    return nullptr;
  }
  const auto at = job->helpers.find(key.task());
  return at == job->helpers.end() || at->second.node != node ? nullptr : &at->second;
}

Effects Queue::OnHelperOutput(const std::string& node, const proto::AgentMessage::Output& output) {
  Effects effects;
  const uint64_t end = output.offset() + output.data().size();
  Helper* helper = FindHelper(node, output.task());
  const int stream = output.stream() == proto::OutputChunk::STDERR;
  if (helper == nullptr) {  // nobody waits for it
    SendTaken(node, output.task(), output.stream(), end, effects);
    return effects;
  }
  if (output.offset() > helper->passed_on[stream] || end <= helper->passed_on[stream]) {
    SendTaken(node, output.task(), output.stream(), helper->taken[stream], effects);
    return effects;
  }
  proto::ServerMessage::LaunchOutput& out =
      *effects.To(helper->asking_node).mutable_launch_output();
  out.set_id(helper->id);
  out.set_stream(output.stream());
  out.set_data(output.data().substr(helper->passed_on[stream] - output.offset()));
  helper->passed_on[stream] = end;
  EndHelperIfComplete(*helper, effects);
  return effects;
}

// Only now may its node send more: what a launcher does not take stays in the helper's spool.
Effects Queue::OnLaunchTaken(const std::string& node, const proto::AgentMessage::LaunchTaken& taken) {
  Effects effects;
  const auto at = launches_.find({node, taken.id()});
  if (at == launches_.end()) {
    return effects;
  }
  proto::TaskKey key;
  key.set_job_id(at->second.first);
  key.set_task(at->second.second);
  Helper& helper = FindMutable(key.job_id())->helpers[key.task()];
  const int stream = taken.stream() == proto::OutputChunk::STDERR;
  helper.taken[stream] = std::clamp(taken.offset(), helper.taken[stream], helper.passed_on[stream]);
  SendTaken(helper.node, key, taken.stream(), helper.taken[stream], effects);
  return effects;
}

Effects Queue::OnHelperInputTaken(const std::string& node, const proto::AgentMessage::InputTaken& taken) {
  Effects effects;
  if (const Helper* helper = FindHelper(node, taken.task())) {
    proto::ServerMessage::LaunchInputTaken& out =
        *effects.To(helper->asking_node).mutable_launch_input_taken();
    out.set_id(helper->id);
    out.set_offset(std::min(taken.offset(), helper->input_offset));
  }
  return effects;
}

Effects Queue::OnHelperExited(const std::string& node, const proto::AgentMessage::Exited& exited) {
  Effects effects;
  Helper* helper = FindHelper(node, exited.task());
  if (helper == nullptr || helper->is_ended) {
    return effects;
  }
  helper->is_ended = true;
  helper->expected = {exited.stdout_size(), exited.stderr_size()};
  helper->exit = exited.exit();
  helper->reason = exited.reason();
  if (helper->is_left) {
    ForgetLeft(exited.task().job_id(), exited.task().task(), effects);
    return effects;
  }
  EndHelperIfComplete(*helper, effects);
  return effects;
}

void Queue::EndHelperIfComplete(const Helper& helper, Effects& effects) const {
  if (helper.is_ended && helper.passed_on[0] >= helper.expected[0] &&
      helper.passed_on[1] >= helper.expected[1]) {
    proto::ServerMessage::LaunchEnded& ended =
        *effects.To(helper.asking_node).mutable_launch_ended();
    ended.set_id(helper.id);
    *ended.mutable_exit() = helper.exit;
    ended.set_reason(helper.reason);
  }
}

}  // namespace sekisho::qserver
