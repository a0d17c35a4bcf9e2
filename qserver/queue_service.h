// SPDX-License-Identifier: Apache-2.0
// What jobmanagers ask: docs/protocol/5-queue.md.  Every method sees first who calls.
#pragma once

#include <functional>

#include "common/identity/freshness.h"
#include "common/loop.h"
#include "common/rpc_server.h"
#include "common/trimmer.h"
#include "proto/queue.grpc.pb.h"
#include "qserver/admission.h"
#include "qserver/callers.h"
#include "qserver/commands.h"
#include "qserver/conductor.h"
#include "qserver/offers.h"

namespace sekisho::qserver {

class Staging;

class QueueService final : public proto::Queue::CallbackService {
 public:
  struct Judges {
    // Which of this site's jobmanagers calls?
    std::function<absl::StatusOr<Jobmanager>(const grpc::CallbackServerContext&)> caller;
    // Signature, site and mapping of a request.
    std::function<absl::StatusOr<Verified>(const proto::QueueRequest&)> request;
    std::function<identity::Time()> now;
    // Whom certificates speak for, if they are to be trusted.
    std::function<absl::StatusOr<identity::Identity>(const identity::Chain&)> chain;
    FindAccount find_account;
  };

  QueueService(Loop& loop, Conductor& conductor, const AdmissionRules& rules, Judges judges)
      : loop_(loop),
        conductor_(conductor),
        rules_(rules),
        judges_(std::move(judges)),
        commands_(rules.freshness, judges_.now()),
        cancelled_early_(rules.freshness, kCommandsMax),
        trimmer_(loop) {}

  void SetStaging(Staging& staging) { staging_ = &staging; }  // before it is served
  void SetOffers(Offers& offers) { offers_ = &offers; }       // likewise
  // Where administrators' words are written down.  Before it is served.
  void SetAudit(std::function<absl::Status(const std::string& line)> audit) { audit_ = std::move(audit); }

  grpc::ServerUnaryReactor* Submit(grpc::CallbackServerContext* context,
                                   const proto::QueueRequest* request,
                                   proto::SubmitReply* reply) override;
  grpc::ServerUnaryReactor* Command(grpc::CallbackServerContext* context,
                                    const proto::QueueRequest* request,
                                    proto::CommandReply* reply) override;
  grpc::ServerUnaryReactor* SubmitMany(grpc::CallbackServerContext* context, const proto::QueueRequest* request,
                                       proto::ManyReply* reply) override;
  grpc::ServerUnaryReactor* CommandMany(grpc::CallbackServerContext* context, const proto::QueueRequest* request,
                                        proto::ManyReply* reply) override;
  grpc::ServerUnaryReactor* Administer(grpc::CallbackServerContext* context, const proto::QueueRequest* request,
                                       proto::AdministerReply* reply) override;
  grpc::ServerWriteReactor<proto::JobEvent>* Events(grpc::CallbackServerContext* context,
                                                    const proto::EventsRequest* request) override;
  grpc::ServerWriteReactor<proto::EventGroup>* EventGroups(grpc::CallbackServerContext* context,
                                                           const proto::EventsRequest* request) override;
  grpc::ServerWriteReactor<proto::OutputChunk>* Output(
      grpc::CallbackServerContext* context, const proto::OutputRequest* request) override;
  grpc::ServerReadReactor<proto::InputChunk>* Input(grpc::CallbackServerContext* context,
                                                    proto::InputReply* reply) override;
  grpc::ServerUnaryReactor* Status(grpc::CallbackServerContext* context,
                                   const proto::StatusRequest* request,
                                   proto::StatusReply* reply) override;
  grpc::ServerUnaryReactor* Site(grpc::CallbackServerContext* context,
                                 const proto::SiteRequest* request,
                                 proto::SiteInfo* reply) override;
  grpc::ServerBidiReactor<proto::PartDown, proto::PartUp>* Part(
      grpc::CallbackServerContext* context) override;
  grpc::ServerUnaryReactor* Links(grpc::CallbackServerContext* context,
                                  const proto::LinksRequest* request,
                                  proto::LinksReply* reply) override;
  grpc::ServerBidiReactor<proto::UploadRequest, proto::UploadReply>* Upload(
      grpc::CallbackServerContext* context) override;
  grpc::ServerWriteReactor<proto::FilePiece>* Files(grpc::CallbackServerContext* context,
                                                    const proto::QueueRequest* request) override;
  grpc::ServerUnaryReactor* Delegation(grpc::CallbackServerContext* context, const proto::DelegationRequest* request,
                                       proto::DelegationOffer* reply) override;
  grpc::ServerWriteReactor<proto::Hop>* Diagnose(grpc::CallbackServerContext* context,
                                                 const proto::DiagnoseRequest* request) override;

 private:
  // The peer may call for this account.
  absl::Status JudgeCaller(const grpc::CallbackServerContext& context, const std::string& account) const;
  // Signature, site, mapping, and that its subject is not banned.
  absl::StatusOr<Verified> Judge(const proto::QueueRequest& request) const;
  // The job, if it is there and the peer may ask for it.
  absl::StatusOr<const Job*> FindFor(const grpc::CallbackServerContext& context, const std::string& job_id) const;

  awaitable<absl::Status> HandleSubmit(grpc::CallbackServerContext& context,
                                       const proto::QueueRequest& request,
                                       proto::SubmitReply& reply);
  // A verified submission is new and fresh, or known.
  absl::Status CheckNew(const Verified& verified) const;
  awaitable<absl::Status> CancelIfAsked(std::string subject, std::string job_id);
  awaitable<absl::Status> HandleSubmitMany(grpc::CallbackServerContext& context, const proto::QueueRequest& request,
                                           proto::ManyReply& reply);
  awaitable<absl::Status> HandleCommandMany(grpc::CallbackServerContext& context, const proto::QueueRequest& request,
                                            proto::ManyReply& reply);
  absl::StatusOr<Admitted> AdmitOneOfMany(const Verified& one, const proto::SignedRequest& request,
                                          const FindAccount& find_account, Queue::Usage& usage) const;
  // A verified command to one job, done once; not durable yet.
  static Commands::Request RequestOf(const Verified& verified);
  // `request`: as taken; of a cancel it is not asked for.
  absl::StatusOr<proto::JobState> Obey(const Verified& verified, const Commands::Request& request);
  absl::StatusOr<proto::JobState> Redirect(const Verified& verified, const Job& job);
  using PartCall = rpc::Duplex<proto::PartDown, proto::PartUp>;
  awaitable<absl::Status> HandlePart(grpc::CallbackServerContext& context, PartCall& call);
  awaitable<absl::Status> TakeOrders(PartCall& call, std::string job_id);
  awaitable<absl::Status> SendReports(PartCall& call, std::string job_id);
  awaitable<absl::Status> HandleLinks(grpc::CallbackServerContext& context,
                                      const proto::LinksRequest& request, proto::LinksReply& reply);
  using UploadCall = rpc::Duplex<proto::UploadRequest, proto::UploadReply>;
  awaitable<absl::Status> HandleUpload(grpc::CallbackServerContext& context, UploadCall& call);
  awaitable<absl::Status> HandleWrite(grpc::CallbackServerContext& context, UploadCall& call, proto::UploadRequest first);
  awaitable<absl::Status> HandleFiles(grpc::CallbackServerContext& context, rpc::Writer<proto::FilePiece>& writer,
                                      proto::QueueRequest request);
  // A fresh FileAccess by the job's owner.
  absl::StatusOr<Verified> JudgeFiles(const grpc::CallbackServerContext& context, const proto::QueueRequest& request) const;
  awaitable<absl::Status> HandleCommand(grpc::CallbackServerContext& context,
                                        const proto::QueueRequest& request,
                                        proto::CommandReply& reply);
  awaitable<absl::Status> HandleDelegation(grpc::CallbackServerContext& context, const proto::DelegationRequest& request,
                                           proto::DelegationOffer& reply);
  awaitable<absl::Status> HandleDelegate(Verified verified, proto::CommandReply& reply);
  awaitable<absl::Status> HandleAdminister(grpc::CallbackServerContext& context,
                                           const proto::QueueRequest& request, proto::AdministerReply& reply);
  absl::Status CheckNow(const proto::RequestBody::Administer& word) const;
  // The jobs that it concerns.
  std::vector<std::string> ObeyAdministrator(const proto::RequestBody::Administer& word, const std::string& by);
  void Kill(const std::vector<std::string>& jobs, const std::string& what, const std::string& why);
  template <typename Writer>
  awaitable<absl::Status> HandleEvents(grpc::CallbackServerContext& context, Writer& writer,
                                       proto::EventsRequest request);
  awaitable<absl::Status> HandleOutput(grpc::CallbackServerContext& context,
                                       rpc::Writer<proto::OutputChunk>& writer,
                                       proto::OutputRequest request);
  awaitable<absl::Status> HandleInput(grpc::CallbackServerContext& context,
                                      rpc::Reader<proto::InputChunk>& reader,
                                      proto::InputReply& reply);
  awaitable<absl::Status> HandleStatus(grpc::CallbackServerContext& context,
                                       const proto::StatusRequest& request,
                                       proto::StatusReply& reply);
  awaitable<absl::Status> HandleSite(grpc::CallbackServerContext& context, proto::SiteInfo& reply);
  awaitable<absl::Status> HandleDiagnose(grpc::CallbackServerContext& context,
                                         rpc::Writer<proto::Hop>& writer);

  Loop& loop_;
  Conductor& conductor_;
  const AdmissionRules& rules_;
  const Judges judges_;
  Staging* staging_ = nullptr;
  Offers* offers_ = nullptr;
  std::function<absl::Status(const std::string& line)> audit_;

  // The commands of the last minutes.  Submissions need no such memory: their job id is theirs.
  static constexpr size_t kCommandsMax = 100'000;
  Commands commands_;
  // Jobs that were cancelled before they came.
  identity::ReplaySet cancelled_early_;
  Trimmer trimmer_;
};

}  // namespace sekisho::qserver
