// SPDX-License-Identifier: Apache-2.0
// The queue's half about agents: tasks start, exit, are found again, and end their job.
#include <algorithm>
#include <set>
#include <utility>

#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/errors.h"
#include "qserver/queue.h"

namespace sekisho::qserver {
namespace {

constexpr int64_t kStalledAfterMs = 60'000;

bool IsHelper(const proto::TaskKey& key) { return key.task() >= kFirstHelper; }

Effects::Outgoing& To(const std::string& node, Effects& effects) {
  Effects::Outgoing& out = effects.messages.emplace_back();
  out.node = node;
  return out;
}

void SendForget(const std::string& node, const std::string& job_id, Effects& effects) {
  To(node, effects).message.mutable_forget()->set_job_id(job_id);
}

void SendKill(const std::string& node, const std::string& job_id, int signal, int64_t grace_ms,
              Effects& effects) {
  proto::ServerMessage::Kill& kill = *To(node, effects).message.mutable_kill();
  kill.set_job_id(job_id);
  kill.set_signal(signal);
  kill.set_grace_ms(grace_ms);
}

// How the job ended, as its tasks did.
proto::JobEvent::Ended EndOf(const Job& job) {
  proto::JobEvent::Ended ended;
  if (job.status.cancelling()) {
    ended.set_state(proto::CANCELLED);
    ended.set_gram_code(8);
    ended.set_reason(job.status.reason());
    *ended.mutable_exit() = JobExit(job.status);
    return ended;
  }
  for (size_t number = 0; number < job.tasks.size(); ++number) {
    const Task& task = job.tasks[number];
    if (task.is_output_lost) {
      ended.set_state(proto::FAILED);
      ended.set_gram_code(17);
      ended.set_reason("the site has no room for more output; what came before is kept");
      *ended.mutable_exit() = task.exit;
      return ended;
    }
    if (task.gram_code != 0) {
      ended.set_state(proto::FAILED);
      ended.set_gram_code(task.gram_code);
      ended.set_reason(job.tasks.size() == 1
                           ? task.reason
                           : fmt::format("task {} on {}: {}", number, task.node, task.reason));
      *ended.mutable_exit() = task.exit;
      return ended;
    }
  }
  *ended.mutable_exit() = JobExit(job.status);
  ended.set_state(ended.exit().signal() == 0 ? proto::DONE : proto::FAILED);
  for (size_t number = 0; number < job.tasks.size(); ++number) {
    const Task& task = job.tasks[number];
    if (task.exit.code() != 0 || task.exit.signal() != 0) {
      const std::string who =
          job.tasks.size() == 1 ? "the program" : fmt::format("task {}", number);
      ended.set_reason(!task.reason.empty() ? task.reason
                       : task.exit.signal() != 0
                           ? fmt::format("{} was killed by signal {}", who, task.exit.signal())
                           : fmt::format("{} exited with code {}", who, task.exit.code()));
      break;
    }
  }
  return ended;
}

}  // namespace

proto::ServerMessage::Welcome Queue::Welcome(const std::string& node,
                                             const proto::AgentMessage::Hello& hello) const {
  proto::ServerMessage::Welcome welcome;
  welcome.set_site(settings_.site);
  for (const proto::TaskKey& key : hello.held()) {
    const Job* job = Find(key.job_id());
    if (job == nullptr || IsHelper(key) || size_t(key.task()) >= job->tasks.size() ||
        job->tasks[key.task()].node != node) {
      continue;
    }
    proto::ServerMessage::Welcome::Resume& resume = *welcome.add_resume();
    *resume.mutable_task() = key;
    resume.set_stdout_offset(job->tasks[key.task()].spooled[0]);
    resume.set_stderr_offset(job->tasks[key.task()].spooled[1]);
  }
  return welcome;
}

void Queue::SetAttached(const std::string& node, bool is_attached) {
  if (is_attached) {
    attached_.insert(node);
  } else {
    attached_.erase(node);
  }
}

Effects Queue::OnAttached(const std::string& node, const proto::AgentMessage::Hello& hello,
                          int64_t now_ms) {
  Effects effects;
  effects.is_pass_due = true;
  boots_[node] = hello.boot_id();
  std::map<std::string, std::vector<int>> held;
  for (const proto::TaskKey& key : hello.held()) {
    held[key.job_id()].push_back(key.task());
  }

  // What it holds of jobs that ended here, or that are not ours to run there, is to go.
  for (const auto& [job_id, tasks] : held) {
    const Job* job = Find(job_id);
    if (job == nullptr || !job->has_processors || !HasNode(job->status, node)) {
      SendKill(node, job_id, 9, 0, effects);
      SendForget(node, job_id, effects);
    }
  }

  std::vector<Job*> here;
  for (const auto& [id, job] : holding_) {
    if (HasNode(job->status, node)) {
      here.push_back(job);
    }
  }
  for (Job* job : here) {
    Reconcile(*job, node, hello.boot_id(), held[job->status.job_id()], now_ms, effects);
  }
  return effects;
}

void Queue::Reconcile(Job& job, const std::string& node, const std::string& boot_id,
                      const std::vector<int>& held, int64_t now_ms, Effects& effects) {
  const std::string job_id = job.status.job_id();
  for (const int number : held) {
    job.next_helper = std::max(job.next_helper, number + 1);
    if (number >= kFirstHelper && job.helpers.count(number) == 0) {  // from before a restart
      SendForget(node, job_id, effects);
      effects.messages.back().message.mutable_forget()->set_task(number);
    }
  }
  const bool is_rebooted =
      !boot_id.empty() && job.boots.count(node) > 0 && job.boots[node] != boot_id;
  const bool is_failing = std::any_of(job.tasks.begin(), job.tasks.end(),
                                      [](const Task& task) { return task.gram_code != 0; });
  for (size_t number = 0; number < job.tasks.size(); ++number) {
    Task& task = job.tasks[number];
    if (task.node != node || std::count(held.begin(), held.end(), int(number)) > 0) {
      continue;
    }
    if (task.is_ended) {
      task.is_confirmed = true;  // its agent has nothing more to say; the spool holds what there is
    } else if (task.is_started) {
      EndTask(job, int(number), fmt::format("node {} has lost it", node), 17, now_ms, effects);
    } else if (is_rebooted && !IsHeldBack(job, int(number))) {
      EndTask(job, int(number),
              fmt::format("node {} was restarted before it had said that the task started", node),
              17, now_ms, effects);
    } else if (job.status.cancelling() || is_failing) {
      EndTask(job, int(number), "not started", 0, now_ms, effects);
    }
  }
  const bool has_lost = std::any_of(job.tasks.begin(), job.tasks.end(),
                                    [](const Task& task) { return task.gram_code != 0; });
  if (job.status.cancelling() || is_failing) {
    SendKill(node, job_id, 15, 5000, effects);
  } else if (has_lost) {
    EndTheRest(job, now_ms, effects);
  } else {
    Effects starts;
    SendStarts(job, node, true, starts);
    for (Effects::Outgoing& out : starts.messages) {
      const int number = out.message.start().task().task();
      if (std::count(held.begin(), held.end(), number) == 0) {
        effects.messages.push_back(std::move(out));
      }
    }
    if (job.was_suspended && !held.empty()) {  // it may have missed the last word
      proto::ServerMessage::Stop& stop = *To(node, effects).message.mutable_stop();
      stop.set_job_id(job_id);
      stop.set_resume(job.status.state() != proto::SUSPENDED);
    }
  }
  EndIfComplete(job, now_ms, effects);
}

Effects Queue::OnStarted(const std::string& node, const proto::TaskKey& key, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(key.job_id());
  if (IsHelper(key)) {
    return effects;
  }
  if (job == nullptr || !job->has_processors || size_t(key.task()) >= job->tasks.size() ||
      job->tasks[key.task()].node != node) {
    SendKill(node, key.job_id(), 9, 0, effects);
    return effects;
  }
  if (job->tasks[key.task()].is_started) {
    return effects;
  }
  const bool were_held = job->are_starts_held && key.task() == 0;
  proto::JobEvent started;
  started.mutable_task_started()->set_task(key.task());
  started.mutable_task_started()->set_node(node);
  Emit(*job, std::move(started), now_ms, effects);
  BeginArray(*job, now_ms, effects);
  if (were_held && !job->status.cancelling()) {
    SendStarts(*job, "", true, effects);
  }
  return effects;
}

Effects Queue::OnExited(const std::string& node, const proto::AgentMessage::Exited& exited,
                        int64_t now_ms) {
  if (IsHelper(exited.task())) {
    return OnHelperExited(node, exited);
  }
  Effects effects;
  const std::string& job_id = exited.task().job_id();
  const int number = exited.task().task();
  Job* job = FindMutable(job_id);
  if (job == nullptr || !job->has_processors) {
    SendForget(node, job_id, effects);
    return effects;
  }
  if (size_t(number) >= job->tasks.size() || job->tasks[number].node != node) {
    return effects;
  }
  Task& task = job->tasks[number];
  task.is_confirmed = true;
  task.expected = {exited.stdout_size(), exited.stderr_size()};
  task.moved_ms = now_ms;
  if (!task.is_ended) {
    proto::JobEvent ended;
    ended.mutable_task_exited()->set_task(number);
    *ended.mutable_task_exited()->mutable_exit() = exited.exit();
    const bool was_doomed = exited.gram_code() == 0 && task.gram_code != 0;  // LoseNode
    ended.mutable_task_exited()->set_reason(was_doomed ? task.reason : exited.reason());
    ended.mutable_task_exited()->set_gram_code(was_doomed ? task.gram_code : exited.gram_code());
    ended.mutable_task_exited()->set_cpu_ms(exited.cpu_ms());
    ended.mutable_task_exited()->set_max_rss_kb(exited.max_rss_kb());
    Emit(*job, std::move(ended), now_ms, effects);
  } else if (exited.gram_code() != 0) {
    task.gram_code = exited.gram_code();
  }
  const bool has_failed = exited.gram_code() != 0 ||
                          (job->charter && (exited.exit().code() != 0 || exited.exit().signal() != 0));
  if (has_failed && !job->status.cancelling()) {
    ReportFailure(*job, number, exited);
    EndTheRest(*job, now_ms, effects);
  } else if (number == 0 && job->are_starts_held && !task.is_started) {
    for (size_t other = 1; other < job->tasks.size(); ++other) {
      EndTask(*job, int(other), "not started", 0, now_ms, effects);
    }
  }
  EndIfComplete(*job, now_ms, effects);
  return effects;
}

Effects Queue::OnSpooled(const proto::TaskKey& key, int stream, uint64_t size, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(key.job_id());
  if (job != nullptr && job->has_processors && size_t(key.task()) < job->tasks.size()) {
    job->tasks[key.task()].spooled[stream] = size;
    job->tasks[key.task()].moved_ms = now_ms;
    if (job->tasks[key.task()].is_ended) {
      EndIfComplete(*job, now_ms, effects);
    }
  }
  return effects;
}

Effects Queue::OnSpoolFull(const proto::TaskKey& key, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(key.job_id());
  if (job == nullptr || !job->has_processors || size_t(key.task()) >= job->tasks.size()) {
    return effects;
  }
  Task& task = job->tasks[key.task()];
  if (!task.is_output_lost) {
    task.is_output_lost = true;
    KillAll(*job, 15, 5000, effects);
  }
  EndIfComplete(*job, now_ms, effects);
  return effects;
}

Effects Queue::EndStalled(int64_t now_ms) {
  Effects effects;
  std::vector<Job*> cancelled;
  for (const auto& [id, job] : holding_) {
    if (job->status.cancelling()) {
      cancelled.push_back(job);
    }
  }
  for (Job* job : cancelled) {
    for (Task& task : job->tasks) {
      if (task.is_ended && task.is_confirmed && task.moved_ms + kStalledAfterMs < now_ms) {
        task.expected = task.spooled;
      }
    }
    EndIfComplete(*job, now_ms, effects);
  }
  return effects;
}

// A job that is not whole is of no use: what has started of it goes, what has not does not come.
void Queue::EndTheRest(Job& job, int64_t now_ms, Effects& effects) {
  for (size_t other = 1;
       job.are_starts_held && !job.tasks[0].is_started && other < job.tasks.size(); ++other) {
    EndTask(job, int(other), "not started", 0, now_ms, effects);
  }
  if (std::any_of(job.tasks.begin(), job.tasks.end(), [](const Task& t) { return !t.is_ended; })) {
    KillAll(job, 15, 5000, effects);
  }
}

void Queue::EndTask(Job& job, int number, const std::string& reason, int gram_code, int64_t now_ms,
                    Effects& effects) {
  Task& task = job.tasks[number];
  if (task.is_ended) {
    return;
  }
  proto::JobEvent exited;
  exited.mutable_task_exited()->set_task(number);
  exited.mutable_task_exited()->mutable_exit();
  exited.mutable_task_exited()->set_reason(reason);
  exited.mutable_task_exited()->set_gram_code(gram_code);
  Emit(job, std::move(exited), now_ms, effects);
  task.is_confirmed = true;
  task.expected = {0, 0};
}

void Queue::KillAll(const Job& job, int signal, int64_t grace_ms, Effects& effects) const {
  for (const proto::Placement& place : job.status.placement()) {
    SendKill(place.node(), job.status.job_id(), signal, grace_ms, effects);
  }
}

void Queue::EndIfComplete(Job& job, int64_t now_ms, Effects& effects) {
  if (IsFinal(job.status.state())) {
    return;
  }
  if (job.status.has_array()) {
    EndArrayIfComplete(job, now_ms, effects);
    return;
  }
  if (!job.has_processors) {
    if (job.status.cancelling()) {
      End(job, EndOf(job), now_ms, effects);
    }
    return;
  }
  if (std::all_of(job.tasks.begin(), job.tasks.end(),
                  [](const Task& task) { return task.is_complete(); })) {
    End(job, EndOf(job), now_ms, effects);
  }
}

void Queue::End(Job& job, proto::JobEvent::Ended ended, int64_t now_ms, Effects& effects) {
  const bool had_helpers = !job.helpers.empty();
  const bool had_processors = job.has_processors;
  for (const Task& task : job.tasks) {
    ended.set_cpu_ms(ended.cpu_ms() + task.cpu_ms);
    ended.set_max_rss_kb(std::max(ended.max_rss_kb(), task.max_rss_kb));
  }
  proto::JobEvent event;
  *event.mutable_ended() = std::move(ended);
  Emit(job, std::move(event), now_ms, effects);
  if (job.array != nullptr) {
    EndArrayIfComplete(*job.array, now_ms, effects);
  }
  effects.is_pass_due |= std::exchange(followers_freed_, false);
  EndDoomed(now_ms, effects);
  if (!had_processors) {
    return;
  }
  if (had_helpers) {
    KillAll(job, 9, 0, effects);
  }
  for (const proto::Placement& place : job.status.placement()) {
    SendForget(place.node(), job.status.job_id(), effects);
    if (job.has_engine) {
      boots_.erase(place.node());  // its pilots were its own
    }
  }
  effects.is_pass_due |= !job.has_engine;
}

}  // namespace sekisho::qserver
