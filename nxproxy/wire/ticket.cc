// SPDX-License-Identifier: Apache-2.0
#include "nxproxy/wire/ticket.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace sekisho::nxproxy::wire {
namespace {

std::string Tag(std::string_view bytes, std::string_view key) {
  unsigned char out[EVP_MAX_MD_SIZE];
  unsigned length = 0;
  if (HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
           reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(), out,
           &length) == nullptr) {
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
