// SPDX-License-Identifier: Apache-2.0
#include "client/job_files.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

#include <fmt/format.h>
#include <openssl/evp.h>

#include "client/harmless.h"
#include "client/staged_files.h"
#include "common/refusal.h"
#include "rsl/check.h"
#include "rsl/location.h"

namespace sekisho::client {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPauseMost{3'000};

absl::StatusOr<std::shared_ptr<rpc::ClientReader<proto::FilePiece>>> Ask(Session& session, const FileAccess& access) {
  proto::RequestBody body;
  *body.mutable_files() = access;
  ASSIGN_OR_RETURN(const proto::SignedRequest request, session.Sign(std::move(body)));
  return rpc::Start<rpc::ClientReader<proto::FilePiece>>(
      session.loop(), session.Options(),
      [&](auto& call) { session.stub().async()->Files(&call.context(), &request, &call); });
}

absl::Status CannotWrite(const std::string& path) {
  return Refuse(absl::StatusCode::kInvalidArgument, 0, fmt::format("cannot write {}: {}", path, std::strerror(errno)),
                "write to a place of yours with room: -o PATH");
}

// What comes, on its way into a file.
class Sink {
 public:
  explicit Sink(std::string path) : path_(std::move(path)), aside_(path_ + ".XXXXXX") {
    fd_ = is_standard() ? STDOUT_FILENO : mkostemp(aside_.data(), O_CLOEXEC);
  }
  ~Sink() {
    if (!is_standard() && fd_ >= 0) {
      close(fd_);
      unlink(aside_.c_str());  // gone if it was kept
    }
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  bool is_standard() const { return path_ == "-"; }
  uint64_t size() const { return size_; }
  absl::Status Check() const { return fd_ < 0 ? CannotWrite(path_) : absl::OkStatus(); }

  absl::Status Add(std::string_view data) {
    while (!data.empty()) {
      const ssize_t written = write(fd_, data.data(), data.size());
      if (written < 0 && errno == EINTR) {
        continue;
      }
      if (written < 0) {
        return CannotWrite(path_);
      }
      data.remove_prefix(size_t(written));
      size_ += uint64_t(written);
    }
    return absl::OkStatus();
  }
  // From this size on what is there counts no more.
  absl::Status Cut(uint64_t size) {
    if (size == size_) {
      return absl::OkStatus();
    }
    if (is_standard() || ftruncate(fd_, off_t(size)) != 0 || lseek(fd_, off_t(size), SEEK_SET) < 0) {
      return Refuse(absl::StatusCode::kDataLoss, 0, "the file has changed while it was read", "read it again");
    }
    size_ = size;
    return absl::OkStatus();
  }
  absl::Status Keep(uint32_t mode) {
    if (is_standard()) {
      return absl::OkStatus();
    }
    return fchmod(fd_, mode & 0777) == 0 && rename(aside_.c_str(), path_.c_str()) == 0 ? absl::OkStatus()
                                                                                      : CannotWrite(path_);
  }

 private:
  const std::string path_;
  std::string aside_;  // beside it, of no other's
  int fd_ = -1;
  uint64_t size_ = 0;
};

struct Sum {
  Sum() : context(EVP_MD_CTX_new()) { CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1); }
  ~Sum() { EVP_MD_CTX_free(context); }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  std::string Finish() {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    CHECK(EVP_DigestFinal_ex(context, digest, &size) == 1);
    return {reinterpret_cast<const char*>(digest), size};
  }
  EVP_MD_CTX* const context;
};

bool IsSame(const proto::FileEntry& a, const proto::FileEntry& b) {
  return a.size() == b.size() && a.modified_ms() == b.modified_ms();
}

// One call, from where the sink is.  `entry`: of the file as the first call saw it.
awaitable<absl::Status> DownloadOnce(Session& session, FileAccess access, Sink& sink, proto::FileEntry& entry) {
  const uint64_t from = sink.size();
  if (access.has_kept()) {
    access.mutable_kept()->set_offset(from);
  } else {
    access.mutable_read()->set_offset(from);
  }
  CO_ASSIGN_OR_RETURN(const auto call, Ask(session, access));
  Sum sum;
  std::string expected;
  proto::FilePiece piece;
  for (;;) {
    const bool is_read = co_await call->Read(piece);
    if (!is_read) {
      break;
    }
    if (piece.has_entry() && from > 0 && !IsSame(piece.entry(), entry)) {
      CO_RETURN_IF_ERROR(sink.Cut(0));
      entry = piece.entry();
      co_return absl::UnavailableError("it has changed");  // anew
    }
    if (piece.has_entry()) {
      entry = piece.entry();
    } else if (piece.kind_case() == proto::FilePiece::kData) {
      CHECK(EVP_DigestUpdate(sum.context, piece.data().data(), piece.data().size()) == 1);
      CO_RETURN_IF_ERROR(sink.Add(piece.data()));
    } else {
      expected = piece.sha256();
    }
  }
  CO_RETURN_IF_ERROR(co_await call->Finish());
  if (sum.Finish() != expected) {
    CO_RETURN_IF_ERROR(sink.Cut(from));
    co_return Refuse(absl::StatusCode::kDataLoss, 155, "what came is not what the site says it sent",
                     "fetch it again; if that does not help, somebody on the way changes what is sent");
  }
  co_return absl::OkStatus();
}

}  // namespace

awaitable<absl::StatusOr<std::vector<proto::FileEntry>>> ListFiles(Session& session, std::string job_id,
                                                                   std::string path) {
  FileAccess access;
  access.set_job_id(job_id);
  access.mutable_list()->set_path(path);
  CO_ASSIGN_OR_RETURN(const auto call, Ask(session, access));
  std::vector<proto::FileEntry> entries;
  proto::FilePiece piece;
  for (;;) {
    const bool is_read = co_await call->Read(piece);
    if (!is_read) {
      break;
    }
    entries.push_back(piece.entry());
  }
  CO_RETURN_IF_ERROR(co_await call->Finish());
  co_return entries;
}

awaitable<absl::StatusOr<proto::FileEntry>> Download(Session& session, FileAccess access, std::string local,
                                                     std::chrono::seconds patience) {
  Sink sink(local);
  CO_RETURN_IF_ERROR(sink.Check());
  proto::FileEntry entry;
  std::chrono::milliseconds pause{0};
  auto moved = Clock::now();
  for (;;) {
    const uint64_t before = sink.size();
    const absl::Status status = co_await DownloadOnce(session, access, sink, entry);
    if (status.ok()) {
      break;
    }
    if (sink.size() != before) {
      moved = Clock::now();
      pause = std::chrono::milliseconds(0);
    }
    if (status.code() != absl::StatusCode::kUnavailable || Clock::now() - moved > patience) {
      co_return status;
    }
    pause = std::min(pause * 2 + std::chrono::milliseconds(100), kPauseMost);
    co_await Sleep(session.loop(), pause);
    (co_await session.OpenAgain()).IgnoreError();  // the next call says why not
  }
  CO_RETURN_IF_ERROR(sink.Keep(entry.mode()));
  co_return entry;
}

namespace {

FileAccess Kept(const proto::JobStatus& job, int number) {
  FileAccess access;
  access.set_job_id(job.job_id());
  access.mutable_kept()->set_number(number);
  return access;
}

}  // namespace

awaitable<absl::Status> FetchStagedOut(Session& session, const proto::JobStatus& job, std::string rsl,
                                       std::chrono::seconds patience) {
  const rsl::CheckReport checked = rsl::Check(rsl);
  if (checked.jobs.size() != 1) {
    co_return absl::OkStatus();
  }
  for (const proto::StagedFile& file : job.staged_out()) {
    const std::vector<rsl::Transfer>& asked = checked.jobs[0].file_stage_out;
    if (file.is_kept() && file.number() >= 0 && size_t(file.number()) < asked.size()) {
      const std::string local = LocalPath(asked[size_t(file.number())].to);
      CO_RETURN_IF_ERROR((co_await Download(session, Kept(job, file.number()), local, patience)).status());
    }
  }
  co_return absl::OkStatus();
}

awaitable<absl::Status> FetchStagedOutInto(Session& session, const proto::JobStatus& job, std::string directory,
                                           std::chrono::seconds patience) {
  for (const proto::StagedFile& file : job.staged_out()) {
    if (file.is_kept()) {
      const std::string name = rsl::PlainName(LocalPath(file.destination()), fmt::format("file.{}", file.number()));
      CO_RETURN_IF_ERROR((co_await Download(session, Kept(job, file.number()), directory + "/" + name, patience)).status());
      fmt::print("{}\n", directory + "/" + name);
    }
  }
  co_return absl::OkStatus();
}

}  // namespace sekisho::client
