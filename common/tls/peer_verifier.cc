// SPDX-License-Identifier: Apache-2.0
#include "common/tls/peer_verifier.h"

#include <variant>
#include <vector>

#include <grpc/grpc_security_constants.h>

namespace sekisho::tls {
namespace {

using identity::Chain;
using identity::Identity;
using identity::Reason;
using identity::Refusal;

std::string Property(const grpc::AuthContext& context, const char* name) {
  const std::vector<grpc::string_ref> values = context.FindPropertyValues(name);
  return values.empty() ? "" : std::string(values.front().data(), values.front().size());
}

}  // namespace

std::shared_ptr<grpc::ServerCredentials> ServerCredentials(const identity::Credential& host) {
  grpc::SslServerCredentialsOptions options(
      GRPC_SSL_REQUEST_AND_REQUIRE_CLIENT_CERTIFICATE_BUT_DONT_VERIFY);
  options.pem_key_cert_pairs.push_back({host.KeyPem(), host.ChainPem()});
  return grpc::SslServerCredentials(options);
}

absl::StatusOr<Chain> PresentedChain(const std::string& leaf_pem, const std::string& rest_pem) {
  ASSIGN_OR_RETURN(Chain chain, identity::ParsePemChain(leaf_pem));
  if (rest_pem.empty()) {
    return chain;
  }
  ASSIGN_OR_RETURN(Chain rest, identity::ParsePemChain(rest_pem));
  const bool repeats = X509_cmp(rest.front().get(), chain.front().get()) == 0;
  for (size_t i = repeats ? 1 : 0; i < rest.size(); ++i) {
    chain.push_back(std::move(rest[i]));
  }
  return chain;
}

absl::StatusOr<Identity> PeerVerifier::PeerIdentity(const grpc::AuthContext& context,
                                                    identity::Time now) {
  return Verify(Property(context, GRPC_X509_PEM_CERT_PROPERTY_NAME),
                Property(context, GRPC_X509_PEM_CERT_CHAIN_PROPERTY_NAME), now);
}

absl::StatusOr<Identity> PeerVerifier::Verify(const std::string& leaf_pem,
                                              const std::string& rest_pem, identity::Time now) {
  if (leaf_pem.empty()) {
    return identity::ToStatus({Reason::kEmptyChain, "no certificate was presented"});
  }
  const std::lock_guard lock(mutex_);
  // A NUL between them: the same bytes cut elsewhere are another chain.
  const auto judged =
      chains_.Judge(leaf_pem + '\0' + rest_pem, [&] { return PresentedChain(leaf_pem, rest_pem); }, now);
  if (const Refusal* refusal = std::get_if<Refusal>(&judged)) {
    return identity::ToStatus(*refusal);
  }
  return std::get<const identity::JudgedChains::Judged*>(judged)->identity;
}

}  // namespace sekisho::tls
