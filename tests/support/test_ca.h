// SPDX-License-Identifier: Apache-2.0
// A certification authority for tests: certificates, proxies, revocation lists and signing
// policies, good and bad ones, in memory or in a trust directory.
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/identity/credential.h"
#include "common/identity/trust_store.h"

namespace sekisho::test {

// A moment that tests may use as now; everything is valid around it unless told otherwise.
identity::Time TestNow();

// A directory under /tmp that is removed with its contents.
class TemporaryDirectory {
 public:
  TemporaryDirectory();
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;
  ~TemporaryDirectory();
  const std::string& path() const { return path_; }
  std::string File(const std::string& name) const { return path_ + "/" + name; }

 private:
  std::string path_;
};

void WriteFile(const std::string& path, const std::string& text, int mode = 0644);

// OpenSSL's configuration syntax, "critical,digitalSignature".
struct Extension {
  int nid = 0;
  std::string value;
};

struct CertificateOptions {
  identity::Time not_before = TestNow() - std::chrono::hours(24);
  identity::Time not_after = TestNow() + std::chrono::hours(24 * 365);
  std::vector<Extension> extensions;
  int rsa_bits = 0;  // 0: a P-256 key
  const char* digest = "SHA256";
  std::string issuer;               // empty: the signer's subject
  EVP_PKEY* subject_key = nullptr;  // null: a new one
};

struct ProxyShape {
  identity::Time not_before = TestNow() - std::chrono::minutes(5);
  identity::Time not_after = TestNow() + std::chrono::hours(12);
  std::string language = "1.3.6.1.5.5.7.21.1";
  std::optional<std::string> policy;
  std::optional<long> path_length;
  bool is_critical = true;
  bool has_info = true;
  std::string info_der;               // instead of the fields above
  std::string info_oid = "1.3.6.1.5.5.7.1.14";
  std::string common_name = "12345";  // one more RDN behind the signer's subject
  std::string subject;                // instead of the derived one
  CertificateOptions certificate;     // extensions, key, digest, issuer; its times are not used
};

// DN text to a name; `/CN=host/a` keeps its slash.
identity::NamePtr MakeName(const std::string& dn);

// Any certificate at all, signed by `signer`'s key; chain: itself, then the signer's chain.
identity::Credential MakeCertificate(const identity::Credential& signer, const std::string& subject,
                                     const CertificateOptions& options);
identity::Credential MakeProxy(const identity::Credential& signer, const ProxyShape& shape = {});

class TestCa {
 public:
  explicit TestCa(const std::string& subject = "/C=JP/O=Test/CN=CA",
                  const CertificateOptions& options = {});

  // A certificate of an authority below `parent`.
  TestCa(const TestCa& parent, const std::string& subject, const CertificateOptions& options = {});

  // End entities; the chain holds the certificate only (and intermediate authorities).
  identity::Credential IssueUser(const std::string& subject, CertificateOptions options = {}) const;
  identity::Credential IssueHost(const std::string& host, CertificateOptions options = {}) const;

  // PEM of a revocation list.
  struct CrlOptions {
    identity::Time last_update = TestNow() - std::chrono::hours(1);
    identity::Time next_update = TestNow() + std::chrono::hours(24 * 30);
    bool has_critical_extension = false;
  };
  std::string Crl(const std::vector<const X509*>& revoked, const CrlOptions& options) const;
  std::string Crl(const std::vector<const X509*>& revoked) const;

  // "access_id_CA ..." for these patterns.
  std::string SigningPolicyText(const std::vector<std::string>& patterns) const;

  // <hash>.N, and if given <hash>.r0 and <hash>.signing_policy.
  void Install(const std::string& directory, const std::string& crl = "",
               const std::string& signing_policy = "") const;

  const identity::Credential& credential() const { return credential_; }
  const X509& certificate() const { return *credential_.chain.front(); }
  std::string Hash() const;

 private:
  identity::Credential credential_;
  bool is_root_ = true;
};

}  // namespace sekisho::test
