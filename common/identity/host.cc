// SPDX-License-Identifier: Apache-2.0
#include "common/identity/host.h"

#include <cctype>
#include <vector>

#include <arpa/inet.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "common/identity/dn.h"
#include "common/identity/path.h"

namespace sekisho::identity {
namespace {

using NamesPtr = std::unique_ptr<GENERAL_NAMES, Deleter<GENERAL_NAMES_free>>;

std::string Lower(std::string text) {
  for (char& c : text) {
    c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  }
  return text;
}

bool IsAddress(const std::string& host) {
  in6_addr address;
  return inet_pton(AF_INET, host.c_str(), &address) == 1 ||
         inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

// Names and addresses of the subjectAltName, as text.
std::vector<std::string> AlternativeNames(const X509& certificate) {
  std::vector<std::string> names;
  const NamesPtr all(static_cast<GENERAL_NAMES*>(
      X509_get_ext_d2i(&certificate, NID_subject_alt_name, nullptr, nullptr)));
  for (int i = 0; i < sk_GENERAL_NAME_num(all.get()); ++i) {
    const GENERAL_NAME* name = sk_GENERAL_NAME_value(all.get(), i);
    const auto* bytes = name->type == GEN_DNS || name->type == GEN_IPADD
                            ? ASN1_STRING_get0_data(name->d.ia5)
                            : nullptr;
    if (bytes == nullptr) {
      continue;
    }
    const int size = ASN1_STRING_length(name->d.ia5);
    char text[INET6_ADDRSTRLEN] = "?";
    if (name->type == GEN_DNS) {
      names.emplace_back(reinterpret_cast<const char*>(bytes), static_cast<size_t>(size));
    } else {
      inet_ntop(size == 4 ? AF_INET : AF_INET6, bytes, text, sizeof(text));
      names.emplace_back(size == 4 || size == 16 ? text : "?");
    }
  }
  return names;
}

// The last CN of the subject, without a leading `host/`.
std::string HostOfSubject(const X509& certificate) {
  const X509_NAME* subject = X509_get_subject_name(&certificate);
  int last = -1;
  for (int i = -1;
       (i = X509_NAME_get_index_by_NID(const_cast<X509_NAME*>(subject), NID_commonName, i)) >= 0;) {
    last = i;
  }
  if (last < 0) {
    return "";
  }
  const ASN1_STRING* data = X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, last));
  std::string name(reinterpret_cast<const char*>(ASN1_STRING_get0_data(data)),
                   static_cast<size_t>(ASN1_STRING_length(data)));
  return name.starts_with("host/") ? name.substr(5) : name;
}

bool MatchesAlternativeName(const X509& certificate, const std::string& host) {
  auto* mutable_certificate = const_cast<X509*>(&certificate);
  if (IsAddress(host)) {
    return X509_check_ip_asc(mutable_certificate, host.c_str(), 0) == 1;
  }
  return X509_check_host(mutable_certificate, host.data(), host.size(),
                         X509_CHECK_FLAG_NEVER_CHECK_SUBJECT | X509_CHECK_FLAG_NO_PARTIAL_WILDCARDS,
                         nullptr) == 1;
}

}  // namespace

std::optional<Refusal> CheckHost(const Chain& presented, const Identity& identity,
                                 const std::string& host) {
  if (identity.kind == CredentialKind::kIndependentProxy || host.empty()) {
    return Refusal{Reason::kWrongHost, fmt::format("expected the host {}, saw {}, which is no host",
                                                   host, identity.subject)};
  }
  const X509* certificate = nullptr;  // the end entity: the first that is no proxy
  for (const X509Ptr& candidate : presented) {
    if (SubjectText(*candidate) == identity.subject && RoleOf(*candidate) != Role::kProxy) {
      certificate = candidate.get();
      break;
    }
  }
  if (certificate == nullptr) {
    return Refusal{Reason::kIncompleteChain, "the host's own certificate was not presented"};
  }
  const std::vector<std::string> names = AlternativeNames(*certificate);
  if (!names.empty()) {
    if (MatchesAlternativeName(*certificate, host)) {
      return std::nullopt;
    }
    return Refusal{Reason::kWrongHost, fmt::format("expected a certificate for {}, saw one for {}",
                                                   host, fmt::join(names, ", "))};
  }
  const std::string name = HostOfSubject(*certificate);
  if (!name.empty() && Lower(name) == Lower(host)) {
    return std::nullopt;
  }
  return Refusal{Reason::kWrongHost,
                 fmt::format("expected a certificate for {}, saw {}", host, identity.subject)};
}

std::optional<Refusal> CheckSubject(const Identity& identity, const std::string& expected) {
  if (SameDn(identity.subject, expected)) {
    return std::nullopt;
  }
  return Refusal{Reason::kWrongSubject,
                 fmt::format("expected the subject {}, saw {}", expected, identity.subject)};
}

}  // namespace sekisho::identity
