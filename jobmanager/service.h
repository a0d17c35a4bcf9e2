// SPDX-License-Identifier: Apache-2.0
// JobService as the account's jobmanager serves it: docs/protocol/4-submission.md.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/newest_call.h"
#include "common/rpc_server.h"
#include "jobmanager/jobs.h"
#include "jobmanager/leader.h"
#include "proto/job_service.grpc.pb.h"

namespace sekisho::jobmanager {

class Service final : public proto::JobService::CallbackService {
 public:
  // Calls without `token` are not the gatekeeper's, and refused.
  Service(Loop& loop, Jobs& jobs, Leaders& leaders, std::string token, std::vector<std::string> services);

 private:
  using Context = grpc::CallbackServerContext;

  grpc::ServerUnaryReactor* Submit(Context*, const proto::SignedRequest*, proto::SubmitReply*) override;
  grpc::ServerWriteReactor<proto::Update>* Run(Context*, const proto::SignedRequest*) override;
  grpc::ServerWriteReactor<proto::Update>* Attach(Context*, const proto::AttachRequest*) override;
  grpc::ServerReadReactor<proto::InputChunk>* Input(Context*, proto::InputReply*) override;
  grpc::ServerUnaryReactor* Command(Context*, const proto::SignedRequest*, proto::CommandReply*) override;
  grpc::ServerUnaryReactor* SubmitMany(Context*, const proto::SignedRequest*, proto::ManyReply*) override;
  grpc::ServerUnaryReactor* CommandMany(Context*, const proto::SignedRequest*, proto::ManyReply*) override;
  grpc::ServerWriteReactor<proto::StatusReply>* Watch(Context*, const proto::StatusRequest*) override;
  grpc::ServerUnaryReactor* Administer(Context*, const proto::SignedRequest*, proto::AdministerReply*) override;
  grpc::ServerUnaryReactor* Status(Context*, const proto::StatusRequest*, proto::StatusReply*) override;
  grpc::ServerUnaryReactor* List(Context*, const proto::ListRequest*, proto::StatusReply*) override;
  grpc::ServerUnaryReactor* Site(Context*, const proto::SiteRequest*, proto::SiteInfo*) override;
  grpc::ServerWriteReactor<proto::Hop>* Diagnose(Context*, const proto::DiagnoseRequest*) override;
  grpc::ServerBidiReactor<proto::LeadRequest, proto::LeadUpdate>* Lead(Context*) override;
  grpc::ServerUnaryReactor* Coallocate(Context*, const proto::CoallocRequest*, proto::CoallocReply*) override;
  grpc::ServerBidiReactor<proto::PartDown, proto::PartUp>* Part(Context*) override;
  grpc::ServerUnaryReactor* Links(Context*, const proto::LinksRequest*, proto::LinksReply*) override;
  grpc::ServerBidiReactor<proto::UploadRequest, proto::UploadReply>* Upload(Context*) override;
  grpc::ServerWriteReactor<proto::FilePiece>* Files(Context*, const proto::SignedRequest*) override;
  grpc::ServerUnaryReactor* Delegation(Context*, const proto::DelegationRequest*, proto::DelegationOffer*) override;

  using LeadCall = rpc::Duplex<proto::LeadRequest, proto::LeadUpdate>;
  using PartCall = rpc::Duplex<proto::PartDown, proto::PartUp>;

  using UploadCall = rpc::Duplex<proto::UploadRequest, proto::UploadReply>;

  // A leader may make no call but those that say so.
  absl::StatusOr<Caller> CallerOf(const Context& context, bool may_lead = false) const;
  awaitable<absl::Status> DoLead(absl::StatusOr<Caller> caller, LeadCall& call);
  awaitable<absl::Status> TellNews(std::shared_ptr<Leader> leader, LeadCall& call);
  awaitable<absl::Status> DoPart(absl::StatusOr<Caller> caller, PartCall& call);
  awaitable<absl::Status> PassOrders(PartCall& call, QueueServer::PartCall inside);
  awaitable<absl::Status> PassReports(PartCall& call, QueueServer::PartCall inside);
  // The job of the request is inside, and the queue server is there.
  awaitable<absl::Status> ReachFilesOf(std::string job_id, std::string subject);
  awaitable<absl::Status> DoFiles(absl::StatusOr<Caller> caller, proto::SignedRequest request,
                                  rpc::Writer<proto::FilePiece>& writer);
  awaitable<absl::Status> DoDelegation(absl::StatusOr<Caller> caller, proto::DelegationRequest request,
                                       proto::DelegationOffer& reply);
  awaitable<absl::Status> DoUpload(absl::StatusOr<Caller> caller, UploadCall& call);
  awaitable<absl::Status> PassPieces(UploadCall& call, QueueServer::UploadCall inside);
  awaitable<absl::Status> PassWishes(UploadCall& call, QueueServer::UploadCall inside);
  awaitable<absl::Status> DoRun(absl::StatusOr<Caller> caller, proto::SignedRequest request,
                                rpc::Writer<proto::Update>& writer);
  awaitable<absl::Status> DoAttach(absl::StatusOr<Caller> caller, proto::AttachRequest request,
                                   rpc::Writer<proto::Update>& writer);
  awaitable<absl::Status> DoInput(absl::StatusOr<Caller> caller, rpc::Reader<proto::InputChunk>& reader,
                                  proto::InputReply& reply);
  awaitable<absl::Status> PassInput(proto::InputChunk chunk, rpc::Reader<proto::InputChunk>& reader,
                                    proto::InputReply& reply);
  awaitable<absl::Status> DoWatch(absl::StatusOr<Caller> caller, proto::StatusRequest request,
                                  rpc::Writer<proto::StatusReply>& writer);
  awaitable<absl::Status> DoDiagnose(absl::StatusOr<Caller> caller, rpc::Writer<proto::Hop>& writer);

  Loop& loop_;
  Jobs& jobs_;
  Leaders& leaders_;
  const std::string token_;
  const std::vector<std::string> services_;
  NewestCalls feeds_;  // of a job's input
};

}  // namespace sekisho::jobmanager
