// SPDX-License-Identifier: Apache-2.0
#include "common/identity/signed_request.h"

#include <fmt/format.h>

#include "common/identity/der_chain.h"
#include "common/identity/signature.h"

namespace sekisho::identity {
namespace {

// With its NUL: no bytes of another protocol can be taken for one of ours.
constexpr std::string_view kLabel("sekisho-request-v1\0", 19);

// Each with its length before it.
std::string Join(const std::vector<std::string>& ders) {
  std::string joined;
  for (const std::string& der : ders) {
    joined += fmt::format("{}:", der.size());
    joined += der;
  }
  return joined;
}

}  // namespace

absl::StatusOr<SignedRequest> Sign(std::string_view body, const Credential& credential) {
  if (body.size() > kBodyBytesMax) {
    return absl::InvalidArgumentError(
        fmt::format("request of {} bytes, more than the {} allowed", body.size(), kBodyBytesMax));
  }
  if (!CanSignWords(credential.key.get())) {
    return absl::InvalidArgumentError(
        fmt::format("{}: requests are signed with RSA or elliptic-curve keys", credential.source));
  }
  SignedRequest request;
  request.body = body;
  ASSIGN_OR_RETURN(request.signature, SignWords(kLabel, body, credential));
  request.chain = ToDerChain(credential.chain);
  return request;
}

Verdict JudgeRequest(const SignedRequest& request, JudgedChains& chains, Time now, std::optional<Time> signed_at) {
  if (request.body.size() > kBodyBytesMax || request.signature.size() > kSignatureBytesMax) {
    return Refusal{
        Reason::kRequestTooLarge,
        fmt::format("body of {} bytes and signature of {}, allowed {} and {}", request.body.size(),
                    request.signature.size(), kBodyBytesMax, kSignatureBytesMax)};
  }
  if (request.chain.size() > kChainCertificatesMax) {
    return Refusal{Reason::kChainTooLong, fmt::format("{} certificates, more than the {} allowed",
                                                      request.chain.size(), kChainCertificatesMax)};
  }
  const auto parse = [&] { return ParseDerChain(request.chain); };
  const auto judged = signed_at ? chains.JudgeThen(parse, now, *signed_at) : chains.Judge(Join(request.chain), parse, now);
  if (const Refusal* refusal = std::get_if<Refusal>(&judged)) {
    return *refusal;
  }
  const auto& [identity, key] = *std::get<const JudgedChains::Judged*>(judged);
  if (!CanSignWords(key.get())) {
    return Refusal{Reason::kRequestKeyType, fmt::format("the key of {} is neither RSA nor elliptic-curve",
                                                        identity.leaf_subject)};
  }
  if (!SignatureIsValid(kLabel, request.body, request.signature, key.get())) {
    return Refusal{Reason::kRequestSignature,
                   fmt::format("the request's signature does not verify with the key of {}",
                               identity.leaf_subject)};
  }
  return identity;
}

absl::StatusOr<Identity> VerifyRequest(const SignedRequest& request, JudgedChains& chains, Time now) {
  Verdict verdict = JudgeRequest(request, chains, now);
  if (const Refusal* refusal = std::get_if<Refusal>(&verdict)) {
    return ToStatus(*refusal);
  }
  return std::get<Identity>(std::move(verdict));
}

}  // namespace sekisho::identity
