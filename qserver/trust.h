// SPDX-License-Identifier: Apache-2.0
// What the queue server believes: authorities, revocation lists and the inside's grid-mapfile, read
// anew when their files change.
#pragma once

#include <memory>
#include <string>

#include "common/identity/judged_chains.h"
#include "common/identity/watched_gridmap.h"
#include "common/tls/peer_verifier.h"

namespace sekisho::qserver {

class Trust {
 public:
  static absl::StatusOr<std::unique_ptr<Trust>> Load(const std::string& ca_directory,
                                                     const std::string& grid_mapfile);

  // Reads again what has changed; what cannot be read leaves the old in force, and is logged.
  void Refresh(identity::Time now);
  void ReadAgain();  // on SIGHUP

  identity::JudgedChains& signers() { return *signers_; }
  const identity::Gridmap& gridmap() const { return gridmap_.gridmap(); }
  tls::PeerVerifier& verifier() { return *verifier_; }

 private:
  Trust(std::string ca_directory, std::string grid_mapfile)
      : ca_directory_(std::move(ca_directory)), gridmap_(std::move(grid_mapfile)) {}
  absl::Status ReadAuthorities();

  const std::string ca_directory_;
  identity::WatchedGridmap gridmap_;
  std::unique_ptr<tls::PeerVerifier> verifier_;       // of hosts that connect
  std::unique_ptr<identity::JudgedChains> signers_;  // of requests
  identity::Time authorities_checked_{};
  uint64_t authorities_version_ = 0;
};

}  // namespace sekisho::qserver
