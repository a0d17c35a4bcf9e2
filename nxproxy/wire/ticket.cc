// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/wire/ticket.h"

#include <memory>

#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/params.h>

namespace sekisho::nxproxy::wire {
namespace {

using MacContext = std::unique_ptr<EVP_MAC_CTX, decltype(&EVP_MAC_CTX_free)>;

// To look the algorithm up and to make a context cost three times what the 100 bytes of a preface do.
MacContext NewContext() {
  EVP_MAC* const hmac = EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr);
  MacContext context(EVP_MAC_CTX_new(hmac), &EVP_MAC_CTX_free);
  EVP_MAC_free(hmac);
  char digest[] = "SHA256";
  const OSSL_PARAM parameters[] = {OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest, 0),
                                   OSSL_PARAM_construct_end()};
  if (context != nullptr && EVP_MAC_CTX_set_params(context.get(), parameters) != 1) {
    context.reset();
  }
  return context;
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// "" if it cannot be made.
std::string Tag(std::string_view bytes, std::string_view key) {
  thread_local const MacContext context = NewContext();
  unsigned char out[EVP_MAX_MD_SIZE];
  size_t length = 0;
  if (context == nullptr || key.empty() ||
      EVP_MAC_init(context.get(), Bytes(key), key.size(), nullptr) != 1 ||
      EVP_MAC_update(context.get(), Bytes(bytes), bytes.size()) != 1 ||
      EVP_MAC_final(context.get(), out, &length, sizeof out) != 1) {
    return "";
  }
  return {reinterpret_cast<const char*>(out), length};
}

}  // namespace

std::string Seal(const Preface& preface, std::string_view session_key) {
  std::string bytes = EncodeUntagged(preface);
  return bytes.empty() ? bytes : bytes + Tag(bytes, session_key);
}

bool IsSealedWith(const TaggedPreface& preface, std::string_view session_key) {
  const std::string tag = Tag(preface.untagged, session_key);
  return tag.size() == kTagBytes && preface.tag.size() == kTagBytes &&
         CRYPTO_memcmp(tag.data(), preface.tag.data(), kTagBytes) == 0;
}

}  // namespace sekisho::nxproxy::wire
