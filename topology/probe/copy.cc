// SPDX-License-Identifier: Apache-2.0
#include "topology/probe/copy.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "topology/probe/errors.h"

namespace sekisho::topology {
namespace {

// How a part of ours is known: no other file is sticky.
constexpr mode_t kPartMode = S_IRUSR | S_IWUSR | S_ISVTX;

std::string PartOf(const std::string& path) { return path + ".part"; }

// What a prober that was killed has left: its lock went with it.  -1: there is no such thing.
int TakeOver(const std::string& part) {
  const int file = open(part.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
  struct stat about {};
  struct stat there {};
  if (file >= 0 && fstat(file, &about) == 0 && S_ISREG(about.st_mode) &&
      (about.st_mode & S_ISVTX) != 0 && about.st_uid == geteuid() && about.st_nlink == 1 &&
      flock(file, LOCK_EX | LOCK_NB) == 0 && lstat(part.c_str(), &there) == 0 &&
      there.st_ino == about.st_ino && there.st_dev == about.st_dev && ftruncate(file, 0) == 0) {
    return file;
  }
  if (file >= 0) {
    close(file);
  }
  return -1;
}

}  // namespace

Copy::Copy(std::string path, int file, uint64_t size, uint64_t have, bool is_ours)
    : path_(std::move(path)),
      file_(file),
      size_(size),
      have_(have),
      is_ours_(is_ours),
      hash_(EVP_MD_CTX_new()) {
  CHECK(hash_ != nullptr && EVP_DigestInit_ex(hash_, EVP_sha256(), nullptr) == 1);
}

Copy::~Copy() {
  EVP_MD_CTX_free(hash_);
  close(file_);
  if (is_ours_) {
    unlink(PartOf(path_).c_str());
  }
}

absl::StatusOr<std::unique_ptr<Copy>> Copy::Open(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  struct stat about {};
  if (file < 0 || fstat(file, &about) != 0 || !S_ISREG(about.st_mode)) {
    const int why = file < 0 ? errno : EISDIR;
    if (file >= 0) {
      close(file);
    }
    return errors::BadCopy(path, std::strerror(why));
  }
  const auto size = static_cast<uint64_t>(about.st_size);
  return std::unique_ptr<Copy>(new Copy(path, file, size, size, false));
}

absl::StatusOr<std::unique_ptr<Copy>> Copy::Create(const std::string& path, uint64_t size) {
  const std::string part = PartOf(path);
  int file = open(part.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, S_IRUSR | S_IWUSR);
  if (file >= 0 && (flock(file, LOCK_EX | LOCK_NB) != 0 || fchmod(file, kPartMode) != 0)) {
    const int why = errno;
    unlink(part.c_str());
    close(file);
    return errors::BadCopy(part, std::strerror(why));
  }
  if (file < 0) {
    const int why = errno;
    file = why == EEXIST ? TakeOver(part) : -1;
    if (file < 0) {
      return errors::BadCopy(part, std::strerror(why));
    }
  }
  return std::unique_ptr<Copy>(new Copy(path, file, size, 0, true));
}

absl::Status Copy::Append(const char* bytes, size_t count) {
  if (count > size_ - have_) {
    return errors::BadCopy(path_, "more came than the source has");
  }
  for (size_t done = 0; done < count;) {
    const ssize_t wrote = pwrite(file_, bytes + done, count - done, static_cast<off_t>(have_));
    if (wrote < 0 && errno == EINTR) {
      continue;
    }
    if (wrote <= 0) {
      return errors::BadCopy(PartOf(path_), std::strerror(errno));
    }
    CHECK(EVP_DigestUpdate(hash_, bytes + done, static_cast<size_t>(wrote)) == 1);
    done += static_cast<size_t>(wrote);
    have_ += static_cast<uint64_t>(wrote);
    hashed_ = have_;
  }
  return absl::OkStatus();
}

absl::StatusOr<size_t> Copy::Read(uint64_t offset, char* bytes, size_t count) {
  if (offset >= have_) {
    return size_t{0};
  }
  const ssize_t got =
      pread(file_, bytes, std::min<uint64_t>(count, have_ - offset), static_cast<off_t>(offset));
  if (got <= 0) {
    return errors::BadCopy(path_, got < 0 ? std::strerror(errno) : "it became shorter");
  }
  const uint64_t end = offset + static_cast<uint64_t>(got);
  if (offset <= hashed_ && end > hashed_) {
    CHECK(EVP_DigestUpdate(hash_, bytes + (hashed_ - offset), end - hashed_) == 1);
    hashed_ = end;
  }
  return static_cast<size_t>(got);
}

absl::StatusOr<std::string> Copy::Digest() {
  char bytes[64 * 1024];
  while (hashed_ < have_) {
    RETURN_IF_ERROR(Read(hashed_, bytes, sizeof bytes).status());
  }
  unsigned char digest[EVP_MAX_MD_SIZE];
  unsigned int size = 0;
  CHECK(EVP_DigestFinal_ex(hash_, digest, &size) == 1);
  return fmt::format("{:02x}", fmt::join(digest, digest + size, ""));
}

absl::Status Copy::Commit() {
  const mode_t mask = umask(0);
  umask(mask);
  if (is_ours_ && fchmod(file_, 0666 & ~mask) != 0) {
    return errors::BadCopy(PartOf(path_), std::strerror(errno));
  }
  if (is_ours_ && std::rename(PartOf(path_).c_str(), path_.c_str()) != 0) {
    return errors::BadCopy(path_, std::strerror(errno));
  }
  is_ours_ = false;
  return absl::OkStatus();
}

}  // namespace sekisho::topology
