// SPDX-License-Identifier: Apache-2.0
// The client's side: channel credentials with a user's proxy or a host's certificate, and a check
// of the server by our own rules (trust directory, revocation, signing policy, host name or
// subject).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include <grpcpp/security/credentials.h>

#include "common/identity/chain.h"
#include "common/identity/credential.h"

namespace sekisho::tls {

// Whom the client means to reach.
struct ExpectedServer {
  std::string host;     // the name dialled; empty: the host part of gRPC's target
  std::string subject;  // if given, this counts and the host name does not
};

// What the last handshake found; written by gRPC's threads, read by anyone.
class ServerRecord {
 public:
  // Unavailable before the first handshake; else the server's identity, or why it was refused. gRPC
  // itself reports a refusal as Unavailable: ask here for the reason.
  absl::StatusOr<identity::Identity> Get() const;

  void Set(absl::StatusOr<identity::Identity> result);

 private:
  std::atomic<std::shared_ptr<const absl::StatusOr<identity::Identity>>> last_;
};

struct ClientTls {
  std::shared_ptr<grpc::ChannelCredentials> credentials;
  std::shared_ptr<const ServerRecord> server;
};

using Clock = std::function<identity::Time()>;
identity::Time SystemClock();

// Reads from `trust_directory`, at each handshake, what the server's chain needs: a new revocation
// list counts from the next connection on.
ClientTls MakeClientTls(const identity::Credential& credential, const std::string& trust_directory,
                        const ExpectedServer& expected, const Clock& clock = SystemClock);

}  // namespace sekisho::tls
