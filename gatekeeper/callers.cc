// SPDX-License-Identifier: Apache-2.0
#include "gatekeeper/callers.h"

#include <sys/stat.h>

#include "common/identity/trust_store.h"
#include "common/log.h"
#include "common/refusal.h"

namespace sekisho::gatekeeper {
namespace {

constexpr std::chrono::seconds kLookEvery{1};

// Of a file: changes whenever it is written or replaced.
int64_t Version(const std::string& path) {
  struct stat status {};
  if (stat(path.c_str(), &status) != 0) {
    return -1;
  }
  return status.st_mtim.tv_sec * 1'000'000'000 + status.st_mtim.tv_nsec + static_cast<int64_t>(status.st_ino);
}

}  // namespace

absl::Status Callers::Reload() {
  // Each by itself: an error in the map keeps no revocation list from being read.
  const absl::Status trust = ReloadTrust();
  const absl::Status map = ReloadMap();
  return trust.ok() ? map : trust;
}

absl::Status Callers::ReloadMap() {
  map_version_ = Version(map_path_);  // an error is said once, until it changes again
  ASSIGN_OR_RETURN(identity::Gridmap map, identity::Gridmap::Load(map_path_));
  map_.emplace(std::move(map));
  return absl::OkStatus();
}

absl::Status Callers::ReloadTrust() {
  trust_version_ = static_cast<int64_t>(identity::TrustVersion(trust_path_));
  ASSIGN_OR_RETURN(auto trust, identity::TrustStore::Load(trust_path_));
  for (const std::string& warning : trust->warnings()) {
    spdlog::warn("trust directory: {}", Printable(warning));
  }
  if (verifier_) {
    verifier_->SetTrust(std::move(trust));
  } else {
    verifier_.emplace(std::move(trust));
  }
  return absl::OkStatus();
}

void Callers::ReloadIfChanged() {
  if (Clock::now() - looked_ < kLookEvery) {
    return;
  }
  looked_ = Clock::now();
  const auto report = [](const std::string& path, const absl::Status& status) {
    if (status.ok()) {
      spdlog::info("read again {}", path);
    } else {
      spdlog::error("the last good version stays in force: {}", Printable(Message(status)));
    }
  };
  if (Version(map_path_) != map_version_) {
    report(map_path_, ReloadMap());
  }
  if (static_cast<int64_t>(identity::TrustVersion(trust_path_)) != trust_version_) {
    report(trust_path_, ReloadTrust());
  }
}

absl::StatusOr<Caller> Callers::Identify(const grpc::ServerContextBase& context) {
  ReloadIfChanged();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ASSIGN_OR_RETURN(const identity::Identity identity, verifier_->PeerIdentity(*context.auth_context(), now));
  return Caller{identity.subject, identity.is_limited, map_->Accounts(identity.subject)};
}

}  // namespace sekisho::gatekeeper
