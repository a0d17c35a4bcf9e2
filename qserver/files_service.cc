// SPDX-License-Identifier: Apache-2.0
// The service's part about files: docs/protocol/17-staging.md.
#include "qserver/errors.h"
#include "qserver/queue_service.h"
#include "qserver/staging.h"

namespace sekisho::qserver {

grpc::ServerBidiReactor<proto::UploadRequest, proto::UploadReply>* QueueService::Upload(
    grpc::CallbackServerContext* context) {
  return rpc::Converse<proto::UploadRequest, proto::UploadReply>(
      loop_, [this, context](UploadCall& call) { return HandleUpload(*context, call); });
}

awaitable<absl::Status> QueueService::HandleUpload(grpc::CallbackServerContext& context, UploadCall& call) {
  // Validate.
  CO_RETURN_IF_ERROR(judges_.caller(context).status());
  proto::UploadRequest first;
  const bool has_first = co_await call.Read(first);
  if (!has_first || !first.has_job_id() || staging_ == nullptr) {
    co_return errors::BadRequest("expected a job's id");
  }

  // Look up.
  CO_RETURN_IF_ERROR(FindFor(context, first.job_id()).status());

  // Act.
  co_return co_await staging_->Take(call, first.job_id());
}

}  // namespace sekisho::qserver
