// SPDX-License-Identifier: Apache-2.0
#include "common/identity/trust_store.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <set>
#include <system_error>

#include <fmt/format.h>
#include <openssl/pem.h>

#include "common/identity/credential.h"
#include "common/identity/files.h"
#include "common/refusal.h"

namespace sekisho::identity {
namespace {

constexpr int kFilesPerHashMax = 32;

std::string HashText(unsigned long hash) { return fmt::format("{:08x}", hash); }

// The names under which a directory may hold an authority: today's hash, and that of OpenSSL 0.9.
std::vector<std::string> Hashes(const X509_NAME& name) {
  int ok = 0;
  return {HashText(X509_NAME_hash_ex(&name, nullptr, nullptr, &ok)),
          HashText(X509_NAME_hash_old(&name))};
}

bool IsHashName(const std::string& stem) {
  return stem.size() == 8 && stem.find_first_not_of("0123456789abcdef") == std::string::npos;
}

absl::StatusOr<CrlPtr> ParseCrl(const std::string& text) {
  const auto* der = reinterpret_cast<const unsigned char*>(text.data());
  if (text.find("-----BEGIN") == std::string::npos) {
    CrlPtr crl(d2i_X509_CRL(nullptr, &der, static_cast<long>(text.size())));
    if (crl != nullptr) {
      return crl;
    }
  } else {
    std::unique_ptr<BIO, Deleter<BIO_free_all>> bio(
        BIO_new_mem_buf(text.data(), static_cast<int>(text.size())));
    CrlPtr crl(PEM_read_bio_X509_CRL(bio.get(), nullptr, nullptr, nullptr));
    if (crl != nullptr) {
      return crl;
    }
  }
  return absl::InvalidArgumentError(
      fmt::format("not a certificate revocation list ({})", LastOpenSslError()));
}

bool IsDirectory(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_directory(path, error);
}

}  // namespace

Authorities& TrustStore::Under(const X509_NAME& name) {
  const auto found = by_name_.find(&name);
  if (found != by_name_.end()) {
    return found->second;
  }
  return by_name_[NamePtr(X509_NAME_dup(&name))];
}

void TrustStore::LoadCertificates(const std::string& hash) {
  for (int i = 0; i < kFilesPerHashMax; ++i) {
    const std::string path = fmt::format("{}/{}.{}", directory_, hash, i);
    absl::StatusOr<std::string> text = ReadIdentityFile(path, Secrecy::kPublic);
    if (absl::IsNotFound(text.status())) {
      return;
    }
    absl::StatusOr<Chain> chain = text.ok() ? ParsePemChain(*text) : text.status();
    if (!chain.ok()) {
      warnings_.push_back(fmt::format("{}: {}", path, Message(chain.status())));
      continue;
    }
    X509Ptr certificate = std::move(chain->front());
    std::vector<Authority>& known = Under(*X509_get_subject_name(certificate.get())).certificates;
    bool is_new = true;
    for (const Authority& other : known) {
      is_new = is_new && X509_cmp(other.certificate.get(), certificate.get()) != 0;
    }
    if (is_new) {
      known.push_back({std::move(certificate), path});
    }
  }
}

void TrustStore::LoadCrls(const std::string& hash) {
  for (int i = 0; i < kFilesPerHashMax; ++i) {
    const std::string path = fmt::format("{}/{}.r{}", directory_, hash, i);
    absl::StatusOr<std::string> text = ReadIdentityFile(path, Secrecy::kPublic);
    if (absl::IsNotFound(text.status())) {
      return;
    }
    absl::StatusOr<CrlPtr> crl = text.ok() ? ParseCrl(*text) : text.status();
    if (crl.ok()) {
      Under(*X509_CRL_get_issuer(crl->get())).crls.push_back(*std::move(crl));
      continue;
    }
    // A list that nobody can read must not silently become no list.
    crl_errors_[hash] = fmt::format("{}: {}", path, Message(crl.status()));
    warnings_.push_back(crl_errors_[hash]);
  }
}

void TrustStore::LoadPolicy(const std::string& hash) {
  const std::string path = fmt::format("{}/{}.signing_policy", directory_, hash);
  absl::StatusOr<std::string> text = ReadIdentityFile(path, Secrecy::kPublic);
  if (absl::IsNotFound(text.status())) {
    return;
  }
  absl::StatusOr<SigningPolicy> policy = text.ok() ? SigningPolicy::Parse(*text) : text.status();
  if (policy.ok()) {
    policies_[hash].policy = *std::move(policy);
    return;
  }
  policies_[hash].error = fmt::format("{}: {}", path, Message(policy.status()));
  warnings_.push_back(policies_[hash].error);
}

void TrustStore::LoadHash(const std::string& hash) {
  LoadCertificates(hash);
  LoadCrls(hash);
  LoadPolicy(hash);
}

absl::StatusOr<std::shared_ptr<const TrustStore>> TrustStore::Load(const std::string& directory) {
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  if (error) {
    return absl::NotFoundError(
        fmt::format("cannot read the trust directory {}: {}", directory, error.message()));
  }
  std::set<std::string> hashes;
  for (const std::filesystem::directory_entry& file : files) {
    const std::string stem = file.path().stem().string();
    const std::string kind = file.path().extension();
    if (IsHashName(stem) && (kind == ".0" || kind == ".r0" || kind == ".signing_policy")) {
      hashes.insert(stem);
    }
  }
  std::shared_ptr<TrustStore> store(new TrustStore(directory));
  for (const std::string& hash : hashes) {
    store->LoadHash(hash);
  }
  if (std::none_of(store->by_name_.begin(), store->by_name_.end(),
                   [](const auto& entry) { return !entry.second.certificates.empty(); })) {
    return absl::NotFoundError(fmt::format(
        "the trust directory {} holds no authority: expected files like 1a2b3c4d.0", directory));
  }
  return store;
}

absl::StatusOr<std::shared_ptr<const TrustStore>> TrustStore::LoadFor(const std::string& directory,
                                                                      const Chain& chain) {
  if (!IsDirectory(directory)) {
    return absl::NotFoundError(fmt::format("cannot read the trust directory {}", directory));
  }
  std::shared_ptr<TrustStore> store(new TrustStore(directory));
  std::set<std::string> seen;
  std::vector<std::string> wanted;
  const auto want = [&](const X509_NAME& name) {
    for (std::string& hash : Hashes(name)) {
      if (seen.insert(hash).second) {
        wanted.push_back(std::move(hash));
      }
    }
  };
  for (const X509Ptr& certificate : chain) {
    want(*X509_get_issuer_name(certificate.get()));
  }
  for (size_t i = 0; i < wanted.size() && i < 2 * kChainCertificatesMax; ++i) {
    store->LoadHash(std::string(wanted[i]));
    for (const auto& [name, authorities] : store->by_name_) {  // an authority below another
      for (const Authority& authority : authorities.certificates) {
        want(*X509_get_issuer_name(authority.certificate.get()));
      }
    }
  }
  return store;
}

const Authorities* TrustStore::Find(const X509_NAME& name) const {
  const auto found = by_name_.find(&name);
  return found == by_name_.end() ? nullptr : &found->second;
}

const PolicyFile* TrustStore::PolicyOf(const X509_NAME& name) const {
  for (const std::string& hash : Hashes(name)) {
    if (const auto found = policies_.find(hash); found != policies_.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

const std::string* TrustStore::CrlErrorOf(const X509_NAME& name) const {
  for (const std::string& hash : Hashes(name)) {
    if (const auto found = crl_errors_.find(hash); found != crl_errors_.end()) {
      return &found->second;
    }
  }
  return nullptr;
}

Time TrustStore::NextCrlEnd(Time now) const {
  Time next = Time::max();
  for (const auto& [name, authorities] : by_name_) {
    for (const CrlPtr& crl : authorities.crls) {
      const ASN1_TIME* end = X509_CRL_get0_nextUpdate(crl.get());
      if (end != nullptr && ToTime(end) > now) {
        next = std::min(next, ToTime(end));
      }
    }
  }
  return next;
}

uint64_t TrustVersion(const std::string& directory) {
  uint64_t version = 0;
  std::error_code error;
  std::filesystem::directory_iterator files(directory, error);
  for (const std::filesystem::directory_entry& file : files) {
    // Summed, since the order of a directory means nothing.
    version += std::hash<std::string>()(
        fmt::format("{} {}", file.path().filename().string(), FileVersion(file.path())));
  }
  return version;
}

absl::StatusOr<std::string> FindTrustDirectory() {
  if (const char* set = std::getenv("X509_CERT_DIR"); set != nullptr && *set != '\0') {
    return std::string(set);
  }
  const std::string of_user = HomeDirectory() + "/.globus/certificates";
  const std::string of_host = "/etc/grid-security/certificates";
  for (const std::string& directory : {of_user, of_host}) {
    if (IsDirectory(directory)) {
      return directory;
    }
  }
  return absl::NotFoundError(
      fmt::format("no trusted authorities: X509_CERT_DIR is not set, and neither {} nor {} exists",
                  of_user, of_host));
}

}  // namespace sekisho::identity
