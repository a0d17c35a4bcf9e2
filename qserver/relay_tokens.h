// SPDX-License-Identifier: Apache-2.0
// The tokens by which a job's tasks use the site's relay: docs/protocol/10-nxproxy.md, "Job tokens".
// Pure: time is an argument.
#pragma once

#include <chrono>
#include <map>
#include <string>

#include "common/identity/credential.h"
#include "common/identity/identity.h"
#include "common/status.h"
#include "proto/nodes.pb.h"

namespace sekisho::qserver {

class RelayTokens {
 public:
  static constexpr std::chrono::seconds kLife{24 * 3600};  // as long as relays take them

  struct Settings {
    std::string address;  // of the relay, as the nodes reach it
    std::string site;
    std::chrono::seconds life{kLife};
  };

  // `signer`: the queue server's host credential.
  RelayTokens(Settings settings, identity::Credential signer)
      : settings_(std::move(settings)), signer_(std::move(signer)) {}

  // Lets a task of `owner`'s use the relay as job `name`: the job's token and key, in small files, and
  // where they are, and the relay.
  absl::Status AddTo(proto::ServerMessage::Start& start, const std::string& name,
                     const std::string& owner, identity::Time now);
  void Forget(const std::string& name) { minted_.erase(name); }

 private:
  absl::StatusOr<std::string> TokenOf(const std::string& name, const std::string& owner,
                                      identity::Time now);
  absl::StatusOr<std::string> KeyFile(const std::string& name, const std::string& owner) const;

  struct Minted {
    std::string token;
    identity::Time at;
  };

  const Settings settings_;
  const identity::Credential signer_;
  std::map<std::string, Minted> minted_;  // by job
};

}  // namespace sekisho::qserver
