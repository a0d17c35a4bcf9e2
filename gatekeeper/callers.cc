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
  const int64_t map_version = Version(map_path_);
  const auto trust_version = static_cast<int64_t>(identity::TrustVersion(trust_path_));
  ASSIGN_OR_RETURN(identity::Gridmap map, identity::Gridmap::Load(map_path_));
  ASSIGN_OR_RETURN(auto trust, identity::TrustStore::Load(trust_path_));
  for (const std::string& warning : trust->warnings()) {
    spdlog::warn("trust directory: {}", Printable(warning));
  }
  map_.emplace(std::move(map));
  if (verifier_) {
    verifier_->SetTrust(std::move(trust));
  } else {
    verifier_.emplace(std::move(trust));
  }
  map_version_ = map_version;
  trust_version_ = trust_version;
  return absl::OkStatus();
}

void Callers::ReloadIfChanged() {
  if (Clock::now() - looked_ < kLookEvery) {
    return;
  }
  looked_ = Clock::now();
  const int64_t map_version = Version(map_path_);
  const auto trust_version = static_cast<int64_t>(identity::TrustVersion(trust_path_));
  if (map_version == map_version_ && trust_version == trust_version_) {
    return;
  }
  if (const absl::Status status = Reload(); !status.ok()) {
    spdlog::error("the last good version stays in force: {}", Printable(Message(status)));
    map_version_ = map_version;  // said once, until it changes again
    trust_version_ = trust_version;
  } else {
    spdlog::info("read again map={} trust={}", map_path_, trust_path_);
  }
}

absl::StatusOr<Caller> Callers::Identify(const grpc::ServerContextBase& context) {
  ReloadIfChanged();
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  ASSIGN_OR_RETURN(const identity::Identity identity, verifier_->PeerIdentity(*context.auth_context(), now));
  return Caller{identity.subject, identity.is_limited, map_->Accounts(identity.subject)};
}

}  // namespace sekisho::gatekeeper
