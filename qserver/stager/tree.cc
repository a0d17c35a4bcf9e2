// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/tree.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include "common/utf8.h"

namespace sekisho::qserver::stager {
namespace {

constexpr size_t kEntriesMost = 10'000;
constexpr size_t kBytesMost = 3 << 20;  // of the 4 MiB that an answer may have
constexpr size_t kPiece = 256 << 10;
constexpr int kDepthMost = 200;

std::string PathOf(const Below& where) { return where.path.empty() ? where.root : where.root + "/" + where.path; }

absl::Status Failed(const char* what, const std::string& path) {
  return absl::FailedPreconditionError(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

struct CloseDirectory {
  void operator()(DIR* directory) const { closedir(directory); }
};
using Directory = std::unique_ptr<DIR, CloseDirectory>;

Directory OpenDirectory(int fd) {
  const int own = openat(fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  return Directory(own >= 0 ? fdopendir(own) : nullptr);
}

bool IsDots(const char* name) { return std::strcmp(name, ".") == 0 || std::strcmp(name, "..") == 0; }

StagerReply::Entry EntryOf(int directory, const std::string& name, const struct stat& status) {
  StagerReply::Entry entry;
  entry.set_path(ToUtf8(name));
  entry.set_size(uint64_t(status.st_size));
  entry.set_modified_ms(int64_t(status.st_mtim.tv_sec) * 1000 + status.st_mtim.tv_nsec / 1'000'000);
  entry.set_mode(status.st_mode & 07777);
  if (S_ISDIR(status.st_mode)) {
    entry.set_kind(StagerReply::Entry::DIRECTORY);
  } else if (S_ISLNK(status.st_mode)) {
    entry.set_kind(StagerReply::Entry::LINK);
    std::string target(4096, '\0');
    const ssize_t size = readlinkat(directory, name.c_str(), target.data(), target.size());
    entry.set_target(ToUtf8(target.substr(0, size_t(std::max<ssize_t>(size, 0)))));
  } else if (!S_ISREG(status.st_mode)) {
    entry.set_kind(StagerReply::Entry::OTHER);
  }
  return entry;
}

// The directory that `where` is in; none: it is not there.
absl::StatusOr<std::optional<Parent>> FindParent(const Below& where) {
  const size_t slash = where.path.rfind('/');
  const Below above{where.root, slash == std::string::npos ? "" : where.path.substr(0, slash)};
  absl::StatusOr<Fd> directory = Open(above, O_PATH | O_DIRECTORY);
  if (absl::IsNotFound(directory.status())) {
    return std::optional<Parent>();
  }
  RETURN_IF_ERROR(directory.status());
  return Parent{*std::move(directory), where.path.substr(slash + 1)};
}

// To be emptied.  One of ours that its owner has shut, even to himself, is opened to him: nothing below it could go.
Fd OpenToEmpty(int above, const char* name) {
  const Fd found(openat(above, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat status {};
  if (found.is_open() && fstat(found.get(), &status) == 0 && status.st_uid == geteuid() &&
      (status.st_mode & 0700) != 0700) {
    // By its descriptor, whose mode fchmod does not change: its name may be another's by now.
    chmod(fmt::format("/proc/self/fd/{}", found.get()).c_str(), (status.st_mode & 07777) | 0700);
  }
  return Fd(openat(above, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
}

absl::Status Empty(int directory, const std::string& path, int depth) {
  const Directory listing = OpenDirectory(directory);
  if (listing == nullptr) {
    return Failed("empty", path);
  }
  if (depth > kDepthMost) {
    return absl::FailedPreconditionError(fmt::format("cannot empty {}: more than {} directories deep", path, kDepthMost));
  }
  while (const dirent* const found = readdir(listing.get())) {
    if (IsDots(found->d_name)) {
      continue;
    }
    if (unlinkat(directory, found->d_name, 0) == 0 || errno == ENOENT) {
      continue;
    }
    const std::string below = path + "/" + found->d_name;
    const int why = errno;  // EISDIR, if it is a directory
    const Fd child = OpenToEmpty(directory, found->d_name);
    if (!child.is_open()) {
      errno = why == EISDIR ? errno : why;
      return Failed("remove", below);
    }
    RETURN_IF_ERROR(Empty(child.get(), below, depth + 1));
    if (unlinkat(directory, found->d_name, AT_REMOVEDIR) != 0 && errno != ENOENT) {
      return Failed("remove", below);
    }
  }
  return absl::OkStatus();
}

// What `fill` writes, beside its place and then renamed: whole, or what was there before.
absl::Status PutInPlace(const Below& to, const std::string& aside, unsigned mode,
                        const std::function<absl::Status(int fd)>& fill) {
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(to, 0700));
  unlinkat(parent.directory.get(), aside.c_str(), 0);
  const Fd fd(openat(parent.directory.get(), aside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!fd.is_open()) {
    return Failed("write", PathOf(to));
  }
  absl::Status status = fill(fd.get());
  if (status.ok() && (fchmod(fd.get(), mode) != 0 || fsync(fd.get()) != 0 || !Settle(parent, aside))) {
    status = Failed("put in place", PathOf(to));
  }
  if (!status.ok()) {
    unlinkat(parent.directory.get(), aside.c_str(), 0);
  }
  return status;
}

}  // namespace

absl::StatusOr<StagerReply::Listed> List(const Below& where) {
  StagerReply::Listed listed;
  ASSIGN_OR_RETURN(const Fd fd, Open(where, O_PATH));
  struct stat status {};
  if (fstat(fd.get(), &status) != 0) {
    return Failed("look at", PathOf(where));
  }
  if (!S_ISDIR(status.st_mode)) {
    *listed.add_entry() = EntryOf(-1, where.path.substr(where.path.rfind('/') + 1), status);
    return listed;
  }
  ASSIGN_OR_RETURN(const Fd readable, Open(where, O_RDONLY | O_DIRECTORY));
  const Directory listing = OpenDirectory(readable.get());
  if (listing == nullptr) {
    return Failed("list", PathOf(where));
  }
  size_t bytes = 0;
  while (const dirent* const found = readdir(listing.get())) {
    if (IsDots(found->d_name) || fstatat(readable.get(), found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0) {
      continue;
    }
    *listed.add_entry() = EntryOf(readable.get(), found->d_name, status);
    bytes += listed.entry(listed.entry_size() - 1).ByteSizeLong() + 8;
    if (size_t(listed.entry_size()) > kEntriesMost || bytes > kBytesMost) {
      return absl::FailedPreconditionError(
          fmt::format("cannot list {}: it has more than {} entries", PathOf(where), listed.entry_size() - 1));
    }
  }
  std::sort(listed.mutable_entry()->begin(), listed.mutable_entry()->end(),
            [](const auto& a, const auto& b) { return a.path() < b.path(); });
  return listed;
}

absl::StatusOr<Reading> Reading::Begin(const Below& where, uint64_t offset) {
  Reading reading;
  reading.name_ = PathOf(where);
  // Not to be kept waiting by a pipe that nobody writes.
  ASSIGN_OR_RETURN(reading.fd_, Open(where, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat status {};
  if (fstat(reading.fd_.get(), &status) != 0) {
    return Failed("read", reading.name_);
  }
  if (!S_ISREG(status.st_mode)) {
    return absl::FailedPreconditionError(fmt::format("cannot read {}: expected a regular file", reading.name_));
  }
  reading.entry_ = EntryOf(-1, where.path.substr(where.path.rfind('/') + 1), status);
  reading.sum_ = std::make_unique<Sum>();
  // Who has the beginning already gets the sum of all: that beginning came by a call that never had its end.
  for (uint64_t left = offset; left > 0;) {
    ASSIGN_OR_RETURN(const std::string data, reading.Read(std::min<uint64_t>(left, kPiece)));
    if (data.empty()) {
      break;  // it has become shorter
    }
    left -= data.size();
  }
  return reading;
}

absl::StatusOr<std::string> Reading::Next() { return Read(kPiece); }

absl::StatusOr<std::string> Reading::Read(size_t most) {
  std::string data(most, '\0');
  const ssize_t got = read(fd_.get(), data.data(), data.size());
  if (got < 0) {
    return Failed("read", name_);
  }
  data.resize(size_t(got));
  sum_->Add(data);
  return data;
}

absl::StatusOr<Content> Copy(const Below& from, const Below& to, const std::string& aside) {
  ASSIGN_OR_RETURN(Reading reading, Reading::Begin(from, 0));
  Content content;
  RETURN_IF_ERROR(PutInPlace(to, aside, reading.entry().mode() & 0777, [&](int fd) -> absl::Status {
    for (;;) {
      ASSIGN_OR_RETURN(const std::string data, reading.Next());
      if (data.empty()) {
        return absl::OkStatus();
      }
      RETURN_IF_ERROR(WriteAll(fd, data, PathOf(to)));
      content.set_size(content.size() + data.size());
    }
  }));
  content.set_sha256(reading.Finish());
  return content;
}

absl::Status Keep(const Below& where, std::string_view content, const std::string& aside) {
  return PutInPlace(where, aside, 0600, [&](int fd) { return WriteAll(fd, content, PathOf(where)); });
}

absl::Status WriteFrom(const Below& where, uint64_t offset, std::string_view data, unsigned mode) {
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(where, 0700));
  if (offset == 0) {
    unlinkat(parent.directory.get(), parent.name.c_str(), 0);
  }
  const Fd fd(openat(parent.directory.get(), parent.name.c_str(),
                     O_WRONLY | O_NOFOLLOW | O_CLOEXEC | (offset == 0 ? O_CREAT | O_EXCL : 0), mode & 0777));
  if (!fd.is_open() || ftruncate(fd.get(), off_t(offset)) != 0 || lseek(fd.get(), off_t(offset), SEEK_SET) < 0) {
    return Failed("write", PathOf(where));
  }
  return WriteAll(fd.get(), data, PathOf(where));
}

absl::Status Remove(const Below& where) {
  ASSIGN_OR_RETURN(const auto parent, FindParent(where));
  return !parent || unlinkat(parent->directory.get(), parent->name.c_str(), 0) == 0 || errno == ENOENT
             ? absl::OkStatus()
             : Failed("remove", PathOf(where));
}

absl::Status RemoveTree(const Below& where) {
  ASSIGN_OR_RETURN(const auto parent, FindParent(where));
  if (!parent) {
    return absl::OkStatus();
  }
  const Fd fd = OpenToEmpty(parent->directory.get(), parent->name.c_str());
  if (!fd.is_open() && (errno == ELOOP || errno == ENOTDIR)) {
    return Remove(where);  // a job has put something else there, perhaps a link: that goes, not what it leads to
  }
  if (!fd.is_open()) {
    return errno == ENOENT ? absl::OkStatus() : Failed("remove", PathOf(where));
  }
  RETURN_IF_ERROR(Empty(fd.get(), PathOf(where), 0));
  return unlinkat(parent->directory.get(), parent->name.c_str(), AT_REMOVEDIR) == 0 ? absl::OkStatus()
                                                                                    : Failed("remove", PathOf(where));
}

absl::Status MakeDirectory(const Below& where) {
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(where, 0700));
  struct stat status {};
  if (mkdirat(parent.directory.get(), parent.name.c_str(), 0700) == 0) {
    return absl::OkStatus();
  }
  const bool is_ours = errno == EEXIST &&
                       fstatat(parent.directory.get(), parent.name.c_str(), &status, AT_SYMLINK_NOFOLLOW) == 0 &&
                       S_ISDIR(status.st_mode) && status.st_uid == geteuid();
  return is_ours ? absl::OkStatus() : Failed("make the directory", PathOf(where));
}

}  // namespace sekisho::qserver::stager
