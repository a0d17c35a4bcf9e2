// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/callers.h"

#include "common/call_metadata.h"
#include "common/identity/trust_store.h"
#include "common/log.h"
#include "common/refusal.h"
#include "gatekeeper/passage.h"

namespace sekisho::gatekeeper {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

void Report(const std::string& path, const absl::Status& status) {
  if (status.ok()) {
    spdlog::info("read again {}", path);
  } else {
    spdlog::error("the last good version stays in force: {}", Printable(Message(status)));
  }
}

}  // namespace

absl::Status Callers::Reload() {
  // Each by itself: an error in the map keeps no revocation list from being read.
  const absl::Status trust = ReloadTrust();
  const absl::Status map = map_.Read(Clock::now());
  return trust.ok() ? map : trust;
}

absl::Status Callers::ReloadTrust() {
  trust_version_ = identity::TrustVersion(trust_path_);
  ASSIGN_OR_RETURN(auto trust, identity::TrustStore::Load(trust_path_));
  for (const std::string& warning : trust->warnings()) {
    spdlog::warn("trust directory: {}", Printable(warning));
  }
  const std::shared_ptr<const identity::TrustStore> shared = std::move(trust);
  if (verifier_) {
    verifier_->SetTrust(shared);
    signers_->SetTrust(shared);
  } else {
    verifier_.emplace(shared);
    signers_ = std::make_unique<identity::JudgedChains>(shared, identity::Purpose::kAny);
  }
  return absl::OkStatus();
}

void Callers::ReloadIfChanged() {
  if (Clock::now() - looked_ < kLookEvery) {
    return;
  }
  looked_ = Clock::now();
  if (const auto said = map_.Refresh(looked_)) {
    Report(map_.path(), *said);
  }
  if (identity::TrustVersion(trust_path_) != trust_version_) {
    Report(trust_path_, ReloadTrust());
  }
}

absl::StatusOr<Caller> Callers::Identify(const grpc::ServerContextBase& context) {
  ReloadIfChanged();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ASSIGN_OR_RETURN(const identity::Identity identity, verifier_->PeerIdentity(*context.auth_context(), now));
  const auto passage = context.client_metadata().find(metadata::kPassage);
  if (passage != context.client_metadata().end()) {
    // It lets the bearer in as a leader, whoever's certificate it shows.
    ASSIGN_OR_RETURN(const identity::Identity user,
                     JudgePassage({passage->second.data(), passage->second.size()}, own_subject_, *signers_, now));
    return Caller{user.subject, user.is_limited, map_.gridmap().Accounts(user.subject), true};
  }
  return Caller{identity.subject, identity.is_limited, map_.gridmap().Accounts(identity.subject)};
}

}  // namespace sekisho::gatekeeper
