// SPDX-License-Identifier: Apache-2.0
// Who calls at the queue server's two ports: docs/protocol/5-queue.md and 7-nodes.md.
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>

#include "common/loop.h"
#include "common/tls/gate.h"
#include "qserver/trust.h"

namespace sekisho::qserver {

// A jobmanager that calls.
struct Jobmanager {
  std::string account;  // whose jobs it has to do with; empty: of all
  bool Has(const std::string& other) const { return account.empty() || account == other; }
};

class Callers {
 public:
  struct Rules {
    std::set<std::string> jobmanagers;  // normalized subjects
    std::set<std::string> directories;
    std::set<std::string> nodes;        // that may speak for any node; empty: hosts for their own
    // Is this the token of the job's pilots?  Called on gRPC's threads.
    std::function<bool(const std::string& job_id, const std::string& token)> is_pilot;
  };

  Callers(Loop& loop, Trust& trust, Rules rules) : loop_(loop), trust_(trust), rules_(std::move(rules)) {}
  Callers(const Callers&) = delete;
  Callers& operator=(const Callers&) = delete;

  // At the gates, on gRPC's threads: nothing of the call has been read.
  absl::Status AtQueueGate(const grpc::AuthContext& peer);
  absl::Status AtNodesGate(const grpc::AuthContext& peer, const tls::CallMetadata& metadata);

  // On the loop, when a call is served: by the files as they are then.
  absl::StatusOr<Jobmanager> JudgeJobmanager(const grpc::AuthContext& peer);
  absl::Status JudgeDirectory(const grpc::AuthContext& peer);
  absl::Status JudgeNode(const grpc::AuthContext& peer, const std::string& node);

 private:
  absl::StatusOr<Jobmanager> FindJobmanager(const grpc::AuthContext& peer);
  absl::Status Directory(const grpc::AuthContext& peer);
  absl::Status Node(const grpc::AuthContext& peer, const std::string& node);
  absl::Status Pilot(const std::string& job_and_token) const;
  absl::Status Told(absl::Status status);

  Loop& loop_;
  Trust& trust_;
  const Rules rules_;
  std::atomic<bool> is_look_due_ = false;
};

}  // namespace sekisho::qserver
