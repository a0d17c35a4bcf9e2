// SPDX-License-Identifier: Apache-2.0
// The server's side: credentials that ask every client for a certificate, and who the client is.
//
// gRPC only proves that the client holds the key of its certificate; it accepts any certificate. So
// no call may be served before PeerVerifier has judged the chain, whatever the method: gate.h.
#pragma once

#include <memory>
#include <mutex>
#include <string>

#include <grpcpp/security/auth_context.h>
#include <grpcpp/security/server_credentials.h>

#include "common/identity/credential.h"
#include "common/identity/judged_chains.h"

namespace sekisho::tls {

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const identity::Credential& host);

// Chains that passed are remembered: judged_chains.h.  With a lock, which our code else has none of: at a
// gate gRPC's threads ask, and the loop sets the trust.
class PeerVerifier {
 public:
  explicit PeerVerifier(std::shared_ptr<const identity::TrustStore> trust)
      : chains_(std::move(trust), identity::Purpose::kClient) {}
  PeerVerifier(const PeerVerifier&) = delete;
  PeerVerifier& operator=(const PeerVerifier&) = delete;

  // Unauthenticated with the reason unless the peer of this call presented a valid chain.
  absl::StatusOr<identity::Identity> PeerIdentity(const grpc::AuthContext& context,
                                                  identity::Time now);

  // The same from the two PEM properties of the context (x509_pem_cert, x509_pem_cert_chain).
  absl::StatusOr<identity::Identity> Verify(const std::string& leaf_pem,
                                            const std::string& rest_pem, identity::Time now);

  void SetTrust(std::shared_ptr<const identity::TrustStore> trust) {
    const std::lock_guard lock(mutex_);
    chains_.SetTrust(std::move(trust));
  }

  size_t remembered() const {
    const std::lock_guard lock(mutex_);
    return chains_.size();
  }

 private:
  mutable std::mutex mutex_;
  identity::JudgedChains chains_;
};

// Leaf and rest as gRPC hands them out: whether the rest repeats the leaf depends on the side.
absl::StatusOr<identity::Chain> PresentedChain(const std::string& leaf_pem,
                                               const std::string& rest_pem);

}  // namespace sekisho::tls
