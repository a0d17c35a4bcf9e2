// SPDX-License-Identifier: Apache-2.0
// The half of staging about a job's directory while it runs and after: docs/protocol/17-staging.md, "ls, get, put".
#include <fmt/format.h>

#include "qserver/errors.h"
#include "qserver/staging.h"
#include "qserver/staging_errors.h"

namespace sekisho::qserver {
namespace {

proto::FileEntry EntryOf(const StagerReply::Entry& seen) {
  proto::FileEntry entry;
  entry.set_path(seen.path());
  entry.set_kind(proto::FileEntry::Kind(seen.kind()));
  entry.set_size(seen.size());
  entry.set_modified_ms(seen.modified_ms());
  entry.set_mode(seen.mode());
  entry.set_target(seen.target());
  return entry;
}

}  // namespace

awaitable<absl::StatusOr<std::string>> Staging::PathIn(std::string job_id, std::string path) {
  const std::string parts = "/" + path + "/";
  if (path.starts_with("/") || parts.find("/../") != std::string::npos) {
    co_return errors::NotInTheJob(path);
  }
  CO_ASSIGN_OR_RETURN(const std::string rsl, co_await conductor_.ReadRsl(job_id));
  const Job* job = conductor_.queue().FindOrArray(job_id);
  const auto described = rsl::ParseAndDescribe(rsl, {});
  if (job == nullptr || !described.ok()) {
    co_return errors::NoSuchJob(job_id);
  }
  CO_ASSIGN_OR_RETURN(const RunAs as, FindRunAs(job->status.account()));
  co_return AbsolutePath(path, *described, as.home);
}

awaitable<absl::Status> Staging::Show(FilesWriter& writer, proto::RequestBody::FileAccess access) {
  const Job* job = conductor_.queue().FindOrArray(access.job_id());
  if (job == nullptr) {
    co_return errors::NoSuchJob(access.job_id());
  }
  std::string path;
  if (access.has_kept()) {
    CO_ASSIGN_OR_RETURN(const RunAs as, FindRunAs(job->status.account()));
    path = KeptPlace(as.home, access.job_id(), access.kept().number());
  } else {
    const std::string& asked = access.has_list() ? access.list().path() : access.read().path();
    CO_ASSIGN_OR_RETURN(path, co_await PathIn(access.job_id(), asked));
  }
  job = conductor_.queue().FindOrArray(access.job_id());
  if (job == nullptr) {
    co_return errors::NoSuchJob(access.job_id());
  }
  Slot slot(*this, job->status.account(), Purpose::kUser);
  co_await slot.Take();
  CO_ASSIGN_OR_RETURN(const auto stager, co_await StartStager(access.job_id()));
  if (access.has_list()) {
    co_return co_await ShowList(writer, *stager, path);
  }
  const uint64_t offset = access.has_kept() ? access.kept().offset() : access.read().offset();
  co_return co_await ShowFile(writer, *stager, path, offset);
}

awaitable<absl::Status> Staging::ShowList(FilesWriter& writer, StagerLink& stager, std::string path) {
  StagerOrder order;
  order.mutable_list()->set_path(path);
  const auto reply = co_await stager.Ask(std::move(order));
  if (!reply.ok()) {
    co_return errors::CannotShow(reply.status());
  }
  for (const StagerReply::Entry& entry : reply->listed().entry()) {
    proto::FilePiece piece;
    *piece.mutable_entry() = EntryOf(entry);
    const bool is_there = co_await writer.Write(std::move(piece));
    if (!is_there) {
      co_return absl::CancelledError("the client has gone");
    }
  }
  co_return absl::OkStatus();
}

awaitable<absl::Status> Staging::ShowFile(FilesWriter& writer, StagerLink& stager, std::string path, uint64_t offset) {
  StagerOrder order;
  order.mutable_read()->set_path(path);
  order.mutable_read()->set_offset(offset);
  for (;;) {
    auto reply = co_await stager.Ask(std::move(order));
    if (!reply.ok()) {
      co_return errors::CannotShow(reply.status());
    }
    proto::FilePiece piece;
    if (reply->has_entry()) {
      *piece.mutable_entry() = EntryOf(reply->entry());
    } else if (reply->kind_case() == StagerReply::kData) {
      piece.set_data(std::move(*reply->mutable_data()));
    } else {
      piece.set_sha256(reply->ended().sha256());
    }
    const bool is_last = reply->has_ended();
    const bool is_there = co_await writer.Write(std::move(piece));
    if (!is_there || is_last) {
      co_return is_last ? absl::OkStatus() : absl::CancelledError("the client has gone");
    }
    order.mutable_next();
  }
}

// The bytes come as those of a file that is staged in, and are put in place at once.
awaitable<absl::Status> Staging::TakeWrite(UploadCall& call, proto::RequestBody::FileAccess access) {
  const proto::RequestBody::FileAccess::Write& write = access.write();
  if (write.sha256().size() != 32) {
    co_return errors::BadPiece("expected a SHA-256 of 32 bytes");
  }
  CO_ASSIGN_OR_RETURN(const std::string path, co_await PathIn(access.job_id(), write.path()));
  const Job* job = conductor_.queue().FindOrArray(access.job_id());
  if (job == nullptr) {
    co_return errors::NoSuchJob(access.job_id());
  }
  Slot slot(*this, job->status.account(), Purpose::kUser);
  co_await slot.Take();
  CO_ASSIGN_OR_RETURN(const auto stager, co_await StartStager(access.job_id()));
  Missing missing;
  missing.content.set_sha256(write.sha256());
  missing.content.set_size(write.size());
  missing.source = write.path();
  StagerOrder look;
  *look.mutable_look()->add_content() = missing.content;
  CO_ASSIGN_OR_RETURN(const StagerReply seen, co_await stager->Ask(std::move(look)));
  if (seen.looked().have_size() != 1) {
    co_return absl::UnavailableError("its stager answers another question");
  }
  StagerOrder place;
  if (!seen.looked().have(0).whole()) {
    missing.offset = seen.looked().have(0).offset();
    proto::UploadReply wanted;
    wanted.mutable_wanted()->set_offset(missing.offset);
    call.Push(std::move(wanted));
    CO_ASSIGN_OR_RETURN(*place.mutable_place()->mutable_seen(), co_await TakeFile(call, *stager, missing, ""));
  }
  *place.mutable_place()->mutable_content() = missing.content;
  place.mutable_place()->set_target(path);
  place.mutable_place()->set_mode(0600 | (write.mode() & 0100));
  const absl::Status placed = (co_await stager->Ask(std::move(place))).status();
  co_await call.Drain();
  co_return placed.ok() ? absl::OkStatus() : errors::CannotShow(placed);
}

}  // namespace sekisho::qserver
