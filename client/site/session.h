// SPDX-License-Identifier: Apache-2.0
// A connection to a site's gatekeeper as the user: credential, TLS, signing, stubs.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <grpcpp/grpcpp.h>

#include "client/site/sites.h"
#include "common/identity/credential.h"
#include "common/rpc_client.h"
#include "common/tls/link.h"
#include "proto/job_service.grpc.pb.h"

namespace sekisho::client {

class Session {
 public:
  using Async = proto::JobService::StubInterface::async_interface;

  // Shakes hands with the gatekeeper by the user's credential; each failure says which step it was and
  // what to do.
  static absl::StatusOr<std::unique_ptr<Session>> Open(Loop& loop, const Target& target);

  // Another connection in place of one that was lost.  Unavailable: it may be tried again.
  awaitable<absl::Status> OpenAgain();

  // Fills in what every request names (site, gatekeeper, time, service) and signs.
  absl::StatusOr<proto::SignedRequest> Sign(proto::RequestBody body) const;

  // For a call: the contact's service and account.
  rpc::CallOptions Options(std::chrono::milliseconds timeout = std::chrono::milliseconds(0)) const;

  template <typename Request, typename Reply>
  awaitable<absl::StatusOr<Reply>> Call(void (Async::*method)(grpc::ClientContext*, const Request*, Reply*,
                                                              std::function<void(grpc::Status)>),
                                        Request request) {
    auto reply = co_await rpc::Call<Async, Request, Reply>(loop_, stub_->async(), method, std::move(request),
                                                           Options(kAnswerTime));
    if (!reply.ok()) {
      co_return Explain(reply.status());
    }
    co_return reply;
  }

  // Of a call: what the transport says is not for users.
  absl::Status Explain(const absl::Status& error) const;

  Loop& loop() { return loop_; }
  proto::JobService::Stub& stub() { return *stub_; }
  const Target& target() const { return target_; }
  const std::string& gatekeeper_subject() const { return link_->server().subject; }

 private:
  static constexpr std::chrono::seconds kAnswerTime{60};

  Session(Loop& loop, Target target) : loop_(loop), target_(std::move(target)) {}

  absl::StatusOr<const identity::Credential*> LoadCredential();
  absl::Status Connect(int fd);

  Loop& loop_;
  Target target_;
  identity::Credential credential_;
  std::string trust_directory_;
  std::unique_ptr<tls::Link> link_;  // before the channel over it
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<proto::JobService::Stub> stub_;
  std::vector<std::unique_ptr<proto::JobService::Stub>> lost_;  // calls may still be on their way out
};

// "siteA/ID": how the user names this job again.
std::string JobName(const Target& target, const std::string& site, const std::string& id);

// Random, 128 bits, in hexadecimal.
std::string NewRequestId();

// A loop that lives as long as the process: gRPC's threads may still be on their way out of a callback
// when a verb has its answer.
Loop& NewLoop();

// Runs `body`, an awaitable<int>, on `loop` to its end.
int RunOnLoop(Loop& loop, awaitable<int> body);

}  // namespace sekisho::client
