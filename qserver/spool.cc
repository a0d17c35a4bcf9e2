// SPDX-License-Identifier: Apache-2.0
#include "qserver/spool.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace sekisho::qserver {
namespace {

constexpr size_t kOpenMax = 256;

absl::Status SystemError(const std::string& path) {
  const bool is_full = errno == ENOSPC || errno == EDQUOT || errno == EFBIG;
  return absl::Status(is_full ? absl::StatusCode::kResourceExhausted : absl::StatusCode::kUnavailable,
                      fmt::format("{}: {}", path, std::strerror(errno)));
}

}  // namespace

Spool::Spool(std::string directory, uint64_t reserve)
    : directory_(std::move(directory)), reserve_(reserve) {}

Spool::~Spool() {
  for (const auto& [key, file] : open_) {
    close(file.fd);
  }
}

absl::Status Spool::Prepare() {
  std::error_code error;
  std::filesystem::create_directories(directory_, error);
  if (error || chmod(directory_.c_str(), 0700) != 0) {
    return SystemError(directory_);
  }
  return absl::OkStatus();
}

std::string Spool::Path(const Key& key) const {
  constexpr const char* kEndings[] = {"out", "err", "links"};
  const auto& [job_id, task, stream] = key;
  return fmt::format("{}/{}/{}.{}", directory_, job_id, task, kEndings[stream]);
}

absl::StatusOr<Spool::File*> Spool::Open(const Key& key, bool create) {
  if (const auto at = open_.find(key); at != open_.end()) {
    recent_.splice(recent_.begin(), recent_, at->second.place);
    return &at->second;
  }
  const std::string path = Path(key);
  if (create) {
    mkdir(fmt::format("{}/{}", directory_, std::get<0>(key)).c_str(),
          0700);  // or it is there, or open says
  }
  const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | (create ? O_CREAT : 0), 0600);
  struct stat status {};
  if (fd < 0 || fstat(fd, &status) != 0) {
    if (fd >= 0) {
      close(fd);
    }
    return SystemError(path);
  }
  if (open_.size() >= kOpenMax) {
    const auto oldest = open_.find(recent_.back());
    close(oldest->second.fd);
    open_.erase(oldest);
    recent_.pop_back();
  }
  recent_.push_front(key);
  File& file = open_[key];
  file = {fd, uint64_t(status.st_size), recent_.begin()};
  return &file;
}

absl::StatusOr<uint64_t> Spool::Append(const std::string& job_id, int task, int stream,
                                       uint64_t offset, const std::string& data) {
  ASSIGN_OR_RETURN(File * file, Open({job_id, task, stream}, true));
  if (offset > file->size || offset + data.size() <= file->size) {
    return file->size;
  }
  struct statvfs room {};
  if (reserve_ > 0 && fstatvfs(file->fd, &room) == 0 && room.f_bavail * room.f_frsize < reserve_) {
    return absl::ResourceExhaustedError(
        fmt::format("{}: less than {} MiB are free", directory_, reserve_ >> 20));
  }
  size_t done = file->size - offset;  // of `data`
  while (done < data.size()) {
    const ssize_t count =
        pwrite(file->fd, data.data() + done, data.size() - done, off_t(offset + done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return SystemError(Path({job_id, task, stream}));
    }
    done += size_t(count);
    file->size = offset + done;
  }
  return file->size;
}

uint64_t Spool::Size(const std::string& job_id, int task, int stream) {
  const Key key{job_id, task, stream};
  if (const auto at = open_.find(key); at != open_.end()) {
    return at->second.size;
  }
  struct stat status {};
  return stat(Path(key).c_str(), &status) == 0 ? uint64_t(status.st_size) : 0;
}

absl::StatusOr<std::string> Spool::Read(const std::string& job_id, int task, int stream,
                                        uint64_t offset, size_t limit) {
  const uint64_t size = Size(job_id, task, stream);
  if (offset >= size) {
    return std::string();
  }
  ASSIGN_OR_RETURN(File * file, Open({job_id, task, stream}, false));
  std::string data(std::min<uint64_t>(limit, size - offset), '\0');
  size_t done = 0;
  while (done < data.size()) {
    const ssize_t count =
        pread(file->fd, data.data() + done, data.size() - done, off_t(offset + done));
    if (count < 0 && errno == EINTR) {
      continue;
    }
    if (count <= 0) {
      return SystemError(Path({job_id, task, stream}));
    }
    done += size_t(count);
  }
  return data;
}

void Spool::Close(const std::string& job_id) {
  for (auto at = open_.lower_bound({job_id, -1, -1});
       at != open_.end() && std::get<0>(at->first) == job_id;) {
    close(at->second.fd);
    recent_.erase(at->second.place);
    at = open_.erase(at);
  }
}

void Spool::Remove(const std::string& job_id) {
  Close(job_id);
  std::error_code ignored;  // what cannot be removed now is not worth stopping for
  std::filesystem::remove_all(directory_ + "/" + job_id, ignored);
}

}  // namespace sekisho::qserver
