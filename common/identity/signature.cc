// SPDX-License-Identifier: Apache-2.0
#include "common/identity/signature.h"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/evp.h>

namespace sekisho::identity {
namespace {

using DigestContextPtr = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;

}  // namespace

bool CanSignWords(const EVP_PKEY* key) {
  const int type = EVP_PKEY_get_base_id(key);
  return type == EVP_PKEY_RSA || type == EVP_PKEY_EC;
}

absl::StatusOr<std::string> SignWords(std::string_view label, std::string_view words, const Credential& credential) {
  const DigestContextPtr context(EVP_MD_CTX_new());
  size_t size = static_cast<size_t>(EVP_PKEY_get_size(credential.key.get()));
  std::string signature(size, '\0');
  const bool is_signed =
      EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, credential.key.get()) == 1 &&
      EVP_DigestSignUpdate(context.get(), label.data(), label.size()) == 1 &&
      EVP_DigestSignUpdate(context.get(), words.data(), words.size()) == 1 &&
      EVP_DigestSignFinal(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size) == 1;
  if (!is_signed) {
    return absl::FailedPreconditionError(fmt::format("{} cannot sign ({})", credential.source, LastOpenSslError()));
  }
  signature.resize(size);
  return signature;
}

bool SignatureIsValid(std::string_view label, std::string_view words, std::string_view signature, EVP_PKEY* key) {
  const DigestContextPtr context(EVP_MD_CTX_new());
  const bool is_valid =
      EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
      EVP_DigestVerifyUpdate(context.get(), label.data(), label.size()) == 1 &&
      EVP_DigestVerifyUpdate(context.get(), words.data(), words.size()) == 1 &&
      EVP_DigestVerifyFinal(context.get(), reinterpret_cast<const unsigned char*>(signature.data()),
                            signature.size()) == 1;
  ERR_clear_error();
  return is_valid;
}

}  // namespace sekisho::identity
