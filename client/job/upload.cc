// SPDX-License-Identifier: Apache-2.0
#include "client/job/upload.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <variant>

#include <asio/experimental/awaitable_operators.hpp>
#include <fmt/format.h>

#include "client/job/follow.h"
#include "client/site/harmless.h"
#include "client/site/reach_again.h"
#include "client/site/site_call.h"

namespace sekisho::client {
namespace {

using asio::experimental::awaitable_operators::operator||;
using Call = rpc::ClientDuplex<proto::UploadRequest, proto::UploadReply>;

constexpr size_t kPieceBytes = 256 << 10;
constexpr size_t kPiecesQueued = 3;
constexpr uint64_t kAheadMost = 16 << 20;  // of what the site has taken: what is under way gathers in the daemons on it

// What the site has asked for, and how far that is.
struct Wishes {
  explicit Wishes(Loop& loop) : changed(loop) {}
  Signal changed;
  std::deque<proto::UploadReply::Wanted> open;
  absl::Status trouble;  // here
  std::map<int, uint64_t> taken;  // file -> as far as the site has said
  bool has_moved = false;
};

absl::Status HasChanged(const std::string& url, const std::string& why) {
  return Refuse(absl::StatusCode::kInvalidArgument, 135,
                fmt::format("{} is not any more what was signed: {}", Harmless(url), why), "submit the job again");
}

class LocalFile {
 public:
  explicit LocalFile(const std::string& path) : fd_(open(path.c_str(), O_RDONLY | O_CLOEXEC)) {}
  ~LocalFile() {
    if (fd_ >= 0) {
      close(fd_);
    }
  }
  LocalFile(const LocalFile&) = delete;
  LocalFile& operator=(const LocalFile&) = delete;

  // Exactly these bytes, or an errno of why not; 0: the file ends before.
  absl::StatusOr<std::string> Read(uint64_t offset, size_t size) const {
    std::string data(size, '\0');
    for (size_t done = 0; done < size;) {
      const ssize_t got = pread(fd_, data.data() + done, size - done, off_t(offset + done));
      if (got < 0 && errno == EINTR) {
        continue;
      }
      if (got <= 0) {
        return absl::DataLossError(got == 0 ? "it is shorter" : std::strerror(errno));
      }
      done += size_t(got);
    }
    return data;
  }

 private:
  const int fd_;
};

awaitable<absl::Status> SendFile(Call& call, Wishes& wishes, const proto::RequestBody::ClientFile& file,
                                 const proto::UploadReply::Wanted& wanted) {
  const LocalFile local(LocalPath(file.url()));
  for (uint64_t at = wanted.offset(); at < file.size();) {
    while (at > std::max(wanted.offset(), wishes.taken[wanted.file()]) + kAheadMost) {
      co_await wishes.changed.Wait();
    }
    const size_t size = size_t(std::min<uint64_t>(kPieceBytes, file.size() - at));
    absl::StatusOr<std::string> data = local.Read(at, size);
    if (!data.ok()) {
      co_return HasChanged(file.url(), Message(data.status()));
    }
    proto::UploadRequest request;
    request.mutable_piece()->set_file(wanted.file());
    request.mutable_piece()->set_offset(at);
    request.mutable_piece()->set_data(*std::move(data));
    call.Push(std::move(request));
    at += size;
    co_await call.Drain(kPiecesQueued);
  }
  co_return absl::OkStatus();
}

// Until the other direction ends.
awaitable<absl::Status> SendPieces(std::shared_ptr<Call> call, std::shared_ptr<Wishes> wishes, ClientFiles files) {
  for (;;) {
    while (wishes->open.empty()) {
      co_await wishes->changed.Wait();
    }
    const proto::UploadReply::Wanted wanted = wishes->open.front();
    wishes->open.pop_front();
    if (wanted.file() < 0 || wanted.file() >= files.size()) {
      co_return absl::InternalError("the site asks for a file that was not named");
    }
    const absl::Status sent = co_await SendFile(*call, *wishes, files[wanted.file()], wanted);
    CO_RETURN_IF_ERROR(sent);
  }
}

using Arrived = std::function<void(int file, uint64_t bytes)>;

awaitable<absl::Status> HearWishes(std::shared_ptr<Call> call, std::shared_ptr<Wishes> wishes, Arrived arrived) {
  proto::UploadReply reply;
  for (;;) {
    const bool is_read = co_await call->Read(reply);
    if (!is_read) {
      co_return co_await call->Finish();
    }
    if (reply.has_taken()) {
      wishes->has_moved = true;
      wishes->taken[reply.taken().file()] = reply.taken().offset();
      wishes->changed.Notify();
      arrived(reply.taken().file(), reply.taken().offset());
    }
    if (reply.has_wanted()) {
      arrived(reply.wanted().file(), reply.wanted().offset());
      wishes->open.push_back(reply.wanted());
      wishes->changed.Notify();
    }
  }
}

bool IsWorthAnotherTry(const absl::Status& status) {
  switch (status.code()) {
    case absl::StatusCode::kUnavailable:
    case absl::StatusCode::kCancelled:
    case absl::StatusCode::kDeadlineExceeded:
    case absl::StatusCode::kUnknown:
      return true;
    default:
      return false;
  }
}

// The site says that it was something else: was it changed here?
absl::Status Explained(const absl::Status& status, const ClientFiles& files) {
  if (status.code() == absl::StatusCode::kDataLoss) {
    for (const auto& file : files) {
      const auto now = SumFile(file.url());
      if (!now.ok() || now->sha256() != file.sha256()) {
        return HasChanged(file.url(), now.ok() ? "its content is another" : Message(now.status()));
      }
    }
  }
  return status;
}

using First = std::function<absl::StatusOr<proto::UploadRequest>()>;

// Errors are printed where it was.
struct HideAtEnd {
  ~HideAtEnd() {
    if (bar != nullptr) {
      bar->Hide();
    }
  }
  TransferBar* const bar;
};

awaitable<absl::Status> Send(Session& session, std::string job_id, First first, ClientFiles files,
                             UploadOptions options) {
  const HideAtEnd hides{options.bar.get()};
  const Arrived arrived = [&](int file, uint64_t bytes) {
    if (options.bar != nullptr && file >= 0 && file < files.size()) {
      options.bar->Reach(job_id + "/" + files[file].url(), bytes, files[file].size());
    }
  };
  Outage outage(options.patience);
  for (;;) {
    const auto call = rpc::Start<Call>(session.loop(), session.Options(), [&](auto& started) {
      session.stub().async()->Upload(&started.context(), &started);
    });
    CO_ASSIGN_OR_RETURN(proto::UploadRequest what, first());
    call->Push(std::move(what));
    const auto wishes = std::make_shared<Wishes>(session.loop());
    const auto ended = co_await (SendPieces(call, wishes, files) || HearWishes(call, wishes, arrived));
    const absl::Status status = std::visit([](const absl::Status& either) { return either; }, ended);
    if (status.ok() || !IsWorthAnotherTry(status)) {
      co_return Explained(status, files);
    }
    if (wishes->has_moved) {
      outage.End();
    }
    if (!co_await MayTryAgain(session, outage, options.reopens)) {
      co_return status;
    }
  }
}

}  // namespace

awaitable<absl::Status> Upload(Session& session, std::string job_id, ClientFiles files, UploadOptions options) {
  const First first = [job_id] {
    proto::UploadRequest request;
    request.set_job_id(job_id);
    return request;
  };
  co_return co_await Send(session, job_id, first, std::move(files), options);
}

awaitable<absl::Status> PutFile(Session& session, std::string job_id, proto::RequestBody::ClientFile file,
                                std::string path, UploadOptions options) {
  const First first = [&]() -> absl::StatusOr<proto::UploadRequest> {  // signed anew for each call
    proto::RequestBody body;
    body.mutable_files()->set_job_id(job_id);
    proto::RequestBody::FileAccess::Write& write = *body.mutable_files()->mutable_write();
    write.set_path(path);
    write.set_size(file.size());
    write.set_sha256(file.sha256());
    write.set_mode(file.mode());
    proto::UploadRequest request;
    ASSIGN_OR_RETURN(*request.mutable_write(), session.Sign(std::move(body)));
    return request;
  };
  ClientFiles files;
  *files.Add() = file;
  co_return co_await Send(session, job_id, first, std::move(files), options);
}

awaitable<int> UploadOrCancel(Session& session, std::string job_id, ClientFiles files, UploadOptions options) {
  const absl::Status status = co_await Upload(session, job_id, std::move(files), options);
  if (status.ok() || status.code() == absl::StatusCode::kFailedPrecondition ||
      status.code() == absl::StatusCode::kAborted) {  // the job is over, or another command sends them
    co_return 0;
  }
  const int code = Report(status);
  const auto cancelled = co_await Cancel(session, job_id);
  if (!cancelled.ok() && cancelled.status().code() != absl::StatusCode::kFailedPrecondition) {
    Report(cancelled.status());
  }
  co_return code;
}

}  // namespace sekisho::client
