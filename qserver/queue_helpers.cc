// SPDX-License-Identifier: Apache-2.0
// The queue's half about helpers: what a site's mpirun starts on the job's other nodes by
// sekisho-rsh, in place of ssh.  They live in memory only, and after a restart in what both sides say:
// the helper's node names the launch that it was started for, and the launcher how far it has come.  Agents of before,
// which know none of that, are not in relaunching_.
// Their numbers are not given twice on a node: what it holds from before a restart counts.
#include <algorithm>
#include <optional>

#include <fmt/format.h>

#include "qserver/errors.h"
#include "qserver/queue.h"

namespace sekisho::qserver {
namespace {

constexpr int kMaxHelpers = 10'000;  // of one job

std::string NameOf(const std::string& node, uint64_t id) { return fmt::format("{}:{}", node, id); }

proto::TaskKey KeyOf(const Job& job, int number) {
  proto::TaskKey key;
  key.set_job_id(job.status.job_id());
  key.set_task(number);
  return key;
}

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

void SendForget(const std::string& node, const proto::TaskKey& key, Effects& effects) {
  effects.Forget(node, key.job_id());
  effects.messages.back().message.mutable_forget()->set_task(key.task());
}

// Says that what was on the way may be lost.
void AskAgain(const std::string& asking_node, uint64_t id, Effects& effects) {
  effects.To(asking_node).mutable_launch_again()->set_id(id);
}

void SendInputTaken(const Helper& helper, uint64_t offset, Effects& effects) {
  if (helper.asking_node.empty()) {
    return;
  }
  proto::ServerMessage::LaunchInputTaken& taken = *effects.To(helper.asking_node).mutable_launch_input_taken();
  taken.set_id(helper.id);
  taken.set_offset(offset);
}

// Of the job: the node of that name, or the one whose host has it; Open MPI leaves a host's domain out.
std::optional<std::string> NodeMeant(const proto::JobStatus& status, const std::string& name) {
  if (HasNode(status, name)) {
    return name;
  }
  std::optional<std::string> found;
  for (const proto::Placement& place : status.placement()) {
    if (place.node().starts_with(name + ".")) {
      if (found) {
        return std::nullopt;
      }
      found = place.node();
    }
  }
  return found;
}

}  // namespace

Effects Queue::OnLaunch(const std::string& node, const proto::AgentMessage::Launch& asked) {
  Effects effects;
  proto::AgentMessage::Launch launch = asked;
  Job* job = FindMutable(launch.job_id());
  const auto refuse = [&](const std::string& reason) { Refuse(node, launch.id(), reason, effects); };
  const std::string name = NameOf(node, launch.id());
  const auto known = launches_.find(name);
  if (launch.again() && !launch.has_taken()) {
    refuse(fmt::format("the connection was lost, and the agent of node {} is too old to take a helper up again", node));
  } else if (job == nullptr || !job->has_processors || !HasNode(job->status, node)) {
    refuse(fmt::format("job {} does not run on node {}", launch.job_id(), node));
  } else if (known != launches_.end() && known->second.first != launch.job_id()) {
    refuse(fmt::format("launch {} is another job's", name));
  } else if (known != launches_.end()) {
    TakeUp(node, launch, effects);
  } else if (const auto meant = NodeMeant(job->status, asked.node()); !meant) {
    refuse(fmt::format("node {} is not one of job {}'s nodes", launch.node(), launch.job_id()));
  } else if (launch.set_node(*meant); job->status.cancelling() || int(job->helpers.size() + job->waiting_launches.size()) >= kMaxHelpers) {
    refuse("the job is being cancelled, or has too many helpers");
  } else if (attached_.count(launch.node()) == 0 && relaunching_.count(node) == 0) {
    refuse(fmt::format("node {} cannot be reached now", launch.node()));
  } else if (attached_.count(launch.node()) == 0) {
    job->waiting_launches[name] = {launch.node(), node, launch.id()};
  } else if (launch.again()) {
    refuse(fmt::format("node {} has lost it", launch.node()));
  } else {
    StartHelper(*job, node, launch, effects);
  }
  return effects;
}

void Queue::StartHelper(Job& job, const std::string& node, const proto::AgentMessage::Launch& launch,
                        Effects& effects) {
  const HelperKey key(launch.node(), job.next_helper++);
  Helper& helper = job.helpers[key];
  helper.launch = NameOf(node, launch.id());
  helper.asking_node = node;
  helper.id = launch.id();
  launches_[helper.launch] = {launch.job_id(), key};

  proto::ServerMessage::Start& start = *effects.To(launch.node()).mutable_start();
  *start.mutable_task() = KeyOf(job, key.second);
  start.set_account(job.status.account());
  *start.mutable_argument() = launch.argument();
  *start.mutable_environment() = launch.environment();
  (*start.mutable_environment())["SEKISHO_JOB_ID"] = launch.job_id();
  start.set_directory(launch.directory());
  start.set_umask(022);
  start.set_has_input(true);
  start.set_is_helper(true);
  start.set_launch(helper.launch);
}

// What the launcher says it has is what counts: all else is said to it again.
void Queue::TakeUp(const std::string& node, const proto::AgentMessage::Launch& launch, Effects& effects) {
  const auto [job, key] = FindLaunch(node, launch.id(), launch.job_id());
  Helper& helper = job->helpers[key];
  const std::array<uint64_t, 2> taken = {launch.taken().stdout_offset(), launch.taken().stderr_offset()};
  const bool can_resume = relaunching_.count(key.first) > 0;
  if (!can_resume && helper.passed_on != taken) {
    Refuse(node, launch.id(),
           fmt::format("output was lost with the connection, and the agent of node {} is too old to say it again", key.first),
           effects);
    return;
  }
  helper.asking_node = node;
  helper.id = launch.id();
  helper.is_left = false;
  helper.taken = taken;
  helper.passed_on = taken;
  if (!can_resume) {
    EndHelperIfComplete(helper, effects);
    return;
  }
  proto::ServerMessage::Welcome::Resume& resume = *effects.To(key.first).mutable_resume();
  *resume.mutable_task() = KeyOf(*job, key.second);
  resume.set_stdout_offset(helper.taken[0]);
  resume.set_stderr_offset(helper.taken[1]);
  EndHelperIfComplete(helper, effects);
}

// A node is here, with what it holds.  After our restart that is news; and what was on the way to it or from it may be lost,
// so that the launchers have to speak again.
void Queue::MeetHelpers(Job& job, const std::string& node, const proto::AgentMessage::Hello& hello, bool is_again,
                        Effects& effects) {
  std::map<int, std::string> launch_of;
  for (const auto& helper : hello.helper()) {
    if (helper.task().job_id() == job.status.job_id()) {
      launch_of[helper.task().task()] = helper.launch();
    }
  }
  std::set<int> held;
  for (const proto::TaskKey& key : hello.held()) {
    if (key.job_id() != job.status.job_id() || key.task() < kFirstHelper) {
      continue;
    }
    held.insert(key.task());
    const HelperKey helper(node, key.task());
    const std::string& launch = launch_of[key.task()];
    if (job.helpers.count(helper) > 0) {
      continue;
    }
    if (is_again || launch.empty() || launches_.count(launch) > 0) {  // nobody's any more
      SendForget(node, key, effects);
    } else {
      job.helpers[helper].launch = launch;
      launches_[launch] = {key.job_id(), helper};
    }
  }
  if (is_again) {
    return;  // a Start may be on its way
  }

  // What is said to it by then is not heard; and nothing is passed on to a launcher before it has said how far it is.
  for (auto& [key, helper] : job.helpers) {
    if (helper.asking_node == node && relaunching_.count(key.first) > 0) {
      helper.asking_node.clear();
    }
  }
  for (auto at = job.helpers.lower_bound({node, 0}); at != job.helpers.end() && at->first.first == node;) {
    const auto helper = at++;
    const bool is_held = held.count(helper->first.second) > 0;
    MeetHelper(job, helper->first, is_held, effects);
    if (!is_held) {
      launches_.erase(helper->second.launch);
      job.helpers.erase(helper);
    }
  }
  for (auto at = job.waiting_launches.begin(); at != job.waiting_launches.end();) {
    const auto waiting = at++;
    if (waiting->second.node == node) {
      AskAgain(waiting->second.asking_node, waiting->second.id, effects);
      job.waiting_launches.erase(waiting);
    }
  }
}

// One that was known when its node attached.
void Queue::MeetHelper(Job& job, const HelperKey& key, bool is_held, Effects& effects) {
  Helper& helper = job.helpers[key];
  const auto& [node, number] = key;
  if (helper.is_left) {
    if (is_held) {  // the end of its input may be what was lost: whatever has come of that, no more will
      proto::ServerMessage::Input& end = *effects.To(node).mutable_input();
      *end.mutable_task() = KeyOf(job, number);
      end.set_end(true);
    }
  } else if (helper.asking_node.empty()) {
    // Its launcher speaks again.
  } else if (relaunching_.count(helper.asking_node) == 0) {
    if (!is_held) {
      Refuse(helper.asking_node, helper.id, fmt::format("node {} has lost it", node), effects);
    }
  } else if (relaunching_.count(node) > 0 || !is_held) {
    AskAgain(helper.asking_node, helper.id, effects);
    helper.asking_node.clear();
  }
}

// Of that job, if an agent says which.
std::pair<Job*, HelperKey> Queue::FindLaunch(const std::string& node, uint64_t id, const std::string& job_id) {
  const auto at = launches_.find(NameOf(node, id));
  if (at == launches_.end() || (!job_id.empty() && job_id != at->second.first)) {
    return {};
  }
  return {FindMutable(at->second.first), at->second.second};
}

Effects Queue::OnLaunchInput(const std::string& node,
                             const proto::AgentMessage::LaunchInput& input) {
  Effects effects;
  const auto [job, key] = FindLaunch(node, input.id(), input.job_id());
  if (job == nullptr) {
    Job* const waiting = input.cancel() ? FindMutable(input.job_id()) : nullptr;
    if (waiting != nullptr) {
      waiting->waiting_launches.erase(NameOf(node, input.id()));
    }
    return effects;
  }
  Helper& helper = job->helpers[key];
  helper.is_left = helper.is_left || input.cancel();
  if (helper.is_left && helper.is_ended) {
    ForgetLeft(*job, key, effects);
    return effects;
  }
  proto::ServerMessage::Input& out = *effects.To(key.first).mutable_input();
  *out.mutable_task() = KeyOf(*job, key.second);
  out.set_offset(input.has_offset() ? input.offset() : helper.input_offset);
  out.set_data(input.data());
  out.set_end(input.end() || input.cancel());
  helper.input_offset = out.offset() + input.data().size();
  return effects;
}

// A helper leaves no trace, here or on its node, before its job ends: there may be many, one after another.
void Queue::ForgetLeft(Job& job, const HelperKey& key, Effects& effects) {
  SendForget(key.first, KeyOf(job, key.second), effects);
  launches_.erase(job.helpers[key].launch);
  job.helpers.erase(HelperKey(key));
}

Helper* Queue::FindHelper(const std::string& node, const proto::TaskKey& key) {
  Job* job = FindMutable(key.job_id());
  if (job == nullptr) {
    return nullptr;
  }
  const auto at = job->helpers.find({node, key.task()});
  return at == job->helpers.end() ? nullptr : &at->second;
}

Effects Queue::OnHelperStarted(const std::string& node, const proto::TaskKey& key) {
  Effects effects;
  if (const Helper* helper = FindHelper(node, key)) {
    SendInputTaken(*helper, 0, effects);
  }
  return effects;
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
  if (helper->asking_node.empty()) {
    return effects;  // TakeUp has it sent again
  }
  if (output.offset() > helper->passed_on[stream] || end <= helper->passed_on[stream]) {
    SendTaken(node, output.task(), output.stream(), helper->taken[stream], effects);
    return effects;
  }
  proto::ServerMessage::LaunchOutput& out =
      *effects.To(helper->asking_node).mutable_launch_output();
  out.set_id(helper->id);
  out.set_stream(output.stream());
  out.set_offset(helper->passed_on[stream]);
  out.set_data(output.data().substr(helper->passed_on[stream] - output.offset()));
  helper->passed_on[stream] = end;
  EndHelperIfComplete(*helper, effects);
  return effects;
}

// Only now may its node send more: what a launcher does not take stays in the helper's spool.
Effects Queue::OnLaunchTaken(const std::string& node, const proto::AgentMessage::LaunchTaken& taken) {
  Effects effects;
  const auto [job, key] = FindLaunch(node, taken.id(), taken.job_id());
  if (job == nullptr) {
    return effects;
  }
  Helper& helper = job->helpers[key];
  const int stream = taken.stream() == proto::OutputChunk::STDERR;
  helper.taken[stream] = std::clamp(taken.offset(), helper.taken[stream], helper.passed_on[stream]);
  SendTaken(key.first, KeyOf(*job, key.second), taken.stream(), helper.taken[stream], effects);
  return effects;
}

Effects Queue::OnHelperInputTaken(const std::string& node, const proto::AgentMessage::InputTaken& taken) {
  Effects effects;
  if (const Helper* helper = FindHelper(node, taken.task())) {
    SendInputTaken(*helper, taken.offset(), effects);
  }
  return effects;
}

Effects Queue::OnHelperExited(const std::string& node, const proto::AgentMessage::Exited& exited) {
  Effects effects;
  Helper* helper = FindHelper(node, exited.task());
  if (helper == nullptr) {
    return effects;
  }
  helper->is_ended = true;
  helper->expected = {exited.stdout_size(), exited.stderr_size()};
  helper->exit = exited.exit();
  helper->reason = exited.reason();
  if (helper->is_left) {
    ForgetLeft(*FindMutable(exited.task().job_id()), {node, exited.task().task()}, effects);
    return effects;
  }
  EndHelperIfComplete(*helper, effects);
  return effects;
}

void Queue::EndHelperIfComplete(const Helper& helper, Effects& effects) {
  if (!helper.asking_node.empty() && helper.is_ended && helper.passed_on[0] >= helper.expected[0] &&
      helper.passed_on[1] >= helper.expected[1]) {
    proto::ServerMessage::LaunchEnded& ended =
        *effects.To(helper.asking_node).mutable_launch_ended();
    ended.set_id(helper.id);
    *ended.mutable_exit() = helper.exit;
    ended.set_reason(helper.reason);
    ended.set_stdout_size(helper.expected[0]);
    ended.set_stderr_size(helper.expected[1]);
  }
}

}  // namespace sekisho::qserver
