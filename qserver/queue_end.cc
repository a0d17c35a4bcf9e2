// SPDX-License-Identifier: Apache-2.0
// The queue's half about how jobs end: what their tasks' ends make of them, what comes after the run, and the rest.
#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "common/job_state.h"
#include "qserver/queue.h"
#include "qserver/staging_errors.h"
#include "rsl/gram_errors.h"

namespace sekisho::qserver {
namespace {

// What its user can do when a task could not be started, or was not let run to its end.
std::string RemedyOf(int gram_code) {
  switch (gram_code) {
    case rsl::gram::NO_RESOURCES:
      return "the fault is its node's: submit it again, and tell the site's administrators if it stays";
    case rsl::gram::BAD_DIRECTORY:
      return "name a directory that its account may enter on the nodes";
    case rsl::gram::EXECUTABLE_NOT_FOUND:
      return "name a program that is there on the nodes, or send yours: --stage-exe";
    case rsl::gram::EXECUTABLE_PERMISSIONS:
      return "make it executable for its account: chmod +x";
    case rsl::gram::STDIN_NOT_FOUND:
      return "name a file that is there on the nodes, or send yours: --stdin client://PATH";
    case rsl::gram::OPENING_STDOUT:
    case rsl::gram::OPENING_STDERR:
      return "name a file in a directory that is there on the nodes and that its account may write to";
    case rsl::gram::BAD_ARGUMENTS:
      return "give it less by arguments and environment, e.g. a file that it reads (--stage-in), and only names that "
             "variables can have";
    case rsl::gram::FORKING_EXECUTABLE:
      return "its node takes no more processes for now: submit it again, and tell the site's administrators if it stays";
    case rsl::gram::MPIRUN_NOT_FOUND:
      return "tell the site's administrators what is missing; a program that needs no mpirun runs with (job_type=multiple)";
    case rsl::gram::INVALID_USER_NAME:
      return "tell the site's administrators: its nodes must know the account that the site maps you to, which is not root";
    default:  // it ran, and a limit, a node or its own end came between
      return "what it said until then is in `sekisho output JOB`; submit it again, with more of what it ran out of";
  }
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
  if (job.is_output_lost) {
    ended.set_state(proto::FAILED);
    ended.set_gram_code(17);
    ended.set_reason(kNoRoom);
    ended.set_remedy("fetch what came (sekisho output JOB), and submit it again with its output in a file: --stdout PATH");
    *ended.mutable_exit() = JobExit(job.status);
    return ended;
  }
  for (size_t number = 0; number < job.tasks.size(); ++number) {
    const Task& task = job.tasks[number];
    if (task.gram_code != 0) {
      ended.set_state(proto::FAILED);
      ended.set_gram_code(task.gram_code);
      ended.set_reason(job.tasks.size() == 1
                           ? task.reason
                           : fmt::format("task {} on {}: {}", number, task.node, task.reason));
      ended.set_remedy(RemedyOf(task.gram_code));
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
    effects.Kill(place.node(), job.status.job_id(), signal, grace_ms);
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
      StageOutOrEnd(job, now_ms, effects);
    }
    return;
  }
  if (std::all_of(job.tasks.begin(), job.tasks.end(),
                  [](const Task& task) { return task.is_complete(); })) {
    StageOutOrEnd(job, now_ms, effects);
  }
}

void Queue::StageOutOrEnd(Job& job, int64_t now_ms, Effects& effects) {
  if (job.is_staging_out) {
    return;  // it ends when that is done
  }
  if (!job.has_stage_out || job.is_staging) {
    End(job, EndOf(job), now_ms, effects);
    return;
  }
  proto::JobEvent staging_out;
  staging_out.mutable_staging_out()->set_reason("its files are put where they are to go");
  Emit(job, std::move(staging_out), now_ms, effects);
  effects.is_pass_due = true;  // its processors are free
}

bool Queue::HasSpoken(const std::string& job_id) const {
  const Job* job = Find(job_id);
  // A task that ends at once may have ended before anybody heard that it had started.
  const auto has_run = [](const Task& task) {
    return task.is_started || task.exit.signal() != 0 || task.spooled[0] > 0 || task.spooled[1] > 0;
  };
  return job != nullptr && job->has_processors && !job->status.cancelling() &&
         (EndOf(*job).state() == proto::DONE || std::any_of(job->tasks.begin(), job->tasks.end(), has_run));
}

bool Queue::IsToGo(const std::string& job_id, int number, bool is_stream) const {
  const Job* job = Find(job_id);
  if (job == nullptr || !HasSpoken(job_id) || (!is_stream && EndOf(*job).state() != proto::DONE)) {
    return false;
  }
  const auto& gone = job->status.staged_out();
  return std::none_of(gone.begin(), gone.end(), [&](const proto::StagedFile& file) { return file.number() == number; });
}

Effects Queue::OnStageOutDone(const std::string& job_id, const absl::Status& status, int64_t now_ms) {
  Effects effects;
  Job* job = FindMutable(job_id);
  if (job == nullptr || !job->is_staging_out || IsFinal(job->status.state())) {
    return effects;
  }
  proto::JobEvent::Ended ended = EndOf(*job);
  if (!status.ok() && ended.state() == proto::FAILED) {
    ended.set_reason(ended.reason() + "; " + Message(status));
  } else if (!status.ok() && ended.state() == proto::DONE) {
    ended.set_state(proto::FAILED);
    ended.set_gram_code(GramCode(status) != 0 ? GramCode(status) : errors::kStageOutFailed);
    ended.set_reason(Message(status));
    ended.set_remedy(Remedy(status));
  }
  End(*job, std::move(ended), now_ms, effects);
  return effects;
}

void Queue::End(Job& job, proto::JobEvent::Ended ended, int64_t now_ms, Effects& effects) {
  // An array may end before it has begun, and elements that somebody meant alone are there already.
  for (const auto& [index, element] : job.elements) {
    if (!IsFinal(element->status.state())) {
      End(*element, ended, now_ms, effects);
    }
  }
  if (IsFinal(job.status.state())) {
    return;  // with the last of them
  }
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
    effects.Forget(place.node(), job.status.job_id());
    if (job.has_engine) {
      boots_.erase(place.node());  // its pilots were its own
    }
  }
  effects.is_pass_due |= !job.has_engine;
}

}  // namespace sekisho::qserver
