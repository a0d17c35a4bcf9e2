// SPDX-License-Identifier: Apache-2.0
// The service's part about files: docs/protocol/17-staging.md.
#include "common/log.h"
#include "qserver/errors.h"
#include "qserver/queue_service.h"
#include "qserver/staging.h"
#include "qserver/staging_errors.h"

namespace sekisho::qserver {

grpc::ServerBidiReactor<proto::UploadRequest, proto::UploadReply>* QueueService::Upload(
    grpc::CallbackServerContext* context) {
  return rpc::Converse<proto::UploadRequest, proto::UploadReply>(
      loop_, [this, context](UploadCall& call) { return HandleUpload(*context, call); });
}

grpc::ServerWriteReactor<proto::FilePiece>* QueueService::Files(grpc::CallbackServerContext* context,
                                                                const proto::QueueRequest* request) {
  return rpc::Stream<proto::FilePiece>(
      loop_, [this, context, request](auto& writer) { return HandleFiles(*context, writer, *request); });
}

absl::StatusOr<Verified> QueueService::JudgeFiles(const grpc::CallbackServerContext& context,
                                                  const proto::QueueRequest& request) const {
  RETURN_IF_ERROR(JudgeCaller(context, request.account()));
  ASSIGN_OR_RETURN(Verified verified, Judge(request));
  if (!verified.body.has_files() || staging_ == nullptr) {
    return errors::BadRequest("expected an access to a job's files");
  }
  RETURN_IF_ERROR(CheckFresh(verified, rules_, judges_.now()));
  const std::string& job_id = verified.body.files().job_id();
  if (conductor_.queue().FindOrArray(job_id, verified.identity.subject) == nullptr) {
    return errors::NoSuchJob(Printable(job_id));
  }
  return verified;
}

awaitable<absl::Status> QueueService::HandleFiles(grpc::CallbackServerContext& context,
                                                  rpc::Writer<proto::FilePiece>& writer, proto::QueueRequest request) {
  // Validate.
  CO_ASSIGN_OR_RETURN(const Verified verified, JudgeFiles(context, request));
  const auto& files = verified.body.files();
  if (!files.has_list() && !files.has_read() && !files.has_kept()) {
    co_return errors::BadRequest("expected to list or to read");
  }

  // Act and answer.
  co_return co_await staging_->Show(writer, files);
}

awaitable<absl::Status> QueueService::HandleUpload(grpc::CallbackServerContext& context, UploadCall& call) {
  // Validate.
  CO_RETURN_IF_ERROR(judges_.caller(context).status());
  proto::UploadRequest first;
  const bool has_first = co_await call.Read(first);
  if (!has_first || first.has_piece() || staging_ == nullptr) {
    co_return errors::BadRequest("expected a job's id, or what is to be written");
  }
  if (first.has_write()) {
    co_return co_await HandleWrite(context, call, std::move(first));
  }

  // Look up.
  CO_RETURN_IF_ERROR(FindFor(context, first.job_id()).status());

  // Act.
  co_return co_await staging_->Take(call, first.job_id());
}

awaitable<absl::Status> QueueService::HandleWrite(grpc::CallbackServerContext& context, UploadCall& call,
                                                  proto::UploadRequest first) {
  // Validate.
  proto::QueueRequest request;
  *request.mutable_request() = std::move(*first.mutable_write());
  request.set_account(first.account());
  CO_ASSIGN_OR_RETURN(const Verified verified, JudgeFiles(context, request));
  if (!verified.body.files().has_write()) {
    co_return errors::BadRequest("expected to write");
  }

  // Act once: what somebody on the way has kept and sends again would undo what came later.
  const std::string what = "files " + verified.body.files().job_id();
  CO_ASSIGN_OR_RETURN(const bool is_new, commands_.Accept(RequestOf(verified), what, judges_.now()));
  if (!is_new) {
    co_return errors::WrittenBefore();
  }
  co_return co_await staging_->TakeWrite(call, verified.body.files());
}

}  // namespace sekisho::qserver
