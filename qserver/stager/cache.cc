// SPDX-License-Identifier: Apache-2.0
#include "qserver/stager/cache.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <vector>

#include <fmt/format.h>

namespace sekisho::qserver::stager {
namespace {

constexpr time_t kAwaited_s = 7 * 24 * 3600;
constexpr int kTriesMost = 3;  // to have a name for ourselves
constexpr mode_t kUnused = S_ISVTX | 0600;
constexpr uint64_t kFlushEvery = 8 << 20;

absl::Status Failed(const char* what, const std::string& path) {
  return absl::FailedPreconditionError(fmt::format("cannot {} {}: {}", what, path, std::strerror(errno)));
}

absl::Status OtherContent(const std::string& path, const Content& content, const std::string& sum) {
  return absl::DataLossError(
      fmt::format("{}: expected SHA-256 {}, saw {}", path, Hex(content.sha256()), Hex(sum)));
}

// A stager before this one may still be writing what it was given.
absl::StatusOr<Fd> OpenAlone(const Below& where) {
  for (;;) {
    ASSIGN_OR_RETURN(Fd fd, Open(where, O_RDWR | O_CREAT | O_NOFOLLOW, 0600));
    struct stat status {};
    if (flock(fd.get(), LOCK_EX) != 0 || fstat(fd.get(), &status) != 0) {
      return Failed("lock", where.root + "/" + where.path);
    }
    const auto there = Open(where, O_RDONLY | O_NOFOLLOW);
    struct stat now {};
    if (there.ok() && fstat(there->get(), &now) == 0 && now.st_ino == status.st_ino) {
      return fd;
    }
  }
}

std::string PathOf(const Below& where) { return where.root + "/" + where.path; }

// DataLoss: `source` is something else, and is removed.
absl::Status CopyChecked(int from, int to, const Content& content, const Below& source, const std::string& to_name) {
  Sum sum;
  RETURN_IF_ERROR(CopyRest(from, to, sum, PathOf(source), to_name).status());
  if (const std::string seen = sum.Finish(); seen != content.sha256()) {
    unlink(PathOf(source).c_str());
    return OtherContent(PathOf(source), content, seen);
  }
  return absl::OkStatus();
}

// Not known if it cannot be seen.
Stamp StampOf(const Fd& fd) {
  Stamp stamp;
  struct stat status {};
  if (fstat(fd.get(), &status) == 0) {
    stamp.set_inode(status.st_ino);
    stamp.set_changed_ns(status.st_ctim.tv_sec * int64_t(1'000'000'000) + status.st_ctim.tv_nsec);
  }
  return stamp;
}

bool IsStill(const Stamp& seen, const Fd& fd) {
  const Stamp now = StampOf(fd);
  return seen.changed_ns() != 0 && seen.inode() == now.inode() && seen.changed_ns() == now.changed_ns();
}

// False: somebody has it already, or it is on another file system.
bool GiveAway(const Fd& from, const Parent& parent, const std::string& aside, unsigned mode) {
  struct stat found {};
  const bool is_free = flock(from.get(), LOCK_EX) == 0 && fstat(from.get(), &found) == 0 &&
                       (found.st_mode & S_ISVTX) != 0 && found.st_nlink == 1 && fchmod(from.get(), mode) == 0;
  flock(from.get(), LOCK_UN);
  if (!is_free) {
    return false;
  }
  unlinkat(parent.directory.get(), aside.c_str(), 0);
  const std::string itself = fmt::format("/proc/self/fd/{}", from.get());
  return linkat(AT_FDCWD, itself.c_str(), parent.directory.get(), aside.c_str(), AT_SYMLINK_FOLLOW) == 0;
}

}  // namespace

std::string Cache::PartOf(const Content& content) const { return Hex(content.sha256()) + "." + job_id_ + ".part"; }

StagerReply::Have Cache::Look(const Content& content) const {
  StagerReply::Have have;
  struct stat status {};
  const auto whole = Open(At(Hex(content.sha256())), O_RDONLY | O_NOFOLLOW);
  if (whole.ok() && fstat(whole->get(), &status) == 0 && uint64_t(status.st_size) == content.size()) {
    have.set_whole(true);
    have.set_offset(content.size());
    return have;
  }
  const auto part = Open(At(PartOf(content)), O_RDONLY | O_NOFOLLOW);
  if (part.ok() && fstat(part->get(), &status) == 0) {
    have.set_offset(std::min(uint64_t(status.st_size), content.size()));
  }
  return have;
}

absl::StatusOr<Cache::Incoming> Cache::Receive(const Content& content) const {
  Incoming incoming;
  incoming.content_ = content;
  incoming.name_ = PartOf(content);
  const Below where = At(incoming.name_);
  incoming.path_ = PathOf(where);
  ASSIGN_OR_RETURN(Parent parent, OpenParent(where, 0700));
  ASSIGN_OR_RETURN(incoming.fd_, OpenAlone(where));
  incoming.directory_ = std::move(parent.directory);
  incoming.sum_ = std::make_unique<Sum>();
  ASSIGN_OR_RETURN(incoming.offset_, CopyRest(incoming.fd_.get(), -1, *incoming.sum_, PathOf(where), ""));
  if (incoming.offset_ > content.size()) {  // nobody's: begin anew
    if (ftruncate(incoming.fd_.get(), 0) != 0 || lseek(incoming.fd_.get(), 0, SEEK_SET) != 0) {
      return Failed("empty", PathOf(where));
    }
    incoming.offset_ = 0;
    incoming.sum_ = std::make_unique<Sum>();
  }
  return incoming;
}

absl::Status Cache::Incoming::Add(std::string_view data) {
  if (data.size() > content_.size() - offset_) {
    return absl::OutOfRangeError(fmt::format("expected {} bytes, saw more", content_.size()));
  }
  RETURN_IF_ERROR(WriteAll(fd_.get(), data, path_));
  sum_->Add(data);
  offset_ += data.size();
  if (offset_ >= flushing_ + kFlushEvery) {  // so that not all of it is to be waited for at the end
    sync_file_range(fd_.get(), off_t(flushing_), off_t(offset_ - flushing_), SYNC_FILE_RANGE_WRITE);
    flushing_ = offset_;
  }
  return absl::OkStatus();
}

void Cache::Incoming::Drop() { unlinkat(directory_.get(), name_.c_str(), 0); }

absl::StatusOr<std::optional<Stamp>> Cache::Finish(Incoming incoming) const {
  const Content& content = incoming.content_;
  if (incoming.offset_ < content.size()) {
    return std::nullopt;
  }
  const std::string whole = Hex(content.sha256());
  if (const std::string sum = incoming.sum_->Finish(); sum != content.sha256()) {
    unlinkat(incoming.directory_.get(), incoming.name_.c_str(), 0);
    return OtherContent(incoming.name_, content, sum);
  }
  if (fchmod(incoming.fd_.get(), kUnused) != 0 || fsync(incoming.fd_.get()) != 0 ||
      renameat(incoming.directory_.get(), incoming.name_.c_str(), incoming.directory_.get(), whole.c_str()) != 0) {
    return Failed("keep", PathOf(At(whole)));
  }
  return StampOf(incoming.fd_);
}

absl::StatusOr<Cache::Taken> Cache::Take(const std::function<absl::Status(const Add&)>& source) const {
  const Below where = At("fetched." + job_id_ + ".part");
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(where, 0700));
  ASSIGN_OR_RETURN(const Fd fd, OpenAlone(where));
  if (ftruncate(fd.get(), 0) != 0) {
    return Failed("empty", PathOf(where));
  }
  Content content;
  Sum sum;
  absl::Status status = source([&](std::string_view data) {
    sum.Add(data);
    content.set_size(content.size() + data.size());
    return WriteAll(fd.get(), data, PathOf(where));
  });
  content.set_sha256(sum.Finish());
  const std::string whole = Hex(content.sha256());
  if (status.ok() && (fchmod(fd.get(), kUnused) != 0 || fsync(fd.get()) != 0 || renameat(parent.directory.get(), parent.name.c_str(),
                                                       parent.directory.get(), whole.c_str()) != 0)) {
    status = Failed("keep", PathOf(At(whole)));
  }
  if (!status.ok()) {
    unlinkat(parent.directory.get(), parent.name.c_str(), 0);
    return status;
  }
  return Taken{content, StampOf(fd)};
}

// Copies to `beside`.  What a killed stager has left there is taken over; what has another name besides, as the cache's
// own that was about to be given away, or is somebody else's, is not written into.
absl::Status Cache::Fill(const Fd& from, const Content& content, const Below& beside, unsigned mode,
                         const std::string& name) const {
  Fd to;
  bool is_ours = false;
  for (int tries = 0; !is_ours; ++tries) {
    ASSIGN_OR_RETURN(to, OpenAlone(beside));
    struct stat found {};
    is_ours = fstat(to.get(), &found) == 0 && found.st_uid == geteuid() && found.st_nlink == 1;
    if (!is_ours && tries == kTriesMost) {
      return absl::FailedPreconditionError(fmt::format("{} is somebody else's, too", PathOf(beside)));
    }
    if (!is_ours) {
      ASSIGN_OR_RETURN(const Parent parent, OpenParent(beside, 0700));
      unlinkat(parent.directory.get(), parent.name.c_str(), 0);
    }
  }
  if (ftruncate(to.get(), 0) != 0) {
    return Failed("empty", PathOf(beside));
  }
  RETURN_IF_ERROR(CopyChecked(from.get(), to.get(), content, At(Hex(content.sha256())), name));
  return fchmod(to.get(), mode) == 0 && fsync(to.get()) == 0 ? absl::OkStatus() : Failed("write", name);
}

// From here on it is read where it is.  What is also a job's own, which may write to it, is not: the cache gets a copy.
absl::Status Cache::Share(const Fd& from, const Content& content, bool is_known) const {
  const Below source = At(Hex(content.sha256()));
  struct stat found {};
  if (flock(from.get(), LOCK_EX) != 0 || fstat(from.get(), &found) != 0 || fchmod(from.get(), found.st_mode & 0777) != 0) {
    return Failed("lock", PathOf(source));
  }
  if (found.st_nlink == 1) {
    return is_known ? absl::OkStatus() : CopyChecked(from.get(), -1, content, source, "");
  }
  const Below beside = At(PartOf(content));
  RETURN_IF_ERROR(Fill(from, content, beside, 0600, PathOf(source)));
  return rename(PathOf(beside).c_str(), PathOf(source).c_str()) == 0 ? absl::OkStatus() : Failed("keep", PathOf(source));
}

absl::Status Cache::Place(const Content& content, const Below& target, unsigned mode, bool is_link,
                          const Stamp& seen) const {
  const Below source = At(Hex(content.sha256()));
  ASSIGN_OR_RETURN(const Fd from, Open(source, O_RDONLY | O_NOFOLLOW));
  const bool is_known = IsStill(seen, from);  // before its mode and links change
  ASSIGN_OR_RETURN(const Parent parent, OpenParent(target, 0700));
  // Of the job, not of this process: what a stager before this one has left when it was killed is taken over.
  const size_t slash = target.path.rfind('/');
  const Below beside{target.root, target.path.substr(0, slash == std::string::npos ? 0 : slash + 1) + Aside()};
  absl::Status status;
  if (is_link) {
    RETURN_IF_ERROR(Share(from, content, is_known));
    unlinkat(parent.directory.get(), Aside().c_str(), 0);
    if (symlinkat(PathOf(source).c_str(), parent.directory.get(), Aside().c_str()) != 0) {
      status = Failed("make the link", PathOf(target));
    }
  } else if (!GiveAway(from, parent, Aside(), mode)) {
    status = Fill(from, content, beside, mode, PathOf(target));
  } else if (!is_known) {
    status = CopyChecked(from.get(), -1, content, source, "");
  }
  if (status.ok() && !Settle(parent, Aside())) {
    status = Failed("put in place", PathOf(target));
  }
  if (!status.ok()) {
    unlinkat(parent.directory.get(), Aside().c_str(), 0);
    return status;
  }
  futimens(from.get(), nullptr);  // the cache's was used
  return absl::OkStatus();
}

void Cache::Trim(uint64_t bytes) const {
  struct Entry {
    std::string name;
    std::pair<time_t, long> used;
    uint64_t size = 0;
  };
  const auto directory = Open(place_, O_RDONLY | O_DIRECTORY);
  DIR* const listing = directory.ok() ? fdopendir(dup(directory->get())) : nullptr;
  if (listing == nullptr) {
    return;
  }
  std::vector<Entry> entries;
  uint64_t total = 0;
  while (const dirent* const found = readdir(listing)) {
    struct stat status {};
    if (fstatat(directory->get(), found->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) {
      continue;
    }
    const std::string name = found->d_name;
    const bool is_awaited = name.ends_with(".part") || (status.st_mode & S_ISVTX) != 0;
    if (!is_awaited) {
      entries.push_back({name, {status.st_mtim.tv_sec, status.st_mtim.tv_nsec}, uint64_t(status.st_size)});
      total += uint64_t(status.st_size);
    } else if (status.st_mtime + kAwaited_s < time(nullptr)) {
      unlinkat(directory->get(), name.c_str(), 0);
    }
  }
  closedir(listing);
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) { return a.used < b.used; });
  for (const Entry& entry : entries) {
    if (total <= bytes) {
      break;
    }
    unlinkat(directory->get(), entry.name.c_str(), 0);
    total -= entry.size;
  }
}

}  // namespace sekisho::qserver::stager
