// SPDX-License-Identifier: Apache-2.0
#include "qserver/relay_tokens.h"

#include <array>
#include <memory>

#include <fmt/format.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/kdf.h>
#include <openssl/rand.h>

#include "common/identity/job_token.h"
#include "common/identity/proxy.h"

namespace sekisho::qserver {
namespace {

// The language of our statement that a key is a job's: docs/protocol/14-nxproxy-encryption.md.
constexpr char kKeyPolicy[] = "2.25.261702524726569109574207370126763815491";

// The small files of a task.
constexpr char kToken[] = "relay-token";
constexpr char kKey[] = "relay-key";

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

absl::StatusOr<Seed> SeedOf(const std::string& secret, const std::string& info) {
  Seed seed;
  const std::unique_ptr<EVP_PKEY_CTX, void (*)(EVP_PKEY_CTX*)> context(
      EVP_PKEY_CTX_new_id(EVP_PKEY_HKDF, nullptr), EVP_PKEY_CTX_free);
  size_t made = seed.size();
  const bool is_made =
      !secret.empty() && EVP_PKEY_derive_init(context.get()) == 1 &&
      EVP_PKEY_CTX_set_hkdf_md(context.get(), EVP_sha256()) == 1 &&
      EVP_PKEY_CTX_set1_hkdf_key(context.get(), reinterpret_cast<const unsigned char*>(secret.data()),
                                 static_cast<int>(secret.size())) == 1 &&
      EVP_PKEY_CTX_add1_hkdf_info(context.get(),
                                  reinterpret_cast<const unsigned char*>(info.data()),
                                  static_cast<int>(info.size())) == 1 &&
      EVP_PKEY_derive(context.get(), seed.data(), &made) == 1;
  if (!is_made) {
    return absl::InternalError("no key for a job could be made");
  }
  return seed;
}

}  // namespace

RelayTokens::RelayTokens(Settings settings, identity::Credential signer)
    : settings_(std::move(settings)), signer_(std::move(signer)), chain_pem_(signer_.ChainPem()) {
  unsigned char* der = nullptr;
  const int length = i2d_PrivateKey(signer_.key.get(), &der);
  if (length > 0) {
    secret_.assign(reinterpret_cast<char*>(der), static_cast<size_t>(length));
    OPENSSL_clear_free(der, static_cast<size_t>(length));
  }
}

RelayTokens::~RelayTokens() { OPENSSL_cleanse(secret_.data(), secret_.size()); }

absl::StatusOr<std::string> RelayTokens::KeyFile(const Job& job, identity::Time now) const {
  ASSIGN_OR_RETURN(const Seed seed,
                   SeedOf(secret_,
                          fmt::format("sekisho-job-key 1\n{}\n{}\n", settings_.site, job.name)));
  const identity::KeyPtr key(
      EVP_PKEY_new_raw_private_key(EVP_PKEY_ED25519, nullptr, seed.data(), seed.size()));
  const std::string names = fmt::format("job={}\nowner={}\n", job.name, job.owner);
  ASSIGN_OR_RETURN(const std::string statement,
                   identity::CertifyKey(signer_, key.get(),
                                        {kKeyPolicy, fmt::format("site={}\n{}", settings_.site, names)},
                                        settings_.life, now));
  std::string text = fmt::format("sekisho-relay-key 1\n{}seed={}\n", names, Hex(seed));
  for (const auto& [site, speaker] : job.speakers) {
    text += fmt::format("speaker={} {}\n", site, speaker);
  }
  return text + statement + chain_pem_;
}

absl::StatusOr<std::string> RelayTokens::Token(const Job& job, identity::Time now) const {
  ASSIGN_OR_RETURN(std::string id, RandomId());
  return identity::MintJobToken({.site = settings_.site,
                                 .job = job.name,
                                 .owner = job.owner,
                                 .not_before = now,
                                 .not_after = now + settings_.life,
                                 .id = std::move(id)},
                                signer_);
}

// The tasks of a job share them while they are young: a signature costs a millisecond.
absl::StatusOr<RelayTokens::Minted> RelayTokens::MintedFor(const Job& job, identity::Time now) {
  const auto found = minted_.find(job.name);
  if (found != minted_.end() && found->second.at <= now &&
      now - found->second.at < settings_.life / 8) {
    return found->second;
  }
  Minted minted{.at = now};
  ASSIGN_OR_RETURN(minted.token, Token(job, now));
  ASSIGN_OR_RETURN(minted.key, KeyFile(job, now));
  minted_[job.name] = minted;
  return minted;
}

absl::Status RelayTokens::AddFilesTo(proto::ServerMessage::Start& start, const Job& job,
                                     identity::Time now) {
  ASSIGN_OR_RETURN(Minted minted, MintedFor(job, now));
  auto& files = *start.mutable_file();
  files[kToken] = minted.token + "\n";
  files[kKey] = std::move(minted.key);
  return absl::OkStatus();
}

absl::Status RelayTokens::AddTo(proto::ServerMessage::Start& start, const Job& job,
                                identity::Time now) {
  RETURN_IF_ERROR(AddFilesTo(start, job, now));
  // A helper has the variables of the task that asked for it, on another node.
  auto& variables = *start.mutable_environment();
  variables["NXPROXY_TOKEN_FILE"] = std::string("@FILES@/") + kToken;
  variables["NXPROXY_KEY_FILE"] = std::string("@FILES@/") + kKey;
  variables.insert({"NXPROXY_SERVER", settings_.address});  // unless its user names another
  variables.insert({"NXPROXY_SITE", settings_.site});
  return absl::OkStatus();
}

}  // namespace sekisho::qserver
