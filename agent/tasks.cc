// SPDX-License-Identifier: Apache-2.0
#include "agent/tasks.h"

#include <sys/stat.h>
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "agent/errors.h"
#include "common/log.h"
#include "common/refusal.h"

namespace sekisho::agent {

using proto::ServerMessage;

Tasks::Tasks(Loop& loop, Watcher& watcher, Outbox& outbox, Settings settings)
    : loop_(loop),
      outbox_(outbox),
      settings_(std::move(settings)),
      parts_{loop, watcher, outbox, settings_.output_limit,
             [this](HeldTask& task) { OnChange(task); }, settings_.judge_end} {}

absl::Status Tasks::Recover() {
  std::error_code error;
  std::filesystem::create_directories(settings_.state_directory, error);
  if (chmod(settings_.state_directory.c_str(), 0711) != 0) {
    return errors::BadDirectory(settings_.state_directory, std::strerror(errno));
  }
  for (const std::string& path : ListTaskDirectories(settings_.state_directory)) {
    const auto spec = TaskDirectory(path).ReadSpec();
    if (!spec || path != TaskPath(settings_.state_directory, spec->job_id, spec->task)) {
      RemoveTaskDirectory(path);  // never begun: the server will say Start again
      continue;
    }
    Hold(path, *spec).Adopt(settings_.task_program, settings_.node.boot_id);
  }
  RemoveEmptyJobDirectories(settings_.state_directory);
  if (!tasks_.empty()) {
    spdlog::info("took up {} tasks, {} of them running", tasks_.size(), running());
  }
  return absl::OkStatus();
}

void Tasks::FillHello(proto::AgentMessage::Hello& hello) const {
  for (const auto& [key, task] : tasks_) {
    proto::TaskKey& held = *hello.add_held();
    held.set_job_id(key.first);
    held.set_task(key.second);
    if (const std::string& launch = task->spec().launch; !launch.empty()) {
      proto::AgentMessage::Helper& helper = *hello.add_helper();
      *helper.mutable_task() = held;
      helper.set_launch(launch);
    }
  }
}

void Tasks::OnWelcome(const ServerMessage::Welcome& welcome) {
  std::map<Key, const ServerMessage::Welcome::Resume*> resume;
  for (const auto& one : welcome.resume()) {
    resume[{one.task().job_id(), one.task().task()}] = &one;
  }
  for (const auto& [key, task] : tasks_) {
    const auto found = resume.find(key);
    const bool is_known = found != resume.end();
    task->Resume(is_known ? found->second->stdout_offset() : 0,
                 is_known ? found->second->stderr_offset() : 0);
  }
}

void Tasks::AnnounceAll() {
  for (const auto& [key, task] : tasks_) {
    task->Announce();
  }
}

void Tasks::Handle(const ServerMessage& message) {
  switch (message.kind_case()) {
    case ServerMessage::kStart:
      return Start(message.start());
    case ServerMessage::kKill:
      return TellJob(message.kill().job_id(),
                     {task::Command::kKill, message.kill().signal(), message.kill().grace_ms()});
    case ServerMessage::kRelease:
      return TellJob(message.release().job_id(), {task::Command::kRelease});
    case ServerMessage::kStop:
      return TellJob(message.stop().job_id(),
                     {message.stop().resume() ? task::Command::kResume : task::Command::kStop});
    case ServerMessage::kInput:
      if (HeldTask* task = Find(message.input().task())) {
        task->TakeInput(message.input().offset(), message.input().data(), message.input().end());
      }
      return;
    case ServerMessage::kOutputTaken:
      return OutputTaken(message.output_taken());
    case ServerMessage::kResume:
      return Resume(message.resume());
    case ServerMessage::kForget:
      return Forget(message.forget().job_id(), message.forget().task());
    default:
      return;
  }
}

// Of a task that runs; another needs none any more.
void Tasks::ReplaceFiles(const ServerMessage::Start& start) {
  const HeldTask* held = Find(start.task());
  for (auto file = start.file().begin(); held != nullptr && held->is_running() && file != start.file().end(); ++file) {
    const absl::Status status = task::IsFileName(file->first)
                                    ? held->directory().WriteSmallFile(held->spec(), file->first, file->second)
                                    : errors::BadFileName(file->first);
    if (!status.ok()) {
      spdlog::error("a small file cannot be replaced job={} task={}: {}", start.task().job_id(), start.task().task(),
                    Message(status));
    }
  }
}

void Tasks::Start(const ServerMessage::Start& start) {
  if (start.account().empty()) {
    return ReplaceFiles(start);
  }
  const std::string& job_id = start.task().job_id();
  const auto path = TaskPath(settings_.state_directory, job_id, start.task().task());
  if (!path) {
    spdlog::error("the queue server asks for a task with an impossible name job={}",
                  Printable(job_id));
    return;
  }
  // Idempotent.
  if (HeldTask* held = Find(start.task())) {
    return held->Announce();
  }

  // Without a directory nothing can be kept, so nothing is begun either.
  if (const absl::Status status =
          MakeTaskDirectory(settings_.state_directory, job_id, start.task().task());
      !status.ok()) {
    spdlog::error("{} job={}", Message(status), job_id);
    proto::AgentMessage message;
    *message.mutable_exited()->mutable_task() = start.task();
    message.mutable_exited()->set_gram_code(task::kNoResources);
    message.mutable_exited()->set_reason(Message(status));
    outbox_.Push(std::move(message));
    return;
  }

  // Who, what, where.
  auto spec = SpecOf(start, *path);
  task::Spec refused;
  refused.job_id = job_id;
  refused.task = start.task().task();
  refused.boot_id = settings_.node.boot_id;
  const TaskDirectory directory(*path);
  absl::Status status = spec.ok() ? CheckPrograms(start) : spec.status();
  for (auto file = start.file().begin(); status.ok() && file != start.file().end(); ++file) {
    status = directory.WriteSmallFile(*spec, file->first, file->second);
  }
  if (status.ok()) {
    status = directory.WriteSpec(*spec);
  }

  // From here on an agent's death does not lose it.
  if (!status.ok()) {
    Hold(*path, std::move(refused)).Refuse(GramCodeOf(status), Message(status));
    return;
  }
  Hold(*path, *std::move(spec)).Begin(settings_.task_program);
  settings_.on_change();
}

absl::StatusOr<task::Spec> Tasks::SpecOf(const ServerMessage::Start& start,
                                         const std::string& path) {
  ASSIGN_OR_RETURN(const Account account, accounts_.Find(start.account(), Accounts::Clock::now()));
  return BuildSpec(start, account, settings_.node, path);
}

HeldTask& Tasks::Hold(const std::string& path, task::Spec spec) {
  const Key key{spec.job_id, spec.task};
  auto& slot = tasks_[key];
  slot = std::make_unique<HeldTask>(parts_, path, std::move(spec));
  return *slot;
}

void Tasks::TellJob(const std::string& job_id, const task::Order& order) {
  for (auto task = tasks_.lower_bound({job_id, 0});
       task != tasks_.end() && task->first.first == job_id; ++task) {
    task->second->Tell(order);
  }
}

void Tasks::Kill(const std::string& job_id, int task) {
  if (const auto found = tasks_.find({job_id, task}); found != tasks_.end()) {
    found->second->Tell({task::Command::kKill, SIGKILL, 0});
  }
}

void Tasks::TakeEnd(const std::string& job_id, int task) {
  if (const auto found = tasks_.find({job_id, task}); found != tasks_.end()) {
    found->second->TakeEnd();
  }
}

void Tasks::OutputTaken(const ServerMessage::OutputTaken& taken) {
  const bool was_full = !outbox_.HasRoom();
  if (HeldTask* task = Find(taken.task())) {
    task->OutputTaken(taken.stream(), taken.offset());
  }
  PumpIfRoom(was_full);
}

void Tasks::Resume(const ServerMessage::Welcome::Resume& resume) {
  const bool was_full = !outbox_.HasRoom();
  if (HeldTask* task = Find(resume.task())) {
    task->Recall();
    task->Resume(resume.stdout_offset(), resume.stderr_offset());
  }
  PumpIfRoom(was_full);
}

void Tasks::PumpIfRoom(bool was_full) {
  if (was_full && outbox_.HasRoom()) {
    for (const auto& [key, task] : tasks_) {
      task->PumpOutput();
    }
  }
}

void Tasks::Forget(const std::string& job_id, int helper) {
  auto task = tasks_.lower_bound({job_id, helper});
  while (task != tasks_.end() && task->first.first == job_id &&
         (helper == 0 || task->first.second == helper)) {
    const auto next = std::next(task);
    task->second->Forget();
    if (task->second->is_running()) {  // nobody wants it any more
      task->second->Tell({task::Command::kKill, SIGKILL, 0});
    } else {
      Drop(Key(task->first));
    }
    task = next;
  }
}

void Tasks::Drop(const Key& key) {
  const auto found = tasks_.find(key);
  if (found != tasks_.end()) {
    RemoveTaskDirectory(found->second->directory().path());
    tasks_.erase(found);
  }
}

// The task itself is calling, so it is dropped a moment later.
void Tasks::OnChange(HeldTask& task) {
  settings_.on_change();
  if (task.is_forgotten() && !task.is_running()) {
    asio::post(loop_, [this, key = Key(task.spec().job_id, task.spec().task)] { Drop(key); });
  }
}

void Tasks::Check() {
  for (const auto& [key, task] : tasks_) {
    task->Check(settings_.task_program);
  }
}

size_t Tasks::running() const {
  return static_cast<size_t>(std::count_if(
      tasks_.begin(), tasks_.end(), [](const auto& entry) { return entry.second->is_running(); }));
}

const task::Spec* Tasks::FindRunning(const std::string& job_id) const {
  for (auto task = tasks_.lower_bound({job_id, 0});
       task != tasks_.end() && task->first.first == job_id; ++task) {
    if (task->second->is_running()) {
      return &task->second->spec();
    }
  }
  return nullptr;
}

const task::Spec* Tasks::FindByToken(const std::string& job_id, const std::string& token) const {
  for (const auto& [key, task] : tasks_) {
    if (key.first == job_id && task->is_running() && !task->is_forgotten() && !token.empty() &&
        task->spec().launch_token == token) {
      return &task->spec();
    }
  }
  return nullptr;
}

HeldTask* Tasks::Find(const proto::TaskKey& key) {
  const auto found = tasks_.find({key.job_id(), key.task()});
  return found == tasks_.end() ? nullptr : found->second.get();
}

}  // namespace sekisho::agent
