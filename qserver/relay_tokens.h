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
  RelayTokens(Settings settings, identity::Credential signer);
  ~RelayTokens();
  RelayTokens(const RelayTokens&) = delete;
  RelayTokens& operator=(const RelayTokens&) = delete;

  // To the relay a program over several sites is one job.
  struct Job {
    std::string name;
    std::string owner;
    std::map<std::string, std::string> speakers;  // site -> subject of its queue server; of a program that encrypts
  };

  // Lets a task use the relay as `job`: the job's token and key, in small files, and where they are, and
  // the relay.
  absl::Status AddTo(proto::ServerMessage::Start& start, const Job& job, identity::Time now);
  // The same files for a task that runs: a later token, and a later statement about the same key.
  absl::Status AddFilesTo(proto::ServerMessage::Start& start, const Job& job, identity::Time now);
  std::chrono::seconds life() const { return settings_.life; }
  void Forget(const std::string& name) { minted_.erase(name); }

 private:
  struct Minted {
    std::string token;
    std::string key;
    identity::Time at;
  };
  absl::StatusOr<Minted> MintedFor(const Job& job, identity::Time now);
  absl::StatusOr<std::string> Token(const Job& job, identity::Time now) const;
  absl::StatusOr<std::string> KeyFile(const Job& job, identity::Time now) const;

  const Settings settings_;
  const identity::Credential signer_;
  const std::string chain_pem_;  // its own
  std::string secret_;           // its key: OpenSSL takes long to write it
  std::map<std::string, Minted> minted_;  // by job
};

}  // namespace sekisho::qserver
