// SPDX-License-Identifier: Apache-2.0
// The authorities that a site or user trusts: a hashed directory (<hash>.0 certificate, <hash>.r0
// revocation list, <hash>.signing_policy), as OpenSSL and Globus keep it.
//
// A store is read once and never changes, so that threads share it freely; reloading is reading the
// directory again and swapping the pointer.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/identity/openssl.h"
#include "common/identity/signing_policy.h"

namespace sekisho::identity {

struct Authority {
  X509Ptr certificate;
  std::string file;
};

// What the directory holds for one subject name of an authority.
struct Authorities {
  std::vector<Authority> certificates;  // several while an authority rolls its key over
  std::vector<CrlPtr> crls;
};

// One file HASH.signing_policy.
struct PolicyFile {
  std::optional<SigningPolicy> policy;
  std::string error;  // why there is none
};

// Order of names as OpenSSL compares them: case and blanks folded, string types unified.
struct NameLess {
  using is_transparent = void;
  bool operator()(const NamePtr& a, const NamePtr& b) const { return Less(a.get(), b.get()); }
  bool operator()(const NamePtr& a, const X509_NAME* b) const { return Less(a.get(), b); }
  bool operator()(const X509_NAME* a, const NamePtr& b) const { return Less(a, b.get()); }
  static bool Less(const X509_NAME* a, const X509_NAME* b) { return X509_NAME_cmp(a, b) < 0; }
};

class TrustStore {
 public:
  // Everything in `directory`: what a daemon does.  NotFound if the directory cannot be read or
  // holds no authority.  Files that cannot be parsed do not fail the load: see warnings().
  static absl::StatusOr<std::shared_ptr<const TrustStore>> Load(const std::string& directory);

  // Only what the verification of `chain` may need, so that a command does not read hundreds of
  // files.  NotFound if the directory cannot be read; an unknown authority is simply not in the
  // store.
  static absl::StatusOr<std::shared_ptr<const TrustStore>> LoadFor(const std::string& directory,
                                                                   const Chain& chain);

  // Null if nothing is known under that name.
  const Authorities* Find(const X509_NAME& name) const;
  // Null if there is no file.  Also of an authority whose certificate only the peer has.
  const PolicyFile* PolicyOf(const X509_NAME& name) const;
  // Why a revocation list under that name cannot be read; null if none is broken.
  const std::string* CrlErrorOf(const X509_NAME& name) const;

  const std::string& directory() const { return directory_; }
  // When the next of all revocation lists must have been renewed, after `now`; far away if none.
  Time NextCrlEnd(Time now) const;

  const std::vector<std::string>& warnings() const { return warnings_; }
  size_t size() const { return by_name_.size(); }

 private:
  explicit TrustStore(std::string directory) : directory_(std::move(directory)) {}
  Authorities& Under(const X509_NAME& name);
  void LoadHash(const std::string& hash);
  void LoadCertificates(const std::string& hash);
  void LoadCrls(const std::string& hash);
  void LoadPolicy(const std::string& hash);

  std::string directory_;
  std::map<NamePtr, Authorities, NameLess> by_name_;
  std::map<std::string, PolicyFile> policies_;      // by hash of the name, as are the next
  std::map<std::string, std::string> crl_errors_;
  std::vector<std::string> warnings_;
};

// Changes whenever a file of the directory is added, removed, replaced or written to, also in place
// (which the directory's own time does not show): a daemon loads again when this is another.
uint64_t TrustVersion(const std::string& directory);

// $X509_CERT_DIR, else ~/.globus/certificates, else /etc/grid-security/certificates: the first that
// is set or exists.  NotFound naming all three.
absl::StatusOr<std::string> FindTrustDirectory();

}  // namespace sekisho::identity
