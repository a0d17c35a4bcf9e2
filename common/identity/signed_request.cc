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

Verdict JudgeRequest(const SignedRequest& request, const TrustStore& trust, Time now) {
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
  Chain chain;
  for (const std::string& der : request.chain) {
    absl::StatusOr<X509Ptr> certificate = ParseDer(der);
    if (!certificate.ok()) {
      return Refusal{Reason::kMalformed, certificate.status().ToString()};
    }
    chain.push_back(*std::move(certificate));
  }
  Verdict verdict = JudgeChain(chain, trust, now, Purpose::kAny);
  if (std::holds_alternative<Refusal>(verdict)) {
    return verdict;
  }
  EVP_PKEY* key = X509_get0_pubkey(chain.front().get());
  if (!IsSupported(key)) {
    return Refusal{Reason::kRequestKeyType,
                   fmt::format("the key of {} is neither RSA nor elliptic-curve",
                               SubjectText(*chain.front()))};
  }
  if (!SignatureIsValid(request, key)) {
    return Refusal{Reason::kRequestSignature,
                   fmt::format("the request's signature does not verify with the key of {}",
                               SubjectText(*chain.front()))};
  }
  return verdict;
}

absl::StatusOr<Identity> VerifyRequest(const SignedRequest& request, const TrustStore& trust,
                                       Time now) {
  Verdict verdict = JudgeRequest(request, trust, now);
  if (const Refusal* refusal = std::get_if<Refusal>(&verdict)) {
    return ToStatus(*refusal);
  }
  return std::get<Identity>(std::move(verdict));
}

}  // namespace sekisho::identity
