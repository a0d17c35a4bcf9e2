// SPDX-License-Identifier: Apache-2.0
#include "agent/task_directory.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <utility>

#include "agent/errors.h"
#include "agent/rank/shared_memory.h"
#include "agent/task/record.h"

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;

absl::Status Check(bool ok, const std::string& path) {
  return ok ? absl::OkStatus() : errors::BadDirectory(path, std::strerror(errno));
}

}  // namespace

std::optional<std::string> TaskPath(const std::string& state, const std::string& job_id, int task) {
  if (!task::IsJobId(job_id) || task < 0) {
    return std::nullopt;
  }
  return fmt::format("{}/{}/{}", state, job_id, task);
}

absl::Status MakeTaskDirectory(const std::string& state, const std::string& job_id, int task) {
  const std::string job = state + "/" + job_id;
  const std::string path = fmt::format("{}/{}", job, task);
  RETURN_IF_ERROR(Check(mkdir(job.c_str(), 0711) == 0 || errno == EEXIST, job));
  return Check(mkdir(path.c_str(), 0711) == 0, path);
}

std::vector<std::string> ListTaskDirectories(const std::string& state) {
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& job : fs::directory_iterator(state, error)) {
    if (!task::IsJobId(job.path().filename().string()) || !job.is_directory(error)) {
      continue;
    }
    for (const auto& task : fs::directory_iterator(job.path(), error)) {
      if (task.is_directory(error)) {
        found.push_back(task.path().string());
      }
    }
  }
  return found;
}

void RemoveTaskDirectory(const std::string& path) {
  // An agent that is killed in the middle of this must not find a task that has not begun, which it would start.
  unlink((path + "/" + task::kSpecFile).c_str());
  // Who has it open to read must not keep the disk in our name.
  for (const char* name : {task::kStdoutFile, task::kStderrFile}) {
    const int fd = open((path + "/" + name).c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    struct stat facts {};
    if (fd >= 0 && fstat(fd, &facts) == 0 && facts.st_uid == geteuid() && ftruncate(fd, 0) != 0) {
      errno = 0;  // then it goes with its last reader
    }
    if (fd >= 0) {
      close(fd);
    }
  }
  std::error_code error;
  fs::remove_all(path, error);
  fs::remove_all(SharedMemoryOf(path), error);  // of ranks that were killed with their server
  rmdir(fs::path(path).parent_path().c_str());
}

void RemoveEmptyJobDirectories(const std::string& state) {
  std::error_code error;
  std::vector<fs::path> jobs;
  for (const auto& entry : fs::directory_iterator(state, error)) {
    if (task::IsJobId(entry.path().filename().string())) {
      jobs.push_back(entry.path());
    }
  }
  for (const fs::path& job : jobs) {
    rmdir(job.c_str());  // which refuses any other
  }
}

TaskDirectory::TaskDirectory(std::string path) : path_(std::move(path)) {}

TaskDirectory::~TaskDirectory() { LetGo(); }

int TaskDirectory::fd() const {
  if (fd_ < 0) {
    fd_ = open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  }
  return fd_;
}

void TaskDirectory::LetGo() const {
  if (fd_ >= 0) {
    close(std::exchange(fd_, -1));
  }
}

absl::Status TaskDirectory::WriteSpec(const task::Spec& spec) const {
  return Check(WriteFile(fd(), task::kSpecFile, task::EncodeSpec(spec), task::Durability::kProcess),
               path_);
}

absl::Status TaskDirectory::WriteEnded(const task::Ended& ended) const {
  return Check(
      WriteFile(fd(), task::kExitFile, task::EncodeEnded(ended), task::Durability::kMachine), path_);
}

absl::Status TaskDirectory::CheckRoom() const {
  return Check(task::ReserveFile(fd(), task::kExitFile, task::kRecordBytesMost), path_);
}

absl::Status TaskDirectory::WriteSmallFile(const task::Spec& spec, const std::string& name,
                                           const std::string& content) const {
  const bool is_root = geteuid() == 0;
  RETURN_IF_ERROR(Check(mkdirat(fd(), task::kSmallFiles, 0700) == 0 || errno == EEXIST, path_));
  const int folder =
      openat(fd(), task::kSmallFiles, O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);
  // Made beside the folder, where only we write, and moved in whole: the task may be at work there.
  const std::string made = "small." + name;
  const bool ok =
      folder >= 0 && WriteFile(fd(), made.c_str(), content, task::Durability::kProcess) &&
      (!is_root || (fchownat(fd(), made.c_str(), spec.uid, spec.gid, AT_SYMLINK_NOFOLLOW) == 0 &&
                    fchown(folder, spec.uid, spec.gid) == 0)) &&
      renameat(fd(), made.c_str(), folder, name.c_str()) == 0;
  const absl::Status status = Check(ok, path_ + "/" + task::kSmallFiles);
  if (folder >= 0) {
    close(folder);
  }
  return status;
}

std::optional<task::Spec> TaskDirectory::ReadSpec() const {
  std::string text;
  if (task::ReadFile(fd(), task::kSpecFile, text)) {
    if (auto spec = task::DecodeSpec(text)) {
      return spec;
    }
  }
  const fs::path path(path_);
  const std::string number = path.filename();
  task::Spec spec;
  spec.job_id = path.parent_path().filename();
  const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), spec.task);
  const bool is_one = error == std::errc() && end == number.data() + number.size();
  return is_one && (Has(task::kPidFile) || Has(task::kExitFile)) ? std::optional(spec) : std::nullopt;
}

std::optional<task::Running> TaskDirectory::ReadRunning() const {
  std::string text;
  return task::ReadFile(fd(), task::kPidFile, text) ? task::DecodeRunning(text) : std::nullopt;
}

std::optional<task::Ended> TaskDirectory::ReadEnded() const {
  std::string text;
  return task::ReadFile(fd(), task::kExitFile, text) ? task::DecodeEnded(text) : std::nullopt;
}

bool TaskDirectory::Has(const char* name) const { return faccessat(fd(), name, F_OK, 0) == 0; }

// In this order: a supervisor takes the lock before it writes `pid`, and keeps it.  The other way round one that begins
// between the two looks like one that has gone.
std::optional<TaskDirectory::Attended> TaskDirectory::FindAttendance() const {
  const bool has_begun = Has(task::kPidFile);
  const std::optional<pid_t> supervisor = Supervisor();
  if (!supervisor) {
    return std::nullopt;
  }
  if (*supervisor != 0) {
    return Attended{Attendance::kAttended, *supervisor};
  }
  return Attended{has_begun ? Attendance::kAbandoned : Attendance::kNotBegun};
}

std::optional<pid_t> TaskDirectory::Supervisor() const {
  const int spec = openat(fd(), task::kSpecFile, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
  if (spec < 0) {
    return errno == ENOENT ? std::optional<pid_t>(0) : std::nullopt;
  }
  struct flock lock {};
  lock.l_type = F_WRLCK;
  const bool is_known = fcntl(spec, F_GETLK, &lock) == 0;
  close(spec);
  if (!is_known) {
    return std::nullopt;
  }
  return lock.l_type != F_UNLCK ? lock.l_pid : 0;
}

absl::Status TaskDirectory::SpawnSupervisor(const std::string& program) const {
  const char* argv[] = {"sekisho-task", path_.c_str(), nullptr};
  char* environment[] = {nullptr};
  posix_spawnattr_t attributes;
  posix_spawnattr_init(&attributes);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSID);  // else it would have to fork once more
  pid_t pid = 0;
  const int error =
      posix_spawn(&pid, program.c_str(), nullptr, &attributes, const_cast<char**>(argv), environment);
  posix_spawnattr_destroy(&attributes);
  return error == 0 ? absl::OkStatus() : errors::NoSupervisor(program, std::strerror(error));
}

}  // namespace sekisho::agent
