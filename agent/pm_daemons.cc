// SPDX-License-Identifier: Apache-2.0
#include "agent/pm_daemons.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <asio/experimental/awaitable_operators.hpp>
#include <asio/read_until.hpp>

#include "agent/errors.h"
#include "common/log.h"
#include "common/refusal.h"

namespace sekisho::agent {

using asio::experimental::awaitable_operators::operator||;

namespace {

namespace fs = std::filesystem;

constexpr int kTask = 999'999;  // helpers count from 1,000,000
constexpr std::chrono::seconds kQuestionWithin{10};
constexpr size_t kLineMax = 64;
constexpr std::chrono::seconds kWaitAtMost{20};  // as libpm does
constexpr int kStrangersMost = 1024;
constexpr int kStrangersOfAccount = 64;  // one must not keep the others out
constexpr size_t kWaitingMost = 256;     // of a job: each holds a descriptor of ours

uid_t CallerOf(LocalSocket& socket) {
  ucred who{};
  socklen_t size = sizeof who;
  const int result = getsockopt(socket.native_handle(), SOL_SOCKET, SO_PEERCRED, &who, &size);
  return result == 0 ? who.uid : static_cast<uid_t>(-1);
}

// The folder is the account's: what a link there leads to is looked at with root's rights, and may take for ever.
bool IsSocket(const std::string& path) {
  struct stat info {};
  return lstat(path.c_str(), &info) == 0 && S_ISSOCK(info.st_mode);
}

// One short line into an empty socket: it fits.
void Answer(LocalSocket& socket, const std::string& line) {
  std::error_code ignored;
  socket.send(asio::buffer(line + "\n"), 0, ignored);
}

}  // namespace

PmDaemons::PmDaemons(Loop& loop, Watcher& watcher, Settings settings, FindJob find_job)
    : loop_(loop),
      settings_(std::move(settings)),
      find_job_(std::move(find_job)),
      watcher_(watcher),
      daemons_(loop, watcher, nobody_,
               {.state_directory = settings_.state_directory,
                .task_program = settings_.task_program,
                .node = settings_.node,
                .output_limit = 0,
                .on_change = [this] { OnChange(); },
                .judge_end = nullptr}),
      acceptor_(loop) {}

absl::Status PmDaemons::Recover(const proto::AgentMessage::Hello& held) {
  RETURN_IF_ERROR(daemons_.Recover());
  proto::AgentMessage::Hello ours;
  daemons_.FillHello(ours);
  std::set<std::string> wanted;
  for (const auto& task : held.held()) {
    wanted.insert(task.job_id());
  }
  for (const auto& daemon : ours.held()) {
    // Without a folder nobody can reach it.
    if (wanted.count(daemon.job_id()) == 0 || access(FolderOf(daemon.job_id()).c_str(), F_OK) != 0) {
      Forget(daemon.job_id());
    } else {
      Watch(daemon.job_id());  // it may not listen yet
    }
  }

  // Folders that outlived the records of their daemons.
  std::vector<fs::path> stale;
  std::error_code error;
  for (fs::directory_iterator entry(settings_.folder, error), end; !error && entry != end; entry.increment(error)) {
    if (wanted.count(entry->path().filename().string()) == 0) {
      stale.push_back(entry->path());
    }
  }
  for (const fs::path& path : stale) {
    fs::remove_all(path, error);
  }
  return absl::OkStatus();
}

// Everybody may knock: who runs a task of the job is let in.
absl::Status PmDaemons::Listen(const std::string& door) {
  std::error_code error;
  fs::create_directories(settings_.folder, error);
  if (chmod(settings_.folder.c_str(), 0711) != 0) {
    return errors::BadDirectory(settings_.folder, std::strerror(errno));
  }
  RETURN_IF_ERROR(ListenAt(acceptor_, door));
  const auto serve = [this](LocalSocket socket) {
    const uid_t caller = CallerOf(socket);
    const auto same = strangers_of_.find(caller);
    if (strangers_ < kStrangersMost && (same == strangers_of_.end() || same->second < kStrangersOfAccount)) {
      co_spawn(loop_, Serve(std::make_shared<LocalSocket>(std::move(socket)), caller),
               Logged("a process that asks for sekisho-pmd"));
    }
  };
  co_spawn(loop_, AcceptAll(loop_, acceptor_, serve), Vital("the door to sekisho-pmd"));
  return absl::OkStatus();
}

awaitable<void> PmDaemons::Serve(std::shared_ptr<LocalSocket> socket, uid_t caller) {
  // Who asks for which job.
  ++strangers_;
  ++strangers_of_[caller];
  std::string line;
  const auto came = co_await (
      asio::async_read_until(*socket, asio::dynamic_buffer(line, kLineMax), '\n', kAsTuple) ||
      Sleep(loop_, kQuestionWithin));
  --strangers_;
  if (--strangers_of_[caller] == 0) {
    strangers_of_.erase(caller);
  }
  const std::string job_id = line.substr(0, line.find('\n'));
  if (came.index() != 0 || job_id.size() == line.size() || !task::IsJobId(job_id)) {
    co_return;
  }
  const task::Spec* asking = find_job_(job_id);
  if (asking == nullptr || (caller != asking->uid && caller != 0)) {
    co_return Answer(*socket, "!no running task of this account's belongs to the job");
  }

  // Where its daemon listens, or will.
  const bool is_reachable = SocketOf(job_id).size() + 1 < sizeof(sockaddr_un::sun_path);  // it is made as "pmd~"
  if (!is_reachable || access(settings_.program.c_str(), X_OK) != 0) {
    co_return Answer(*socket, "-");
  }
  const absl::Status status = Start(*asking);
  if (!status.ok()) {
    spdlog::error("{} job={}", Message(status), job_id);
    co_return Answer(*socket, "!" + Message(status));
  }
  if (IsSocket(SocketOf(job_id))) {
    co_return Answer(*socket, SocketOf(job_id));
  }
  if (daemons_.FindRunning(job_id) == nullptr) {
    co_return Answer(*socket, "!sekisho-pmd cannot be started");
  }
  if (jobs_[job_id].waiting.size() >= kWaitingMost) {
    co_return Answer(*socket, "!too many wait");
  }
  jobs_[job_id].waiting.push_back(socket);

  // Until Tell closes it, its owner hangs up, or it has waited long enough.
  co_await (socket->async_wait(LocalSocket::wait_read, kAsTuple) || Sleep(loop_, kWaitAtMost));
  const auto job = jobs_.find(job_id);
  if (job != jobs_.end() && std::erase(job->second.waiting, socket) > 0) {
    Answer(*socket, "!sekisho-pmd does not listen");
  }
}

// Unless it runs.
absl::Status PmDaemons::Start(const task::Spec& asking) {
  const std::string& job_id = asking.job_id;
  const std::string folder = FolderOf(job_id);
  if (daemons_.FindRunning(job_id) != nullptr) {
    return absl::OkStatus();
  }
  Forget(job_id);  // one that was killed
  if (mkdir(folder.c_str(), 0700) != 0 || chown(folder.c_str(), asking.uid, asking.gid) != 0) {
    return errors::BadDirectory(folder, std::strerror(errno));
  }
  Watch(job_id);
  proto::ServerMessage message;
  proto::ServerMessage::Start& start = *message.mutable_start();
  start.mutable_task()->set_job_id(job_id);
  start.mutable_task()->set_task(kTask);
  start.set_account(asking.account);
  start.set_directory(folder);
  start.set_umask(077);
  (*start.mutable_environment())["SEKISHO_JOB_ID"] = job_id;  // whose it is, when its supervisor was killed
  for (const std::string& word : {settings_.program, std::string("--socket"), SocketOf(job_id)}) {
    start.add_argument(word);
  }
  daemons_.Handle(message);
  spdlog::info("sekisho-pmd started job={}", job_id);
  return absl::OkStatus();
}

// It is bound under another name and renamed when it can be connected to.
void PmDaemons::Watch(const std::string& job_id) {
  jobs_[job_id].watch = watcher_.Add(FolderOf(job_id), [this, job_id](std::string_view) {
    if (IsSocket(SocketOf(job_id))) {
      Tell(job_id, SocketOf(job_id));
    }
  });
}

void PmDaemons::Tell(const std::string& job_id, const std::string& answer) {
  const auto job = jobs_.find(job_id);
  if (job == jobs_.end()) {
    return;
  }
  for (const auto& socket : std::exchange(job->second.waiting, {})) {
    Answer(*socket, answer);
    std::error_code ignored;
    socket->close(ignored);  // its Serve ends
  }
}

// One may have ended before it listened.
void PmDaemons::OnChange() {
  for (const auto& [job_id, job] : jobs_) {
    if (!job.waiting.empty() && daemons_.FindRunning(job_id) == nullptr) {
      Tell(job_id, "!sekisho-pmd ended at once");
    }
  }
}

void PmDaemons::Forget(const std::string& job_id) {
  Tell(job_id, "!sekisho-pmd has ended");
  if (const auto job = jobs_.find(job_id); job != jobs_.end()) {
    watcher_.Remove(job->second.watch);
    jobs_.erase(job);
  }
  proto::ServerMessage message;
  message.mutable_forget()->set_job_id(job_id);
  daemons_.Handle(message);
  std::error_code ignored;
  fs::remove_all(FolderOf(job_id), ignored);
}

void PmDaemons::Handle(const proto::ServerMessage& message) {
  if (message.has_forget() && message.forget().task() == 0 &&
      task::IsJobId(message.forget().job_id())) {
    Forget(message.forget().job_id());
  }
}

}  // namespace sekisho::agent
