// SPDX-License-Identifier: Apache-2.0
#include "common/identity/files.h"

#include <cerrno>
#include <cstring>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "common/write_all.h"

namespace sekisho::identity {
namespace {

class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  ~Descriptor() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  int get() const { return fd_; }

 private:
  int fd_;
};

absl::Status FromErrno(const std::string& what, const std::string& path) {
  const int error = errno;
  const std::string text = fmt::format("cannot {} {}: {}", what, path, std::strerror(error));
  if (error == ENOENT || error == ENOTDIR) {
    return absl::NotFoundError(text);
  }
  return absl::PermissionDeniedError(text);
}

absl::Status CheckPrivate(const std::string& path, const struct stat& stat) {
  if (stat.st_uid != geteuid() && stat.st_uid != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} belongs to uid {}, expected {} or root", path, stat.st_uid, geteuid()));
  }
  if ((stat.st_mode & 077) != 0) {
    return absl::PermissionDeniedError(
        fmt::format("{} has mode {:04o}, expected 0600 or 0400 (chmod 600 {})", path,
                    stat.st_mode & 07777, path));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<std::string> ReadIdentityFile(const std::string& path, Secrecy secrecy) {
  Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() < 0) {
    return FromErrno("read", path);
  }
  struct stat stat = {};
  if (fstat(file.get(), &stat) != 0) {
    return FromErrno("read", path);
  }
  if (!S_ISREG(stat.st_mode)) {
    return absl::InvalidArgumentError(fmt::format("{} is not a regular file", path));
  }
  if (secrecy == Secrecy::kPrivate) {
    RETURN_IF_ERROR(CheckPrivate(path, stat));
  }
  std::string text;
  std::vector<char> buffer(64 * 1024);
  while (true) {
    const ssize_t size = read(file.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) {
      continue;
    }
    if (size < 0) {
      return FromErrno("read", path);
    }
    if (size == 0) {
      return text;
    }
    text.append(buffer.data(), static_cast<size_t>(size));
    if (text.size() > kIdentityFileBytesMax) {
      return absl::InvalidArgumentError(
          fmt::format("{} is longer than the {} bytes allowed", path, kIdentityFileBytesMax));
    }
  }
}

uint64_t FileVersion(const std::string& path) {
  struct stat stat = {};
  if (::stat(path.c_str(), &stat) != 0) {
    return 0;
  }
  return std::hash<std::string>()(fmt::format("{} {} {} {}.{} {}.{}", stat.st_dev, stat.st_ino, stat.st_size,
                                              stat.st_mtim.tv_sec, stat.st_mtim.tv_nsec, stat.st_ctim.tv_sec,
                                              stat.st_ctim.tv_nsec));
}

absl::Status WritePrivateFile(const std::string& path, const std::string& text) {
  std::string temporary = path + ".XXXXXX";
  Descriptor file(mkostemp(temporary.data(), O_CLOEXEC));  // O_EXCL and mode 0600
  if (file.get() < 0) {
    return FromErrno("create a file beside", path);
  }
  absl::Status status;
  if (!WriteAll(file.get(), text) || fsync(file.get()) != 0) {
    status = FromErrno("write", temporary);
  }
  if (status.ok() && rename(temporary.c_str(), path.c_str()) != 0) {
    status = FromErrno("replace", path);
  }
  if (!status.ok()) {
    unlink(temporary.c_str());
  }
  return status;
}

absl::Status DestroyPrivateFile(const std::string& path) {
  Descriptor file(open(path.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  if (file.get() < 0) {
    if (errno == ELOOP) {
      return absl::FailedPreconditionError(
          fmt::format("{} is a symbolic link: not followed, not removed", path));
    }
    return FromErrno("destroy", path);
  }
  struct stat stat = {};
  if (fstat(file.get(), &stat) != 0) {
    return FromErrno("destroy", path);
  }
  if (!S_ISREG(stat.st_mode) || stat.st_uid != geteuid()) {
    return absl::FailedPreconditionError(
        fmt::format("{} is not a regular file of uid {}: not removed", path, geteuid()));
  }
  const std::string zeros(static_cast<size_t>(stat.st_size), '\0');
  if (!WriteAll(file.get(), zeros) || fsync(file.get()) != 0 || unlink(path.c_str()) != 0) {
    return FromErrno("destroy", path);
  }
  return absl::OkStatus();
}

}  // namespace sekisho::identity
