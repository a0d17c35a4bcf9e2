// SPDX-License-Identifier: Apache-2.0
#include "qserver/trust.h"

#include <chrono>

#include "common/log.h"
#include "common/refusal.h"

namespace sekisho::qserver {
namespace {

// So often the directory is looked at while calls come: a new revocation list counts after this.
constexpr std::chrono::seconds kLookAgain(5);

identity::Time Now() {
  return std::chrono::time_point_cast<std::chrono::seconds>(std::chrono::system_clock::now());
}

}  // namespace

absl::StatusOr<std::unique_ptr<Trust>> Trust::Load(const std::string& ca_directory,
                                                   const std::string& grid_mapfile) {
  std::unique_ptr<Trust> trust(new Trust(ca_directory, grid_mapfile));
  RETURN_IF_ERROR(trust->ReadAuthorities());
  RETURN_IF_ERROR(trust->gridmap_.Read(std::chrono::steady_clock::now()));
  return trust;
}

absl::Status Trust::ReadAuthorities() {
  authorities_checked_ = Now();
  authorities_version_ = identity::TrustVersion(ca_directory_);
  ASSIGN_OR_RETURN(const std::shared_ptr<const identity::TrustStore> store,
                   identity::TrustStore::Load(ca_directory_));
  for (const std::string& warning : store->warnings()) {
    spdlog::warn("{}", warning);
  }
  if (verifier_) {
    verifier_->SetTrust(store);
    signers_->SetTrust(store);
  } else {
    verifier_ = std::make_unique<tls::PeerVerifier>(store);
    signers_ = std::make_unique<identity::JudgedChains>(store, identity::Purpose::kAny);
  }
  return absl::OkStatus();
}

void Trust::Refresh(identity::Time now) {
  if (now >= authorities_checked_ + kLookAgain || now < authorities_checked_) {
    authorities_checked_ = now;
    if (identity::TrustVersion(ca_directory_) != authorities_version_) {
      if (const absl::Status status = ReadAuthorities(); !status.ok()) {
        spdlog::error("cannot read authorities again: {}", Message(status));
      }
    }
  }
  if (const auto said = gridmap_.Refresh(std::chrono::steady_clock::now()); said && !said->ok()) {
    spdlog::error("the last good version stays in force: {}", Printable(Message(*said)));
  }
}

void Trust::ReadAgain() {
  for (const absl::Status& status : {ReadAuthorities(), gridmap_.Read(std::chrono::steady_clock::now())}) {
    if (!status.ok()) {
      spdlog::error("cannot read again, the old stays in force: {}", Message(status));
    }
  }
}

}  // namespace sekisho::qserver
