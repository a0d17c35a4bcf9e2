// SPDX-License-Identifier: Apache-2.0
#include "agent/pilot_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <fmt/format.h>

namespace sekisho::agent {
namespace {

namespace fs = std::filesystem;

constexpr char kPrefix[] = "sekisho-";
constexpr char kLock[] = "keeper.lock";

// Held by us now, and by nobody before; -1: otherwise.
int Lock(const std::string& path, int flags) {
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) != 0) {
    close(fd);
    return -1;
  }
  return fd;
}

bool IsOurs(const fs::path& path) {
  struct stat seen {};
  return lstat(path.c_str(), &seen) == 0 && S_ISDIR(seen.st_mode) && seen.st_uid == geteuid();
}

void RemoveAbandoned(const std::string& parent) {
  std::error_code error;
  for (fs::directory_iterator at(parent, error), end; !error && at != end; at.increment(error)) {
    const fs::path& path = at->path();
    if (!path.filename().string().starts_with(kPrefix) || !IsOurs(path)) {
      continue;
    }
    if (const int lock = Lock(path / kLock, 0); lock >= 0) {
      std::error_code ignored;
      fs::remove_all(path, ignored);
      close(lock);
    }
  }
}

}  // namespace

PilotFolder::PilotFolder(const std::string& parent, const std::string& job_id)
    : path_(fmt::format("{}/{}{}.XXXXXX", parent, kPrefix, job_id)) {
  RemoveAbandoned(parent);
  if (mkdtemp(path_.data()) == nullptr) {
    return;
  }
  // It has its name only when it is held: others look for it.
  const std::string lock = fmt::format("{}/{}", path_, kLock);
  lock_ = Lock(lock + ".new", O_CREAT | O_EXCL);
  if (lock_ >= 0) {
    rename((lock + ".new").c_str(), lock.c_str());
  } else {
    rmdir(path_.c_str());
  }
}

PilotFolder::~PilotFolder() {
  if (is_made()) {
    std::error_code error;
    fs::remove_all(path_, error);
    close(lock_);
  }
}

}  // namespace sekisho::agent
