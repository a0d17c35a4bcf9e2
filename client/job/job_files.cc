// SPDX-License-Identifier: Apache-2.0
#include "client/job/job_files.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>
#include <variant>

#include <asio/experimental/awaitable_operators.hpp>
#include <asio/signal_set.hpp>
#include <fmt/format.h>
#include <openssl/evp.h>

#include "client/job/file_names.h"
#include "client/job/staged_files.h"
#include "client/job/transfer_bar.h"
#include "client/site/exit_code.h"
#include "client/site/harmless.h"
#include "client/site/outage.h"
#include "client/site/reach_again.h"
#include "client/site/site_call.h"
#include "common/refusal.h"
#include "rsl/check.h"
#include "rsl/location.h"
#include "rsl/outgoing.h"

namespace sekisho::client {
namespace {

using asio::experimental::awaitable_operators::operator||;

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

bool IsThereAndNoFile(const std::string& path) {
  struct stat status {};
  return stat(path.c_str(), &status) == 0 && !S_ISREG(status.st_mode);
}

// A link stays one: the file that it leads to is replaced.
std::string BehindLinks(const std::string& path) {
  std::error_code error;
  const std::filesystem::path behind = std::filesystem::canonical(path, error);
  return error ? path : behind.string();
}

// A file of ours, and nobody else's at this moment: -1, if it is not to be had.
int OpenAlone(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600);
  struct stat own {};
  struct stat there {};
  const bool is_ours = fd >= 0 && flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, &own) == 0 && S_ISREG(own.st_mode) &&
                       own.st_uid == geteuid() && own.st_nlink == 1 && lstat(path.c_str(), &there) == 0 &&
                       there.st_ino == own.st_ino && there.st_dev == own.st_dev;
  if (fd >= 0 && !is_ours) {
    close(fd);
  }
  return is_ours ? fd : -1;
}

// What comes, on its way into a file: beside its place, and then there in one step.  What stands there and is no file, a
// pipe or a device, gets it as it comes.  What a command that was killed has left beside it, for the same job, is taken over.
class Sink {
 public:
  Sink(const std::string& path, const std::string& job_id)
      : is_straight_(path == "-" || IsThereAndNoFile(path)),
        path_(is_straight_ ? path : BehindLinks(path)),
        aside_(path_ + "." + job_id + ".part") {
    if (is_straight_) {
      fd_ = path == "-" ? STDOUT_FILENO : open(path.c_str(), O_WRONLY | O_CLOEXEC);
      return;
    }
    fd_ = OpenAlone(aside_);
    if (fd_ < 0) {  // another command is at it
      aside_ = path_ + ".XXXXXX";
      fd_ = mkostemp(aside_.data(), O_CLOEXEC);
    }
  }
  ~Sink() {
    if (fd_ >= 0 && path_ != "-") {
      close(fd_);
    }
    if (fd_ >= 0 && !is_straight_) {
      unlink(aside_.c_str());  // gone if it was kept
    }
  }
  Sink(const Sink&) = delete;
  Sink& operator=(const Sink&) = delete;

  uint64_t size() const { return size_; }
  // What is there already: counts as if it had just come.
  absl::Status TakeOver(const std::function<void(std::string_view)>& add) {
    std::string data(1 << 20, '\0');
    for (;;) {
      const ssize_t got = is_straight_ ? 0 : read(fd_, data.data(), data.size());
      if (got < 0) {
        return CannotWrite(path_);
      }
      if (got == 0) {
        return absl::OkStatus();
      }
      add(std::string_view(data).substr(0, size_t(got)));
      size_ += uint64_t(got);
    }
  }
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
    if (is_straight_ || ftruncate(fd_, off_t(size)) != 0 || lseek(fd_, off_t(size), SEEK_SET) < 0) {
      return Refuse(absl::StatusCode::kDataLoss, 0, "the file has changed while it was read", "read it again");
    }
    size_ = size;
    return absl::OkStatus();
  }
  absl::Status Keep(uint32_t mode) {
    if (is_straight_) {
      return absl::OkStatus();
    }
    const mode_t mask = umask(077);
    umask(mask);
    // A quota may be over only now, where the file is on another host.
    const bool is_whole = fchmod(fd_, mode & 0777 & ~mask) == 0 && fsync(fd_) == 0;
    return is_whole && rename(aside_.c_str(), path_.c_str()) == 0 ? absl::OkStatus() : CannotWrite(path_);
  }

 private:
  const bool is_straight_;
  const std::string path_;
  std::string aside_;  // beside it, of no other's
  int fd_ = -1;
  uint64_t size_ = 0;
};

struct Sum {
  Sum() : context(EVP_MD_CTX_new()) { Begin(); }
  ~Sum() { EVP_MD_CTX_free(context); }
  Sum(const Sum&) = delete;
  Sum& operator=(const Sum&) = delete;
  void Begin() { CHECK(EVP_DigestInit_ex(context, EVP_sha256(), nullptr) == 1); }
  void Add(std::string_view data) { CHECK(EVP_DigestUpdate(context, data.data(), data.size()) == 1); }
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

using Arrived = std::function<void(uint64_t at, uint64_t size)>;

// One call, from where the sink is.  `entry`: of the file as the first call saw it, if there was one; `sum`: of what is in
// the sink.
awaitable<absl::Status> DownloadOnce(Session& session, FileAccess access, Sink& sink, std::optional<proto::FileEntry>& entry,
                                     Sum& sum, const Arrived& arrived) {
  const uint64_t from = sink.size();
  if (access.has_kept()) {
    access.mutable_kept()->set_offset(from);
  } else {
    access.mutable_read()->set_offset(from);
  }
  CO_ASSIGN_OR_RETURN(const auto call, Ask(session, access));
  std::string expected;
  proto::FilePiece piece;
  for (;;) {
    const bool is_read = co_await call->Read(piece);
    if (!is_read) {
      break;
    }
    const bool has_changed = piece.has_entry() && (entry ? !IsSame(piece.entry(), *entry) : piece.entry().size() < from);
    if (has_changed && from > 0) {
      CO_RETURN_IF_ERROR(sink.Cut(0));
      sum.Begin();
      entry = piece.entry();
      co_return absl::UnavailableError("it has changed");  // anew
    }
    if (piece.has_entry()) {
      entry = piece.entry();
    } else if (piece.kind_case() == proto::FilePiece::kData) {
      sum.Add(piece.data());
      CO_RETURN_IF_ERROR(sink.Add(piece.data()));
    } else {
      expected = piece.sha256();
    }
    arrived(sink.size(), entry ? entry->size() : 0);
  }
  CO_RETURN_IF_ERROR(co_await call->Finish());
  if (sum.Finish() != expected) {
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

namespace {

awaitable<absl::Status> DownloadAll(Session& session, const FileAccess& access, Sink& sink, const Arrived& arrived,
                                    std::chrono::seconds patience) {
  std::optional<proto::FileEntry> entry;
  Sum sum;
  CO_RETURN_IF_ERROR(sink.TakeOver([&](std::string_view data) { sum.Add(data); }));
  bool is_taken_over = sink.size() > 0;
  Outage outage(patience);
  for (;;) {
    const uint64_t before = sink.size();
    const absl::Status status = co_await DownloadOnce(session, access, sink, entry, sum, arrived);
    if (status.ok()) {
      co_return sink.Keep(entry ? entry->mode() : 0600);
    }
    if (status.code() == absl::StatusCode::kDataLoss && std::exchange(is_taken_over, false)) {
      CO_RETURN_IF_ERROR(sink.Cut(0));  // it was of another file, or that has changed since
      sum.Begin();
      continue;
    }
    if (status.code() != absl::StatusCode::kUnavailable) {
      co_return status;
    }
    if (sink.size() != before) {
      outage.End();
    }
    outage.Begin(Outage::Clock::now());
    CO_RETURN_IF_ERROR(co_await ReachAgain(session, outage, status));
  }
}

awaitable<absl::Status> Interrupted(asio::signal_set& signals) {
  co_await signals.async_wait(kAsTuple);
  co_return absl::CancelledError("interrupted");
}

}  // namespace

awaitable<absl::Status> Download(Session& session, FileAccess access, std::string local, DownloadOptions options) {
  asio::signal_set signals(session.loop(), SIGINT, SIGTERM);  // before there is anything to take away
  Sink sink(local, access.job_id());
  CO_RETURN_IF_ERROR(sink.Check());
  TransferBar bar(!options.is_quiet && !(local == "-" && isatty(STDOUT_FILENO) == 1));  // not in between the bytes
  const std::string name = access.has_read() ? access.read().path() : local;
  const Arrived arrived = [&](uint64_t at, uint64_t size) { bar.Reach(name, at, size); };
  const auto ended = co_await (DownloadAll(session, access, sink, arrived, options.patience) || Interrupted(signals));
  co_return std::visit([](const absl::Status& either) { return either; }, ended);
}

namespace {

FileAccess Kept(const proto::JobStatus& job, int number) {
  FileAccess access;
  access.set_job_id(job.job_id());
  access.mutable_kept()->set_number(number);
  return access;
}

}  // namespace

int ReportFetch(const absl::Status& status) {
  return status.code() == absl::StatusCode::kCancelled ? kExitCancelled : Report(status);
}

awaitable<absl::Status> FetchStagedOut(Session& session, const proto::JobStatus& job, std::string rsl,
                                       DownloadOptions options) {
  const rsl::CheckReport checked = rsl::Check(rsl);
  if (checked.jobs.size() != 1) {
    co_return absl::OkStatus();
  }
  const std::vector<rsl::Outgoing> asked = rsl::OutgoingOf(checked.jobs[0]);
  for (const proto::StagedFile& file : job.staged_out()) {
    const bool is_asked = file.number() >= 0 && size_t(file.number()) < asked.size();
    if (file.is_kept() && is_asked && rsl::IsForClient(asked[size_t(file.number())])) {
      const std::string local = LocalPath(asked[size_t(file.number())].to);
      CO_RETURN_IF_ERROR(co_await Download(session, Kept(job, file.number()), local, options));
    }
  }
  co_return absl::OkStatus();
}

awaitable<absl::StatusOr<bool>> FetchRedirected(Session& session, const proto::JobStatus& job,
                                                const rsl::JobDescription& restart, DownloadOptions options) {
  std::set<std::string> ours;
  for (const auto* const stream : {&restart.standard_output, &restart.standard_error}) {
    for (const rsl::Destination& destination : *stream) {
      if (rsl::IsForClient({"stdout", 0, "", destination.target}) && rsl::IsSent(destination.target)) {
        ours.insert(destination.target);
      }
    }
  }
  bool is_all = true;
  for (const proto::StagedFile& file : job.staged_out()) {
    if (file.is_kept() && ours.count(file.destination()) > 0) {
      const std::string local = LocalPath(file.destination());
      CO_RETURN_IF_ERROR(co_await Download(session, Kept(job, file.number()), local, options));
    } else {
      is_all = is_all && !file.is_kept();
    }
  }
  co_return is_all;
}

awaitable<absl::Status> FetchStagedOutInto(Session& session, const proto::JobStatus& job, std::string place,
                                           DownloadOptions options) {
  std::error_code error;
  std::vector<std::string> names;
  std::vector<int> numbers;
  for (const proto::StagedFile& file : job.staged_out()) {
    if (file.is_kept()) {
      const std::string name = rsl::PlainName(LocalPath(file.destination()), fmt::format("file.{}", file.number()));
      names.push_back(FreeName(name, file.number(), names));
      numbers.push_back(file.number());
    }
  }
  CO_ASSIGN_OR_RETURN(const auto places, PlacesHere(names, place, std::filesystem::is_directory(place, error)));
  for (size_t i = 0; i < places.size(); ++i) {
    CO_RETURN_IF_ERROR(co_await Download(session, Kept(job, numbers[i]), places[i], options));
    if (place != "-") {
      fmt::print("{}\n", places[i]);
    }
  }
  co_return absl::OkStatus();
}

}  // namespace sekisho::client
