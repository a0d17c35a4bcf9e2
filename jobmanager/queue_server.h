// SPDX-License-Identifier: Apache-2.0
// The queue server, through the firewall: one channel that is dialled again whenever it breaks.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include <grpcpp/channel.h>

#include "common/loop.h"
#include "common/rpc_client.h"
#include "common/status.h"
#include "proto/queue.grpc.pb.h"

namespace sekisho::jobmanager {

class QueueServer {
 public:
  using OutputCall = std::shared_ptr<rpc::ClientReader<proto::OutputChunk>>;
  using InputCall = std::shared_ptr<rpc::ClientWriter<proto::InputChunk, proto::InputReply>>;
  using PartCall = std::shared_ptr<rpc::ClientDuplex<proto::PartDown, proto::PartUp>>;
  using UploadCall = std::shared_ptr<rpc::ClientDuplex<proto::UploadRequest, proto::UploadReply>>;
  using FilesCall = std::shared_ptr<rpc::ClientReader<proto::FilePiece>>;
  using HopsCall = std::shared_ptr<rpc::ClientReader<proto::Hop>>;

  struct Options {
    std::string site;
    std::string address;  // HOST:PORT
    std::string account;
    std::chrono::milliseconds reach{3'000};    // how long a submit waits for a connection
    std::chrono::milliseconds answer{10'000};  // how long for an answer
    std::chrono::milliseconds compare{300'000};  // how often what it says of the jobs is compared with their events
    std::chrono::milliseconds settle{5'000};     // how long events may be on their way
  };
  using Dial = std::function<std::shared_ptr<grpc::Channel>()>;

  // `dial` makes a channel that shares no connection with others; `tls_verdict` says what the last
  // handshake found, OK without TLS.
  QueueServer(Loop& loop, Options options, Dial dial, std::function<absl::Status()> tls_verdict);

  // OK if the server was heard of just now; else which hop is down.
  awaitable<absl::Status> Reach();

  awaitable<absl::StatusOr<proto::SubmitReply>> Submit(const proto::SignedRequest& request);
  awaitable<absl::StatusOr<proto::CommandReply>> Command(const proto::SignedRequest& request);
  awaitable<absl::StatusOr<proto::ManyReply>> SubmitMany(const proto::SignedRequest& request);
  awaitable<absl::StatusOr<proto::ManyReply>> CommandMany(const proto::SignedRequest& request);
  awaitable<absl::StatusOr<proto::AdministerReply>> Administer(const proto::SignedRequest& request);
  // How these jobs stand there, no more; UNKNOWN: there is no such job.  Older servers say only which those are.
  awaitable<absl::StatusOr<proto::StatusReply>> States(std::vector<std::string> job_ids);
  awaitable<absl::StatusOr<proto::SiteInfo>> Site();
  awaitable<absl::StatusOr<proto::LinksReply>> Links(const proto::LinksRequest& request);
  OutputCall Output(const proto::OutputRequest& request);
  InputCall Input();
  HopsCall Diagnose();
  PartCall Part();
  UploadCall Upload();
  FilesCall Files(const proto::SignedRequest& request);
  awaitable<absl::StatusOr<proto::DelegationOffer>> Delegation(proto::DelegationRequest request);

  // Hands every event after `position()` to `take`, for ever.
  awaitable<void> Follow(std::function<uint64_t()> position,
                         std::function<void(const proto::JobEvent&)> take);
  // From `position()` anew, by the connection that stands.
  void FollowAnew();

  // From here on by a new connection.  Calls on the old one, but for Follow's, go on there.
  void Redial();

  // How the way there looks from here: TCP only.
  awaitable<absl::Status> Probe();

  // Why there was no verdict, in words for the user: `status`, or what the last handshake found.
  std::string WhySilent(const absl::Status& status) const;

  const Options& options() const { return options_; }

 private:
  using Async = proto::Queue::StubInterface::async_interface;
  awaitable<absl::Status> Ping();
  using ManyMethod = void (Async::*)(grpc::ClientContext*, const proto::QueueRequest*, proto::ManyReply*,
                                     std::function<void(grpc::Status)>);
  awaitable<absl::StatusOr<proto::ManyReply>> Many(ManyMethod method, proto::SignedRequest request);
  template <typename Message>
  using EventsMethod = void (Async::*)(grpc::ClientContext*, const proto::EventsRequest*,
                                       grpc::ClientReadReactor<Message>*);
  template <typename Message>
  awaitable<absl::Status> Hear(EventsMethod<Message> method, uint64_t position,
                               std::function<void(const proto::JobEvent&)> take);
  void Heard();

  Loop& loop_;
  const Options options_;
  const Dial dial_;
  const std::function<absl::Status()> tls_verdict_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<proto::Queue::Stub> stub_;
  std::function<void()> end_events_;  // of the stream of events, if there is one
  std::chrono::steady_clock::time_point heard_{};
};

// Whether an answer of this status means that the server has judged; else nobody knows what it did.
bool IsVerdict(const absl::Status& status);

}  // namespace sekisho::jobmanager
