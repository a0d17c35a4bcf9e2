// SPDX-License-Identifier: Apache-2.0
// Every call that comes in: authenticated, mapped, audited, and forwarded to the account's jobmanager.
// It knows no method by name: docs/operations/gatekeeper.md.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/grpcpp.h>

#include "common/loop.h"
#include "gatekeeper/audit.h"
#include "gatekeeper/config.pb.h"
#include "gatekeeper/forward.h"
#include "gatekeeper/policy.h"

namespace sekisho::gatekeeper {

class Service final : public grpc::CallbackGenericService {
 public:
  struct Inside {
    std::shared_ptr<grpc::Channel> channel;
    std::string token;
  };
  struct Parts {
    // Who is at the other end, verified; called on the loop.
    std::function<absl::StatusOr<Caller>(const grpc::ServerContextBase&)> identify;
    // False: its address has too many connections.
    std::function<bool(const std::string& peer)> authenticated;
    // No call on this connection was authenticated, and the refusal is on its way.
    std::function<void(const std::string& peer)> hang_up;
    std::function<absl::Status()> can_audit;
    std::function<awaitable<absl::StatusOr<Inside>>(std::string account)> connect;
    std::function<void(const AuditRecord&)> audit;
  };

  Service(Loop& loop, const Config& config, Parts parts);

  // Refuses new calls from now on.
  void Stop() { is_stopping_ = true; }
  int calls() const { return calls_; }

 private:
  struct Call;

  grpc::ServerGenericBidiReactor* CreateReactor(grpc::GenericCallbackServerContext* context) override;
  awaitable<void> Serve(std::shared_ptr<Call> call);
  awaitable<absl::Status> Admit(std::shared_ptr<Call> call);
  void Done(const std::shared_ptr<Call>& call, const Forward::Summary& summary);

  Loop& loop_;
  const Config& config_;
  const Parts parts_;
  bool is_stopping_ = false;
  int calls_ = 0;
  std::map<std::string, int> calls_by_peer_;
  std::map<std::string, int> calls_by_subject_;
  StrangerLines strangers_;
};

}  // namespace sekisho::gatekeeper
