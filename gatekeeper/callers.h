// SPDX-License-Identifier: Apache-2.0
// Who calls: the peer's certificate chain judged against the trust directory, and the accounts that the
// grid-mapfile has for it.  Both are read again when they change on disk, or on Reload().
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <grpcpp/server_context.h>

#include "common/identity/judged_chains.h"
#include "common/identity/watched_gridmap.h"
#include "common/status.h"
#include "common/tls/peer_verifier.h"
#include "gatekeeper/policy.h"

namespace sekisho::gatekeeper {

class Callers {
 public:
  // `own_subject`: of the host certificate, which passages name.
  Callers(std::string map_path, std::string trust_path, std::string own_subject)
      : map_(std::move(map_path)),
        trust_path_(std::move(trust_path)),
        own_subject_(std::move(own_subject)) {}

  // What cannot be read is an error only the first time; later the last good version stays in force.
  absl::Status Reload();

  absl::StatusOr<Caller> Identify(const grpc::ServerContextBase& context);

 private:
  using Clock = std::chrono::steady_clock;
  absl::Status ReloadTrust();
  void ReloadIfChanged();

  identity::WatchedGridmap map_;
  const std::string trust_path_;
  const std::string own_subject_;
  std::optional<tls::PeerVerifier> verifier_;
  std::unique_ptr<identity::JudgedChains> signers_;
  uint64_t trust_version_ = 0;
  Clock::time_point looked_{};
};

}  // namespace sekisho::gatekeeper
