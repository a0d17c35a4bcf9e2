// SPDX-License-Identifier: Apache-2.0
#include "common/identity/leader_key.h"

#include <openssl/err.h>
#include <openssl/evp.h>

#include "common/identity/openssl.h"

namespace sekisho::identity {
namespace {

using ContextPtr = std::unique_ptr<EVP_MD_CTX, Deleter<EVP_MD_CTX_free>>;

// With its NUL: no bytes of another protocol can be taken for an order.
constexpr std::string_view kLabel("sekisho-leader-order-v1\0", 24);

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}
unsigned char* Bytes(std::string& text) { return reinterpret_cast<unsigned char*>(text.data()); }

std::string Labelled(std::string_view body) { return std::string(kLabel) + std::string(body); }

}  // namespace

LeaderKey MakeLeaderKey() {
  const KeyPtr made(EVP_PKEY_Q_keygen(nullptr, nullptr, "ED25519"));
  CHECK(made != nullptr);
  LeaderKey key{std::string(kLeaderKeyBytes, '\0'), std::string(kLeaderKeyBytes, '\0')};
  size_t size = kLeaderKeyBytes;
  CHECK(EVP_PKEY_get_raw_private_key(made.get(), Bytes(key.secret), &size) == 1);
  CHECK(EVP_PKEY_get_raw_public_key(made.get(), Bytes(key.open), &size) == 1);
  return key;
}

std::string SignOrder(std::string_view body, const LeaderKey& key) {
  const KeyPtr secret(EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, Bytes(key.secret),
                                                   key.secret.size()));
  const ContextPtr context(EVP_MD_CTX_new());
  const std::string text = Labelled(body);
  std::string signature(64, '\0');
  size_t size = signature.size();
  CHECK(secret != nullptr);
  CHECK(EVP_DigestSignInit(context.get(), nullptr, nullptr, nullptr, secret.get()) == 1);
  CHECK(EVP_DigestSign(context.get(), Bytes(signature), &size, Bytes(std::string_view(text)),
                       text.size()) == 1);
  return signature;
}

bool IsOrderSigned(std::string_view body, std::string_view signature, std::string_view open_key) {
  const KeyPtr key(
      EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, nullptr, Bytes(open_key), open_key.size()));
  const ContextPtr context(EVP_MD_CTX_new());
  const std::string text = Labelled(body);
  const bool is_signed =
      key != nullptr &&
      EVP_DigestVerifyInit(context.get(), nullptr, nullptr, nullptr, key.get()) == 1 &&
      EVP_DigestVerify(context.get(), Bytes(signature), signature.size(),
                       Bytes(std::string_view(text)), text.size()) == 1;
  ERR_clear_error();
  return is_signed;
}

}  // namespace sekisho::identity
