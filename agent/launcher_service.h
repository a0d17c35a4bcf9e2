// SPDX-License-Identifier: Apache-2.0
// sekisho-rsh's door: a Unix socket on which a running task, known by its token, asks for a helper
// on another node of its job.
#pragma once

#include <functional>
#include <string>

#include "agent/launches.h"
#include "agent/task/spec.h"
#include "common/loop.h"
#include "common/rpc_server.h"
#include "proto/nodes.grpc.pb.h"

namespace sekisho::agent {

class LauncherService final : public proto::Launcher::CallbackService {
 public:
  // Tasks::FindByToken.
  using FindTask =
      std::function<const task::Spec*(const std::string& job_id, const std::string& token)>;

  LauncherService(Loop& loop, Outbox& outbox, Launches& launches, FindTask find_task);

  grpc::ServerBidiReactor<proto::LaunchIn, proto::LaunchOut>* Launch(
      grpc::CallbackServerContext* context) override;

 private:
  using Call = rpc::Duplex<proto::LaunchIn, proto::LaunchOut>;

  awaitable<absl::Status> Serve(Call& call);

  Loop& loop_;
  Outbox& outbox_;
  Launches& launches_;
  FindTask find_task_;
};

}  // namespace sekisho::agent
