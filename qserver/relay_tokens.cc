// SPDX-License-Identifier: Apache-2.0
#include "qserver/relay_tokens.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include "common/identity/job_token.h"

namespace sekisho::qserver {
namespace {

template <size_t kCount>
std::string Hex(const std::array<unsigned char, kCount>& bytes) {
  std::string text;
  for (const unsigned char byte : bytes) {
    text += fmt::format("{:02x}", byte);
  }
  return text;
}

absl::StatusOr<std::string> RandomId() {
  std::array<unsigned char, 16> bytes;
  if (RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) != 1) {
    return absl::InternalError("no random bytes for a job token");
  }
  return Hex(bytes);
}

// HKDF-SHA256 of the host's key: the same after a restart, and nothing to store.
using Seed = std::array<unsigned char, 32>;

absl::StatusOr<Seed> SeedOf(EVP_PKEY* key, const std::string& info) {
  Seed seed;
  unsigned char* der = nullptr;
  const int length = i2d_PrivateKey(key, &der);
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(
      EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr), EVP_PKEY_CTX_free);
  size_t made = seed.size();
  const bool is_made =
      length > 0 && EVP_PKEY_derive_init(context.get()) == 1 &&
      EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
      EVP_PKEY_CTX_set1_hkdf_key(context.get(), der, length) == 1 &&
      EVP_PKEY_CTX_add1_hkdf_info(context.get(),
                                  reinterpret_cast<const unsigned char*>(info.data()),
                                  static_cast<int>(info.size())) == 1 &&
      EVP_PKEY_derive(context.get(), seed.data(), &made) == 1;
  if (length > 0) {
    OPENSSL_clear_free(der, static_cast<size_t>(length));
  }
  if (!is_made) {
    return absl::InternalError("no key for a job could be made");
  }
  return seed;
}

}  // namespace

absl::StatusOr<std::string> RelayTokens::KeyFile(const std::string& name,
                                                 const std::string& owner) const {
  ASSIGN_OR_RETURN(const auto seed,
                   SeedOf(signer_.key.get(),
                          fmt::format("sekisho-job-key 1\n{}\n{}\n", settings_.site, name)));
  return fmt::format("sekisho-relay-key 1\njob={}\nowner={}\nseed={}\n", name, owner, Hex(seed));
}

// The tasks of a job share one while it is young: a signature costs a millisecond.
absl::StatusOr<std::string> RelayTokens::TokenOf(const std::string& name,
                                                 const std::string& owner, identity::Time now) {
  const auto found = minted_.find(name);
  if (found != minted_.end() && found->second.at <= now &&
      now - found->second.at < settings_.life / 8) {
    return found->second.token;
  }
  ASSIGN_OR_RETURN(std::string id, RandomId());
  ASSIGN_OR_RETURN(std::string token, identity::MintJobToken({.site = settings_.site,
                                                              .job = name,
                                                              .owner = owner,
                                                              .not_before = now,
                                                              .not_after = now + settings_.life,
                                                              .id = std::move(id)},
                                                             signer_));
  minted_[name] = {token, now};
  return token;
}

absl::Status RelayTokens::AddTo(proto::ServerMessage::Start& start, const std::string& name,
                                const std::string& owner, identity::Time now) {
  constexpr char kToken[] = "relay-token";
  constexpr char kKey[] = "relay-key";
  ASSIGN_OR_RETURN(const std::string token, TokenOf(name, owner, now));
  ASSIGN_OR_RETURN(std::string key, KeyFile(name, owner));
  auto& files = *start.mutable_file();
  files[kToken] = token + "\n";
  files[kKey] = std::move(key);
  // A helper has the variables of the task that asked for it, on another node.
  auto& variables = *start.mutable_environment();
  variables["NXPROXY_TOKEN_FILE"] = std::string("@FILES@/") + kToken;
  variables["NXPROXY_KEY_FILE"] = std::string("@FILES@/") + kKey;
  variables.insert({"NXPROXY_SERVER", settings_.address});  // unless its user names another
  variables.insert({"NXPROXY_SITE", settings_.site});
  return absl::OkStatus();
}

}  // namespace sekisho::qserver
