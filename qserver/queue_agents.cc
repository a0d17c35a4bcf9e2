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

}  // namespace

proto::ServerMessage::Welcome Queue::Welcome(const std::string& node,
                                             const proto::AgentMessage::Hello& hello) const {
  proto::ServerMessage::Welcome welcome;
  welcome.set_site(settings_.site);
  welcome.set_relaunches(true);
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
    unheard_.erase(node);
  } else {
    attached_.erase(node);
  }
}

Effects Queue::OnAttached(const std::string& node, const proto::AgentMessage::Hello& hello,
                          int64_t now_ms) {
  Effects effects;
  effects.is_pass_due = true;
  boots_[node] = hello.boot_id();
  relaunching_.erase(node);
  if (hello.relaunches()) {
    relaunching_.insert(node);
  }
  Compare(node, hello, false, now_ms, effects);
  return effects;
}

Effects Queue::OnHelloAgain(const std::string& node, const proto::AgentMessage::Hello& hello, int64_t now_ms) {
  Effects effects;
  Compare(node, hello, true, now_ms, effects);
  return effects;
}

void Queue::Compare(const std::string& node, const proto::AgentMessage::Hello& hello, bool is_again, int64_t now_ms,
                    Effects& effects) {
  std::map<std::string, std::vector<int>> held;
  for (const proto::TaskKey& key : hello.held()) {
    held[key.job_id()].push_back(key.task());
  }

  // What it holds of jobs that ended here, or that are not ours to run there, is to go.
  for (const auto& [job_id, tasks] : held) {
    const Job* job = Find(job_id);
    if (job == nullptr || !job->has_processors || !HasNode(job->status, node)) {
      effects.Kill(node, job_id, 9, 0);
      effects.Forget(node, job_id);
    }
  }

  std::vector<Job*> here;
  for (const auto& [id, job] : holding_) {
    if (HasNode(job->status, node)) {
      here.push_back(job);
    }
  }
  for (Job* job : here) {
    std::vector<int>& there = held[job->status.job_id()];
    MeetHelpers(*job, node, hello, is_again, effects);
    GiveTime(*job, node, is_again, there);
    Reconcile(*job, node, hello.boot_id(), there, is_again, now_ms, effects);
  }
}

// On a stream that stands a Start may be on its way: what is missing for the first time counts as held.
void Queue::GiveTime(Job& job, const std::string& node, bool is_again, std::vector<int>& held) {
  for (int number = 0; number < int(job.tasks.size()); ++number) {
    Task& task = job.tasks[number];
    if (task.node != node) {
      continue;
    }
    const bool is_due = task.is_started || task.is_ended || !IsHeldBack(job, number);
    const bool was_missing = task.is_missing;
    task.is_missing = is_again && is_due && std::count(held.begin(), held.end(), number) == 0;
    if (is_again && !(task.is_missing && was_missing)) {
      held.push_back(number);
    }
  }
}

void Queue::Reconcile(Job& job, const std::string& node, const std::string& boot_id, const std::vector<int>& held,
                      bool is_again, int64_t now_ms, Effects& effects) {
  const std::string job_id = job.status.job_id();
  for (const int number : held) {
    if (number < kHelpersEnd) {
      job.next_helper = std::max(job.next_helper, number + 1);
    }
  }
  const bool is_rebooted =
      !boot_id.empty() && job.boots.count(node) > 0 && job.boots[node] != boot_id;
  const bool is_failing = job.is_output_lost || std::any_of(job.tasks.begin(), job.tasks.end(),
                                                            [](const Task& task) { return task.gram_code != 0; });
  for (size_t number = 0; number < job.tasks.size(); ++number) {
    Task& task = job.tasks[number];
    if (task.node != node || std::count(held.begin(), held.end(), int(number)) > 0) {
      continue;
    }
    if (task.is_ended) {
      task.is_confirmed = true;  // its agent has nothing more to say; the spool holds what there is
      task.expected = task.spooled;
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
    if (!is_again) {
      effects.Kill(node, job_id, 15, 5000);
    }
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
    if (job.was_suspended && !held.empty() && !is_again) {  // it may have missed the last word
      proto::ServerMessage::Stop& stop = *effects.To(node).mutable_stop();
      stop.set_job_id(job_id);
      stop.set_resume(job.status.state() != proto::SUSPENDED);
    }
  }
  EndIfComplete(job, now_ms, effects);
}

Effects Queue::OnStarted(const std::string& node, const proto::TaskKey& key, int64_t now_ms) {
  if (IsHelper(key)) {
    return OnHelperStarted(node, key);
  }
  Effects effects;
  Job* job = FindMutable(key.job_id());
  if (job == nullptr || !job->has_processors || size_t(key.task()) >= job->tasks.size() ||
      job->tasks[key.task()].node != node) {
    effects.Kill(node, key.job_id(), 9, 0);
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
    effects.Forget(node, job_id);
    return effects;
  }
  if (size_t(number) >= job->tasks.size() || job->tasks[number].node != node) {
    return effects;
  }
  Task& task = job->tasks[number];
  const std::array<uint64_t, 2> expected = {exited.stdout_size(), exited.stderr_size()};
  const bool is_news = !task.is_confirmed || task.expected != expected;  // else it is the agent's next round
  task.is_confirmed = true;
  task.expected = expected;
  if (is_news) {
    task.moved_ms = now_ms;
  }
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
                          (job->charter() && (exited.exit().code() != 0 || exited.exit().signal() != 0));
  if (has_failed && is_news && !job->status.cancelling()) {
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
  task.is_output_lost = true;
  if (!job->is_output_lost) {  // an event: its tasks are killed when the reason is on disk, and not if there is no room for that
    proto::JobEvent lost;
    lost.mutable_waiting()->set_reason(kNoRoom);
    Emit(*job, std::move(lost), now_ms, effects);
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

}  // namespace sekisho::qserver
