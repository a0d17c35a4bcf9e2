// SPDX-License-Identifier: Apache-2.0
#include "common/identity/signed_request.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>

#include "common/identity/dn.h"

namespace sekisho::identity {
namespace {

using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;

// With its NUL: no bytes of another protocol can be taken for one of ours.
constexpr std::string_view kLabel("sekisho-request-v1\0", 19);

bool IsSupported(const EVP_PKEY* key) {
  const int type = EVP_PKEY_get_base_id(key);
  return type == EVP_PKEY_RSA || type == EVP_PKEY_EC;
}

bool SignatureIsValid(const SignedRequest& request, EVP_PKEY* key) {
  const DigestContextPtr context(EVP_MD_CTX_new());
  const bool valid =
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
      EVP_DigestVerifyUpdate(context.get(), kLabel.data(), kLabel.size()) == 1 &&
      EVP_DigestVerifyUpdate(context.get(), request.body.data(), request.body.size()) == 1 &&
      EVP_DigestVerifyFinal(context.get(),
                            reinterpret_cast<const unsigned char*>(request.signature.data()),
                            request.signature.size()) == 1;
  ERR_clear_error();
  return valid;
}

absl::StatusOr<Chain> Parse(const std::vector<std::string>& ders) {
  Chain chain;
  for (const std::string& der : ders) {
    ASSIGN_OR_RETURN(X509Ptr certificate, ParseDer(der));
    chain.push_back(std::move(certificate));
  }
  return chain;
}

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
  if (!IsSupported(credential.key.get())) {
    return absl::InvalidArgumentError(
        fmt::format("{}: requests are signed with RSA or elliptic-curve keys", credential.source));
  }
  SignedRequest request;
  request.body = body;
  const DigestContextPtr context(EVP_MD_CTX_new());
  size_t size = static_cast<size_t>(EVP_PKEY_get_size(credential.key.get()));
  request.signature.resize(size);
  const bool is_signed =
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, credential.key.get()) ==
          1 &&
      EVP_DigestSignUpdate(context.get(), kLabel.data(), kLabel.size()) == 1 &&
      EVP_DigestSignUpdate(context.get(), body.data(), body.size()) == 1 &&
      EVP_DigestSignFinal(context.get(), reinterpret_cast<unsigned char*>(request.signature.data()),
                          &size) == 1;
  if (!is_signed) {
    return absl::FailedPreconditionError(
        fmt::format("{} cannot sign ({})", credential.source, LastOpenSslError()));
  }
  request.signature.resize(size);
  for (const X509Ptr& certificate : credential.chain) {
    request.chain.push_back(ToDer(*certificate));
  }
  return request;
}

Verdict JudgeRequest(const SignedRequest& request, JudgedChains& chains, Time now) {
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
  const auto judged = chains.Judge(Join(request.chain), [&] { return Parse(request.chain); }, now);
  if (const Refusal* refusal = std::get_if<Refusal>(&judged)) {
    return *refusal;
  }
  const auto& [identity, key] = *std::get<const JudgedChains::Judged*>(judged);
  if (!IsSupported(key.get())) {
    return Refusal{Reason::kRequestKeyType, fmt::format("the key of {} is neither RSA nor elliptic-curve",
                                                        identity.leaf_subject)};
  }
  if (!SignatureIsValid(request, key.get())) {
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
