// SPDX-License-Identifier: Apache-2.0
// Files and credentials on their way through: docs/protocol/17-staging.md, 19-delegation.md.  Nothing of them is kept
// here.
#include <asio/experimental/awaitable_operators.hpp>

#include "common/job_array.h"
#include "jobmanager/errors.h"
#include "jobmanager/request.h"
#include "jobmanager/service.h"

namespace sekisho::jobmanager {

using asio::experimental::awaitable_operators::operator||;

grpc::ServerBidiReactor<proto::UploadRequest, proto::UploadReply>* Service::Upload(Context* context) {
  return rpc::Converse<proto::UploadRequest, proto::UploadReply>(
      loop_, [this, caller = CallerOf(*context)](UploadCall& call) { return DoUpload(caller, call); });
}

grpc::ServerWriteReactor<proto::FilePiece>* Service::Files(Context* context, const proto::SignedRequest* request) {
  return rpc::Stream<proto::FilePiece>(loop_, [this, caller = CallerOf(*context), request](auto& writer) {
    return DoFiles(caller, *request, writer);
  });
}

awaitable<absl::Status> Service::ReachFilesOf(std::string job_id, std::string subject) {
  const auto element = SplitElementId(job_id);
  const std::string id = jobs_.book().IsUnmade(job_id, subject) ? element->first : job_id;
  if (jobs_.book().Find(id, subject) == nullptr) {
    co_return errors::NoSuchJob(job_id);
  }
  const bool is_inside = co_await jobs_.UntilSubmitted(id);
  if (!is_inside) {
    co_return errors::AlreadyEnded(id, "no job of the queue server");
  }
  co_return co_await jobs_.queue().Reach();
}

awaitable<absl::Status> Service::DoFiles(absl::StatusOr<Caller> caller, proto::SignedRequest request,
                                         rpc::Writer<proto::FilePiece>& writer) {
  CO_RETURN_IF_ERROR(caller.status());
  CO_ASSIGN_OR_RETURN(const proto::RequestBody body, ReadRequest(request, *caller, jobs_.here()));
  CO_RETURN_IF_ERROR(co_await ReachFilesOf(body.files().job_id(), caller->subject));
  const auto inside = jobs_.queue().Files(request);
  proto::FilePiece piece;
  for (;;) {
    const bool is_read = co_await inside->Read(piece);
    if (!is_read) {
      const absl::Status status = co_await inside->Finish();
      co_return status.ok() || IsVerdict(status) ? status : errors::QueueServerLost(jobs_.here().site);
    }
    const bool is_there = co_await writer.Write(std::move(piece));
    if (!is_there) {
      co_return absl::CancelledError("the client has gone");
    }
  }
}

awaitable<absl::Status> Service::DoUpload(absl::StatusOr<Caller> caller, UploadCall& call) {
  CO_RETURN_IF_ERROR(caller.status());
  proto::UploadRequest first;
  const bool has_first = co_await call.Read(first);
  if (!has_first || first.has_piece()) {
    co_return errors::Malformed("a job's id was expected, or what is to be written");
  }
  std::string id = first.job_id();
  if (first.has_write()) {
    CO_ASSIGN_OR_RETURN(const proto::RequestBody body, ReadRequest(first.write(), *caller, jobs_.here()));
    id = body.files().job_id();
  }
  CO_RETURN_IF_ERROR(co_await ReachFilesOf(id, caller->subject));
  const auto inside = jobs_.queue().Upload();
  first.set_account(caller->account);
  inside->Push(std::move(first));
  const auto ended = co_await (PassPieces(call, inside) || PassWishes(call, inside));
  co_return std::visit([](const absl::Status& status) { return status; }, ended);
}

grpc::ServerUnaryReactor* Service::Delegation(Context* context, const proto::DelegationRequest* request,
                                              proto::DelegationOffer* reply) {
  return rpc::Unary(loop_, context, [=, this, caller = CallerOf(*context)] {
    return DoDelegation(caller, *request, *reply);
  });
}

// Out goes a public key, in come certificates, by a Command: no private key passes here.
awaitable<absl::Status> Service::DoDelegation(absl::StatusOr<Caller> caller, proto::DelegationRequest request,
                                              proto::DelegationOffer& reply) {
  CO_RETURN_IF_ERROR(caller.status());
  CO_RETURN_IF_ERROR(co_await ReachFilesOf(request.job_id(), caller->subject));
  auto offer = co_await jobs_.queue().Delegation(request);
  if (!offer.ok() && !IsVerdict(offer.status())) {
    co_return errors::QueueServerLost(jobs_.here().site);
  }
  CO_ASSIGN_OR_RETURN(reply, std::move(offer));
  co_return absl::OkStatus();
}

// As fast as the inside takes them.
awaitable<absl::Status> Service::PassPieces(UploadCall& call, QueueServer::UploadCall inside) {
  proto::UploadRequest piece;
  for (;;) {
    const bool is_read = co_await call.Read(piece);
    if (!is_read) {
      co_return absl::CancelledError("the client has gone");
    }
    inside->Push(std::move(piece));
    co_await inside->Drain(1);  // if it has gone, the other direction says why
  }
}

awaitable<absl::Status> Service::PassWishes(UploadCall& call, QueueServer::UploadCall inside) {
  proto::UploadReply reply;
  for (;;) {
    const bool is_read = co_await inside->Read(reply);
    if (!is_read) {
      const absl::Status status = co_await inside->Finish();
      co_await call.Drain();
      co_return status.ok() || IsVerdict(status) ? status : errors::QueueServerLost(jobs_.here().site);
    }
    call.Push(std::move(reply));
    co_await call.Drain();
  }
}

}  // namespace sekisho::jobmanager
